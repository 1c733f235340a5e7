"""StreamService: videos and sounds for the peer connection that carries the call. Each call has its own object."""

from __future__ import annotations

from dataclasses import dataclass

from engine import Roster
from rpc.api import CallInfo
from runtime.parts.video.names import camera_of, stream_names
from runtime.parts.video.streams import Streams
from schema import ErrorKind, MachineError


@dataclass(frozen=True, slots=True)
class Resolution:
    """Size of a video in pixels."""

    width: int = 0
    height: int = 0


class StreamService:
    """Implements the RPCs, one method each. Sizes apply to all viewers of a camera."""

    def __init__(self, roster: Roster, call: CallInfo) -> None:
        self._roster = roster
        self._call = call

    async def list_streams(self) -> list[str]:
        """Return the names of the streams of all cameras and microphones that are ready."""
        return stream_names(self._roster)

    async def add_stream(self, name: str) -> None:
        """Send a camera's video or a microphone's sound on this connection, see `Streams.add`."""
        await self._streams().add(name)

    async def remove_stream(self, name: str) -> None:
        """End a stream of this connection, see `Streams.remove`."""
        await self._streams().remove(name)

    async def get_stream_options(self, name: str) -> list[Resolution]:
        """Return the sizes that a stream can have, the largest first."""
        camera = camera_of(self._roster, name)
        return [Resolution(*size) for size in await self._streams().sources.sizes(str(camera))]

    async def set_stream_options(self, name: str, resolution: Resolution | None = None) -> None:
        """Set the size of a stream for all of its viewers, until it is set again or the server restarts.

        Without a resolution, return to the camera's own size.
        """
        camera = camera_of(self._roster, name)
        size = (resolution.width, resolution.height) if resolution is not None else None
        self._streams().sources.set_size(str(camera), size)

    def _streams(self) -> Streams:
        """Return the streams of the connection of this call. Raises MachineError (PRECONDITION) if it has none."""
        streams = self._call.peer.media if self._call.peer is not None else None
        if not isinstance(streams, Streams):
            raise MachineError(
                "streams need a WebRTC connection, and this call came over another one",
                kind=ErrorKind.PRECONDITION,
                remedy="connect through the cloud of this machine, or call GetImages of the camera",
            )
        return streams
