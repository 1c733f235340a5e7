"""The part of a machine that shows its cameras: a source for each camera with viewers, and the sizes that were set.

Modules for connections and pictures are imported with the first connection and the first viewer.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import trio

from nursery_graph import Node
from runtime.engine.part import PartContext
from runtime.engine.planning.node_names import INTERNAL
from schema.document.machine import MachineDocument
from schema.errors import ErrorKind, MachineError

if TYPE_CHECKING:
    from rpc.peers.port import Channel, PeerConnection, VideoTrack
    from runtime.parts.video.pictures import Size
    from runtime.parts.video.source import CameraSource
    from runtime.parts.video.streams import Streams

MAX_VIEWERS: Final = 16
"""Videos that are sent at the same time, to all clients together. Each has an encoder."""


class Video:
    """The sources of one machine. A source exists while its camera has viewers."""

    def __init__(self, context: PartContext) -> None:
        self.roster = context.roster
        self._log = context.log
        self._nursery: trio.Nursery | None = None
        self._sizes: dict[str, Size] = {}  # set by clients, by the full name of the camera
        self.sources: dict[str, CameraSource] = {}  # by the full name of the camera

    def nodes(self, document: MachineDocument) -> list[Node]:
        """Return the node in which the sources run."""
        return [Node(f"{INTERNAL}video", self.run)]

    @asynccontextmanager
    async def connection(self, peer: PeerConnection, channel: Channel) -> AsyncIterator[Streams]:
        """Yield the streams of a connection, for `Peer.media`; `channel` is its channel for renegotiation.

        At the end of the context, the connection has no viewers any more, and the channel is closed.
        """
        from rpc.peers.media.negotiation import Negotiator
        from runtime.parts.video.streams import Streams

        negotiator = Negotiator(peer, channel)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(negotiator.run)
            streams = Streams(self, peer, negotiator)
            try:
                yield streams
            finally:
                streams.close()
                nursery.cancel_scope.cancel()

    def watch(self, camera: str, viewer: VideoTrack) -> None:
        """Add a viewer of a camera, and start its source if it is the first one. Raises MachineError."""
        self.check_room()
        assert self._nursery is not None
        source = self.sources.get(camera)
        if source is None:
            from runtime.parts.video.source import CameraSource

            source = CameraSource(self.roster, camera, lambda: self._sizes.get(camera), self._log)
            self.sources[camera] = source
            self._nursery.start_soon(source.run, name=f"video of {camera}")
        source.join(viewer)

    def leave(self, camera: str, viewer: VideoTrack) -> None:
        """Remove a viewer, and end the source of the camera if it was the last one."""
        source = self.sources.get(camera)
        if source is not None and viewer in source.viewers:
            source.leave(viewer)
            if not source.viewers:
                del self.sources[camera]

    def check_room(self) -> None:
        """Raise MachineError if there cannot be one more viewer: EXHAUSTED, or UNAVAILABLE while the server stops."""
        if self._nursery is None:
            raise MachineError("video is not available now", kind=ErrorKind.UNAVAILABLE, remedy="try again")
        if sum(len(source.viewers) for source in self.sources.values()) >= MAX_VIEWERS:
            raise MachineError(
                f"this machine sends {MAX_VIEWERS} videos already",
                kind=ErrorKind.EXHAUSTED,
                remedy="remove streams that no client shows",
            )

    async def sizes(self, camera: str) -> list[Size]:
        """Return the sizes to offer for a camera's stream; takes a picture if it has no viewers."""
        from runtime.parts.video import pictures, source
        from support.worker import Worker

        shown = self.sources.get(camera)
        if shown is not None and shown.taken is not None:
            return pictures.sizes_of(shown.taken)
        data = await source.take(self.roster, camera)
        worker = Worker(f"size of {camera}")
        async with worker.opened():
            return pictures.sizes_of(await worker.run(lambda: pictures.size_of(data)))

    def set_size(self, camera: str, size: Size | None) -> None:
        """Show a camera to all of its viewers at this size; None is its own. Raises MachineError (INVALID)."""
        from runtime.parts.video.pictures import MAX_SIDE, MIN_SIDE

        if size is None:
            self._sizes.pop(camera, None)
            return
        if any(side % 2 or not MIN_SIDE <= side <= MAX_SIDE for side in size):
            raise MachineError(
                f"a video cannot have {size[0]} x {size[1]} pixels",
                kind=ErrorKind.INVALID,
                remedy=f"use even numbers from {MIN_SIDE} to {MAX_SIDE}; GetStreamOptions lists sizes that fit",
            )
        self._sizes = {name: old for name, old in self._sizes.items() if name in self.roster.planned}
        self._sizes[camera] = size

    async def run(self, deps: Mapping[str, Any], /, *, task_status: trio.TaskStatus[None]) -> None:
        """Run the sources until cancelled."""
        try:
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                task_status.started(None)
                await trio.sleep_forever()
        finally:
            self._nursery = None
            self.sources.clear()
