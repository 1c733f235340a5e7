"""The cloud part of machine-server: nodes that upload logs, keep the certificate up to date, and answer clients."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, cast

import trio

from engine import PartContext
from engine.calls import CLOUD
from engine.planning import INTERNAL, SESSIONS
from nursery_graph import Node, Restart
from rpc import Identity, Limits, Peer, ServerCore
from rpc.http2 import serve_http2
from runtime.parts.cloud.calls import MOST
from runtime.parts.cloud.link import CloudLink
from schema.document import MachineDocument
from uplink import upload_logs

if TYPE_CHECKING:
    from runtime.parts.cloud.answering import Answering

QUEUE: Final = f"{INTERNAL}cloud-log-queue"
WEBRTC: Final = f"{INTERNAL}cloud-webrtc"
CLIENTS: Final = f"{INTERNAL}webrtc"  # the node of the part "webrtc"
CERTIFICATE: Final = f"{INTERNAL}cloud-certificate"
UPLOAD: Final = f"{INTERNAL}cloud-logs"
CALLS: Final = f"{INTERNAL}cloud-calls"
COMPUTER: Final = f"{INTERNAL}cloud-computer"
RESTART: Final = Restart(intensity=1_000_000, max_delay=30.0)


class CloudPart:
    """Queues and uploads log entries, keeps the certificate up to date, and answers calls and WebRTC offers."""

    def __init__(self, context: PartContext) -> None:
        self._link = cast("CloudLink | None", context.cloud)
        self._changed = context.changed
        self._answering = _answering(self._link, context)
        self._router = context.router

    def nodes(self, document: MachineDocument) -> list[Node]:
        """Return the same nodes for every document; none if the machine was started without a cloud."""
        if self._link is None:
            return []
        if self._link.certificate is not None:
            self._link.certificate.configured(_names(document))
        if self._answering is not None:
            self._answering.configure(_keys(document))
        return [
            Node(QUEUE, self._run_queue, restart=RESTART),
            Node(UPLOAD, self._upload, requires={QUEUE}, restart=RESTART),
            Node(CALLS, self._serve_calls, requires={SESSIONS}, stop_timeout=20.0, restart=RESTART),
            Node(COMPUTER, self._measure, restart=RESTART),
            *self._optional_nodes(),
        ]

    def _optional_nodes(self) -> Iterator[Node]:
        assert self._link is not None
        if self._answering is not None:
            yield Node(WEBRTC, self._answer, requires={QUEUE, SESSIONS, CLIENTS}, restart=RESTART)
        if self._link.certificate is not None:
            yield Node(CERTIFICATE, self._certify, restart=RESTART)

    async def _run_queue(self, deps: Mapping[str, Any], /, *, task_status: trio.TaskStatus[None]) -> None:
        assert self._link is not None
        async with self._link.worker.opened():
            await self._link.sink.run(task_status=task_status)

    async def _certify(self, deps: Mapping[str, Any], /, *, task_status: trio.TaskStatus[None]) -> None:
        link = self._link
        assert link is not None
        assert link.certificate is not None
        await link.certificate.follow(link.worker, self._changed, task_status=task_status)

    async def _measure(self, deps: Mapping[str, Any], /, *, task_status: trio.TaskStatus[None]) -> None:
        assert self._link is not None
        await self._link.computer.run(task_status=task_status)

    async def _upload(self, deps: Mapping[str, Any], /, *, task_status: trio.TaskStatus[None]) -> None:
        assert self._link is not None
        task_status.started()
        await upload_logs(self._link.sink, self._link.address)

    async def _serve_calls(self, deps: Mapping[str, Any], /, *, task_status: trio.TaskStatus[None]) -> None:
        assert self._link is not None
        core = ServerCore(self._router, limits=Limits(max_connections=MOST))

        async def serve(stream: trio.abc.Stream, caller: Identity) -> None:
            await serve_http2(stream, core, peer=Peer(CLOUD), identity=caller)

        task_status.started()
        await self._link.calls.run(serve)

    async def _answer(self, deps: Mapping[str, Any], /, *, task_status: trio.TaskStatus[None]) -> None:
        assert self._answering is not None
        await self._answering.run(task_status=task_status)


def _answering(link: CloudLink | None, context: PartContext) -> Answering | None:
    """Return what answers offers of WebRTC connections; None without a cloud or an engine, and with -webrtc=false."""
    if link is None or not link.webrtc:
        return None
    from rpc.datachannel import MAX_CONNECTIONS
    from runtime.parts.cloud.answering import Answering

    core = ServerCore(context.router, limits=Limits(max_connections=MAX_CONNECTIONS))
    clients: Any = context.parts["webrtc"]
    return Answering(link.address, core, clients)


def _keys(document: MachineDocument) -> list[tuple[str, str]]:
    """Return the types and ids of the keys with which clients may control the machine, as the cloud names them."""
    cloud = document.cloud
    located = cloud is not None and (cloud.location_secret or cloud.location_secrets)
    main = cloud.main_part if cloud is not None else None
    if not document.auth.handlers and not located and main is None:
        return []
    from rpc.access import LOCATION_SECRET, PART_SECRET, credentials_of

    credentials, _ = credentials_of([{"type": item.type, "config": item.config} for item in document.auth.handlers])
    keys = [(credential.type, credential.entity) for credential in credentials]
    if main is not None and main.secrets:
        keys.append((PART_SECRET, main.id))
    return [*keys, (LOCATION_SECRET, cloud.id)] if cloud is not None and located else keys


def _names(document: MachineDocument) -> Hashable:
    """Return the configuration that determines the machine's host names."""
    network, cloud = document.network, document.cloud
    cloud_names = (cloud.location_id, cloud.primary_org_id, cloud.fqdn) if cloud is not None else ()
    return (network.fqdn, network.bind_address, *cloud_names)
