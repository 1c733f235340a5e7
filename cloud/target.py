"""From a call to the service that answers it: one object for each call, knowing who calls."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from functools import partial
from typing import Any, Final

from grpclib.const import Cardinality, Handler, Status
from grpclib.exceptions import GRPCError

from cloud.openings import STREAMS
from cloud.services.agent import AgentDeviceService
from cloud.services.app import AppService
from cloud.services.base import Cloud, Service
from cloud.services.data import DataService
from cloud.services.datasets import DatasetService
from cloud.services.datasync import DataSyncService
from cloud.services.packages import PackageService
from cloud.services.robot import RobotService
from cloud.standing import while_allowed
from cloud.unbuilt import sentence
from rpc.api.client import find_method
from rpc.api.router import ApiRouter
from rpc.api.target import CallInfo
from rpc.auth_service import AuthRouter

SERVICES: Final[Mapping[str, type[Service]]] = {
    "viam.app.v1.AppService": AppService,
    "viam.app.v1.RobotService": RobotService,
    "viam.app.agent.v1.AgentDeviceService": AgentDeviceService,
    "viam.app.data.v1.DataService": DataService,
    "viam.app.dataset.v1.DatasetService": DatasetService,
    "viam.app.datasync.v1.DataSyncService": DataSyncService,
    "viam.app.packages.v1.PackageService": PackageService,
}


class CloudTarget:
    """The Target of every service of one cloud."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def call(self, request: CallInfo) -> AbstractAsyncContextManager[Any]:
        """The service that answers one call."""
        return self._call(request)

    @asynccontextmanager
    async def _call(self, request: CallInfo) -> AsyncIterator[Service]:
        author = await self._cloud.authenticator.confirmed(request.identity)
        service = SERVICES[request.rpc.strip("/").partition("/")[0]](self._cloud, author)
        service.request = request
        if not request.streaming:
            yield service
            return
        name = request.rpc.strip("/").partition("/")[0]
        answers = find_method(name, request.method).server_streaming
        with self._cloud.openings.one(f"the key {author.name}", STREAMS) if answers else nullcontext():
            async with while_allowed(self._cloud, author, service.again):
                yield service


class CloudRouter:
    """Authentication, the services, and a sentence for what is published but not built here."""

    def __init__(self, cloud: Cloud) -> None:
        inner = ApiRouter(CloudTarget(cloud), bases={}, services=SERVICES)
        self._router = AuthRouter(inner, cloud.authenticator)

    def get(self, path: str, /) -> Handler | None:
        """As Router."""
        found = self._router.get(path)
        if found is not None:
            return found
        text = sentence(path, frozenset(SERVICES))
        return None if text is None else Handler(partial(_refuse, text), Cardinality.UNARY_UNARY, None, None)


async def _refuse(text: str, stream: Any) -> None:
    raise GRPCError(Status.UNIMPLEMENTED, text)
