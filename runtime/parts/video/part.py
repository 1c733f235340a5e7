"""The part of a machine that shows its cameras and lets its microphones be heard: their sources, and sizes of videos.

Modules for connections and pictures are imported with the first connection and the first viewer.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import trio

from engine import PartContext
from engine.planning import INTERNAL
from nursery_graph import Node
from runtime.parts.video.names import is_sound
from schema import ErrorKind, MachineError
from schema.document import MachineDocument

if TYPE_CHECKING:
    from rpc.peers import PeerChannel, PeerConnection
    from runtime.parts.video.microphone import MicrophoneSource
    from runtime.parts.video.pictures import Size
    from runtime.parts.video.source import CameraSource
    from runtime.parts.video.streams import Streams

MAX_VIEWERS: Final = 16
"""Videos and sounds that are sent at the same time, to all clients together. Each has an encoder."""


class Video:
    """The sources of one machine. A source exists while its camera or microphone has viewers."""

    def __init__(self, context: PartContext) -> None:
        self.roster = context.roster
        self._log = context.log
        self._nursery: trio.Nursery | None = None
        self._sizes: dict[str, Size] = {}  # set by clients, by the full name of the camera
        self.sources: dict[str, CameraSource | MicrophoneSource] = {}  # by the full name of the resource

    def nodes(self, document: MachineDocument) -> list[Node]:
        """Return the node in which the sources run."""
        return [Node(f"{INTERNAL}video", self.run)]

    @asynccontextmanager
    async def connection(self, peer: PeerConnection, channel: PeerChannel) -> AsyncIterator[Streams]:
        """Yield the streams of a connection, for `Peer.media`; `channel` is its channel for renegotiation.

        At the end of the context, the connection has no viewers any more, and the channel is closed.
        """
        from rpc.peers import Negotiator
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

    def watch(self, name: str, viewer: Any) -> None:
        """Add a viewer of a camera or listener of a microphone, by its full name, and start its source if it is new.

        Raises MachineError, see `check_room`.
        """
        self.check_room()
        assert self._nursery is not None
        source: Any = self.sources.get(name)
        if source is None:
            source = self.sources[name] = self._new_source(name)
            self._nursery.start_soon(source.run, name=f"stream of {name}")
        source.join(viewer)

    def _new_source(self, name: str) -> CameraSource | MicrophoneSource:
        if is_sound(name):
            from runtime.parts.video.microphone import MicrophoneSource

            return MicrophoneSource(self.roster, name, self._log)
        from runtime.parts.video.source import CameraSource

        return CameraSource(self.roster, name, lambda: self._sizes.get(name), self._log)

    def leave(self, name: str, viewer: Any) -> None:
        """Remove a viewer, and end the source if it was the last one."""
        source: Any = self.sources.get(name)
        if source is not None and viewer in source.viewers:
            source.leave(viewer)
            if not source.viewers:
                del self.sources[name]

    async def check_sound(self, name: str) -> None:
        """Raise MachineError (UNSUPPORTED) if the sound of a microphone cannot be sent."""
        from runtime.parts.video.microphone import check_format

        await check_format(self.roster, name)

    def check_room(self) -> None:
        """Raise MachineError if there cannot be one more viewer: EXHAUSTED, or UNAVAILABLE while the server stops."""
        if self._nursery is None:
            raise MachineError("video is not available now", kind=ErrorKind.UNAVAILABLE, remedy="try again")
        if sum(len(source.viewers) for source in self.sources.values()) >= MAX_VIEWERS:
            raise MachineError(
                f"this machine sends {MAX_VIEWERS} videos and sounds already",
                kind=ErrorKind.EXHAUSTED,
                remedy="remove streams that no client shows",
            )

    async def sizes(self, camera: str) -> list[Size]:
        """Return the sizes to offer for a camera's stream; takes a picture if it has no viewers."""
        from runtime.parts.video import pictures, source
        from support import Worker

        shown = self.sources.get(camera)
        if isinstance(shown, source.CameraSource) and shown.taken is not None:
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
