"""Dispatch of calls to the services: one service object per call, which holds the caller's identity."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from functools import partial
from typing import Any, Final, TypeVar

from grpclib.const import Cardinality, Handler, Status
from grpclib.exceptions import GRPCError

from cloud.documents.pieces import heavy
from cloud.domain.permissions import authentication
from cloud.domain.permissions.credentials import require_in_force
from cloud.domain.permissions.rules import AccessRule
from cloud.services.agents.agent import AgentDeviceService
from cloud.services.agents.agent_service import AgentService
from cloud.services.alerts.alerts import AlertService
from cloud.services.app import AppService
from cloud.services.common.base import Cloud, Service
from cloud.services.common.standing import while_allowed
from cloud.services.configurations.history import HistoryService
from cloud.services.data.data import DataService
from cloud.services.data.datasets import DatasetService
from cloud.services.data.datasync import DataSyncService
from cloud.services.fleet.fleet_service import FleetCalls
from cloud.services.machines.health import HealthService
from cloud.services.machines.robot import RobotService
from cloud.services.machines.signalling import SignallingService
from cloud.services.organizations.people import Invitations
from cloud.services.registry.packages import PackageService
from cloud.services.releases.releases import ReleaseService
from cloud.services.rollouts.rollouts import RolloutService
from cloud.services.training.following import TrainingService
from cloud.services.training.training import MLTrainingService
from cloud.services.triggers.triggers import TriggerService
from cloud.services.unbuilt import reason_unsupported
from cloud.store.turns import working_for
from cloud.values.limits import UPLOAD_READINGS
from cloud.work.openings import STREAMS
from rpc import Identity
from rpc.api import ApiRouter, CallInfo, find_method
from rpc.server import StandardServices, load_services
from uplink.releases import MAX_METADATA

SERVICES: Final[Mapping[str, type[Service]]] = {
    "viam.app.v1.AppService": AppService,
    "viam.app.v1.RobotService": RobotService,
    "viam.app.agent.v1.AgentDeviceService": AgentDeviceService,
    "viam.app.data.v1.DataService": DataService,
    "viam.app.dataset.v1.DatasetService": DatasetService,
    "viam.app.datasync.v1.DataSyncService": DataSyncService,
    "viam.app.packages.v1.PackageService": PackageService,
    "viam.app.mltraining.v1.MLTrainingService": MLTrainingService,
    "machine.cloud.v1.InvitationService": Invitations,
    "machine.cloud.v1.HistoryService": HistoryService,
    "machine.cloud.v1.TriggerService": TriggerService,
    "machine.cloud.v1.AlertService": AlertService,
    "machine.cloud.v1.ReleaseService": ReleaseService,
    "machine.cloud.v1.RolloutService": RolloutService,
    "machine.cloud.v1.AgentService": AgentService,
    "machine.cloud.v1.HealthService": HealthService,
    "machine.cloud.v1.FleetService": FleetCalls,
    "machine.cloud.v1.TrainingService": TrainingService,
    "proto.rpc.webrtc.v1.SignalingService": SignallingService,
}

CALLS: Final[Mapping[str, Mapping[str, AccessRule]]] = {name: service.rules for name, service in SERVICES.items()}
"""Rules of the methods by service. Some methods are used by pages only."""

UPLOADS: Final = (
    "/viam.app.datasync.v1.DataSyncService/DataCaptureUpload",
    "/viam.app.datasync.v1.DataSyncService/FileUpload",
    "/viam.app.datasync.v1.DataSyncService/StreamingDataCaptureUpload",
    "/viam.app.packages.v1.PackageService/CreatePackage",
    "/viam.app.v1.AppService/UploadModuleFile",
)
"""Calls whose messages contain files. Their limit is --max-message, that of all others `cloud.values.limits.CALL`."""

READING: Final = 1024 * 1024
RULE: Final = 256 * 1024
PUBLICATION: Final = 2 * MAX_METADATA + 4096
MESSAGES: Final[Mapping[str, int]] = {
    "/machine.cloud.v1.TriggerService/ExplainTrigger": READING,
    "/machine.cloud.v1.TriggerService/SendTest": READING,
    "/machine.cloud.v1.AlertService/SetAlertRule": RULE,
    "/machine.cloud.v1.AlertService/ExplainAlertRule": RULE,
    "/machine.cloud.v1.ReleaseService/UpdateReleaseMetadata": PUBLICATION,
}
"""Limits in bytes of the messages of calls with a smaller limit than others."""

FEW_FILES: Final = 16  # files in one upload that are processed on the event loop
UNAUTHENTICATED: Final = ""  # share of the workroom for calls without a key

T = TypeVar("T")


class CloudTarget:
    """The Target of all services of a cloud."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def call(self, request: CallInfo) -> AbstractAsyncContextManager[Any]:
        """Return a context manager that opens the service for one call."""
        return self._call(request)

    async def offload(self, stream: Any, path: str, what: Any, function: Callable[[], T]) -> T:
        """Run `function`; see Target. Expensive work runs in the workroom."""
        if stream.identity is None or not (_many(stream, what) if hasattr(what, "DESCRIPTOR") else heavy(what)):
            return function()
        return await self.in_room(stream.identity, function)

    async def in_room(self, identity: Identity | None, function: Callable[[], T]) -> T:
        """Run `function` in a workroom thread, in the share of the caller's organization, and return its result."""
        if identity is None:
            return await self._cloud.room.run(UNAUTHENTICATED, function)
        author = authentication.author_of(identity)
        return await self._cloud.room.run(await self._cloud.homes.of(self._cloud.store, author), function)

    @asynccontextmanager
    async def _call(self, request: CallInfo) -> AsyncIterator[Service]:
        author = await self._cloud.authenticator.confirmed(request.identity)
        name = request.rpc.strip("/").partition("/")[0]
        service = SERVICES[name](self._cloud, author)
        service.request = request
        with working_for(await self._cloud.homes.of(self._cloud.store, author)):
            if not request.streaming:
                yield service
                return
            # A stream ends when its caller may no longer make it; response streams are limited in number.
            streams_responses = find_method(name, request.method).server_streaming
            with (
                self._cloud.openings.hold(f"the key {author.name}", STREAMS) if streams_responses else nullcontext(),
                while_allowed(self._cloud, author, service.again),
            ):
                yield service


class CloudRouter:
    """Authentication, the services, and an explanation for published calls that are not supported."""

    def __init__(self, cloud: Cloud) -> None:
        target = CloudTarget(cloud)
        self.in_room = target.in_room
        inner = ApiRouter(target, bases={}, services=SERVICES)
        self._router = StandardServices(
            inner,
            lambda: cloud.authenticator,
            names=inner.service_names,
            load=lambda name: load_services(inner.service_names(), inner.load, name),
            admit=partial(_admitted, cloud),
        )

    def names(self) -> list[str]:
        """Return the full names of all services."""
        return self._router.names()

    def get(self, path: str, /) -> Handler | None:
        """Return the handler of a path; see Router."""
        handler = self._router.get(path)
        if handler is not None:
            return handler
        reason = reason_unsupported(path, frozenset(SERVICES))
        return None if reason is None else Handler(partial(_refuse, reason), Cardinality.UNARY_UNARY, None, None)


@asynccontextmanager
async def _admitted(cloud: Cloud, identity: Identity | None) -> AsyncIterator[None]:
    """Admit a call while its key is valid; the health of the whole cloud needs no key."""
    if identity is None:
        yield
        return
    author = await cloud.authenticator.confirmed(identity)
    with (
        working_for(await cloud.homes.of(cloud.store, author)),
        cloud.openings.hold(f"the key {author.name}", STREAMS),
        while_allowed(cloud, author, lambda sql: require_in_force(sql, author)),
    ):
        yield


def _many(stream: Any, request: Any) -> bool:
    """Return whether a request has many values to parse, not only a large file. INVALID for too many readings."""
    if not heavy(stream.size):
        return False
    contents = getattr(request, "sensor_contents", None)
    if contents is None:
        return True
    UPLOAD_READINGS.check(len(contents), "the upload")
    return len(contents) > FEW_FILES or any(not content.HasField("binary") for content in contents)


async def _refuse(text: str, stream: Any) -> None:
    raise GRPCError(Status.UNIMPLEMENTED, text)
