"""The part that keeps the WebRTC connections of a machine, whichever way they came: see `rpc.datachannel.clients`."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

import trio

from engine import PartContext
from engine.planning import INTERNAL, SESSIONS
from nursery_graph import Node
from schema import ErrorKind, MachineError
from schema.document import MachineDocument
from support import Worker

if TYPE_CHECKING:
    from rpc import Identity
    from rpc.datachannel import Clients, Door
    from rpc.peers import PeerChannel, PeerConnection

NODE: Final = f"{INTERNAL}webrtc"


class WebRtc:
    """The connections of one machine. The modules for them are imported with the first offer."""

    def __init__(self, context: PartContext) -> None:
        self._context = context
        self._clients: Clients | None = None
        self._nursery: trio.Nursery | None = None
        self._starting = trio.Lock()

    def nodes(self, document: MachineDocument) -> list[Node]:
        """Return the node in which the connections live."""
        return [Node(NODE, self.run, requires={SESSIONS, f"{INTERNAL}video"})]

    async def run(self, deps: Mapping[str, Any], /, *, task_status: trio.TaskStatus[None]) -> None:
        """Keep the connections until cancelled."""
        try:
            async with trio.open_nursery() as self._nursery:
                task_status.started()
                await trio.sleep_forever()
        finally:
            self._nursery = self._clients = None

    async def respond(self, stream: Any, offer: Any, caller: Identity | None, door: Door) -> None:
        """Answer an offer, see `Clients.respond`. UNAVAILABLE while the server starts or stops."""
        async with self._starting:
            clients = self._clients
            if clients is None:
                make = (await _imported(lambda: importlib.import_module("rpc.datachannel.clients"))).Clients
                if self._nursery is None:
                    raise MachineError("the machine starts or stops", kind=ErrorKind.UNAVAILABLE, remedy="try again")
                clients = make(_imported, self._media)
                await self._nursery.start(clients.run)
                self._clients = clients
        await clients.respond(stream, offer, caller, door)

    def _media(self, peer: PeerConnection, negotiation: PeerChannel) -> AbstractAsyncContextManager[Any]:
        video: Any = self._context.parts["video"]
        connection: AbstractAsyncContextManager[Any] = video.connection(peer, negotiation)
        return connection


async def _imported(load: Callable[[], ModuleType]) -> ModuleType:
    """Return a module that is imported in a thread, without holding up the event loop."""
    worker = Worker("import of WebRTC")
    async with worker.opened():
        return await worker.run(load)
