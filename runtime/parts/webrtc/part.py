"""The part that keeps the WebRTC connections of a machine, whichever way they came: see `rpc.datachannel.clients`."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import trio

from engine import PartContext
from engine.planning import INTERNAL, SESSIONS
from nursery_graph import Node
from schema import ErrorKind, MachineError
from schema.document import MachineDocument
from support import run_once

if TYPE_CHECKING:
    from rpc import Identity
    from rpc.datachannel import Clients, Door
    from rpc.peers import PeerChannel, PeerConnection

NODE: Final = f"{INTERNAL}webrtc"
_in_thread: Final = partial(run_once, "import of WebRTC")


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
                make = (await _in_thread(lambda: importlib.import_module("rpc.datachannel.clients"))).Clients
                if self._nursery is None:
                    raise MachineError("the machine starts or stops", kind=ErrorKind.UNAVAILABLE, remedy="try again")
                clients = make(_in_thread, self._media)
                await self._nursery.start(clients.run)
                self._clients = clients
        await clients.respond(stream, offer, caller, door)

    def _media(self, peer: PeerConnection, negotiation: PeerChannel) -> AbstractAsyncContextManager[Any]:
        video: Any = self._context.parts["video"]
        connection: AbstractAsyncContextManager[Any] = video.connection(peer, negotiation)
        return connection
