"""From a call to the service that answers it: one object for each call, knowing who calls."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from functools import partial
from typing import Any, Final, TypeVar

from grpclib.const import Cardinality, Handler, Status
from grpclib.exceptions import GRPCError

from cloud import authentication
from cloud.author import Author
from cloud.credentials import require_in_force
from cloud.limits import UPLOAD_READINGS
from cloud.openings import STREAMS
from cloud.pieces import heavy
from cloud.services.agent import AgentDeviceService
from cloud.services.app import AppService
from cloud.services.base import Cloud, Service
from cloud.services.data import DataService
from cloud.services.datasets import DatasetService
from cloud.services.datasync import DataSyncService
from cloud.services.packages import PackageService
from cloud.services.robot import RobotService
from cloud.standing import while_allowed
from cloud.store.turns import working_for
from cloud.unbuilt import sentence
from rpc.api.client import find_method
from rpc.api.router import ApiRouter
from rpc.api.target import CallInfo
from rpc.carrier import Identity
from rpc.standard import StandardServices, load_services

SERVICES: Final[Mapping[str, type[Service]]] = {
    "viam.app.v1.AppService": AppService,
    "viam.app.v1.RobotService": RobotService,
    "viam.app.agent.v1.AgentDeviceService": AgentDeviceService,
    "viam.app.data.v1.DataService": DataService,
    "viam.app.dataset.v1.DatasetService": DatasetService,
    "viam.app.datasync.v1.DataSyncService": DataSyncService,
    "viam.app.packages.v1.PackageService": PackageService,
}

UPLOADS: Final = (
    "/viam.app.datasync.v1.DataSyncService/DataCaptureUpload",
    "/viam.app.datasync.v1.DataSyncService/FileUpload",
    "/viam.app.datasync.v1.DataSyncService/StreamingDataCaptureUpload",
    "/viam.app.packages.v1.PackageService/CreatePackage",
    "/viam.app.v1.AppService/UploadModuleFile",
)
"""Calls whose messages hold files: they may be as large as --max-message, all others as `cloud.limits.CALL`."""

FEW_FILES: Final = 16  # contents of files in one upload that are read on the event loop
NOBODY: Final = ""  # in whose turn calls without a key are worked on

T = TypeVar("T")


class CloudTarget:
    """The Target of every service of one cloud."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def call(self, request: CallInfo) -> AbstractAsyncContextManager[Any]:
        """The service that answers one call."""
        return self._call(request)

    async def aside(self, stream: Any, path: str, what: Any, function: Callable[[], T]) -> T:
        """As Target: what is heavy is done in the cloud's room."""
        if stream.identity is None or not (_many(stream, what) if hasattr(what, "DESCRIPTOR") else heavy(what)):
            return function()
        return await self.in_room(stream.identity, function)

    async def in_room(self, identity: Identity | None, function: Callable[[], T]) -> T:
        """What `function` returns, in a thread of the cloud's room, in the turn of the caller's organization."""
        if identity is None:
            return await self._cloud.room.run(NOBODY, function)
        author = authentication.author_of(identity)
        return await self._cloud.room.run(await self._cloud.homes.of(self._cloud.store, author), function)

    @asynccontextmanager
    async def _call(self, request: CallInfo) -> AsyncIterator[Service]:
        author = await self._cloud.authenticator.confirmed(request.identity)
        service = SERVICES[request.rpc.strip("/").partition("/")[0]](self._cloud, author)
        service.request = request
        with working_for(await self._cloud.homes.of(self._cloud.store, author)):
            async with self._opened(service, author, request):
                yield service

    @asynccontextmanager
    async def _opened(self, service: Service, author: Author, request: CallInfo) -> AsyncIterator[None]:
        """A call that streams lasts as long as its caller may make it, and counts among the open ones."""
        if not request.streaming:
            yield
            return
        name = request.rpc.strip("/").partition("/")[0]
        answers = find_method(name, request.method).server_streaming
        with self._cloud.openings.one(f"the key {author.name}", STREAMS) if answers else nullcontext():
            async with while_allowed(self._cloud, author, service.again):
                yield


class CloudRouter:
    """Authentication, the services, and a sentence for what is published but not built here."""

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
        """Full names of all services."""
        return self._router.names()

    def get(self, path: str, /) -> Handler | None:
        """As Router."""
        found = self._router.get(path)
        if found is not None:
            return found
        text = sentence(path, frozenset(SERVICES))
        return None if text is None else Handler(partial(_refuse, text), Cardinality.UNARY_UNARY, None, None)


@asynccontextmanager
async def _admitted(cloud: Cloud, identity: Identity | None) -> AsyncIterator[None]:
    """For as long as the key counts; the health of the whole cloud is asked without one."""
    if identity is None:
        yield
        return
    author = await cloud.authenticator.confirmed(identity)
    with cloud.openings.one(f"the key {author.name}", STREAMS):
        async with while_allowed(cloud, author, lambda sql: require_in_force(sql, author)):
            yield


def _many(stream: Any, request: Any) -> bool:
    """Whether a request has many values to be read, and is not only large by a file. INVALID for too many readings."""
    if not heavy(stream.size):
        return False
    contents = getattr(request, "sensor_contents", None)
    if contents is None:
        return True
    UPLOAD_READINGS.check(len(contents), "the upload")
    return len(contents) > FEW_FILES or any(not one.HasField("binary") for one in contents)


async def _refuse(text: str, stream: Any) -> None:
    raise GRPCError(Status.UNIMPLEMENTED, text)
