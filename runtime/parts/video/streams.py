"""The streams of one peer connection: adding and removing videos and sounds, with their negotiation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

import trio

from engine import Roster
from rpc.peers import Negotiator, PeerConnection, SoundTrack, VideoTrack
from runtime.parts.video.names import is_sound, source_of, stream_of
from schema import ErrorKind, MachineError
from support import Bucket

if TYPE_CHECKING:
    from runtime.parts.video.pictures import Size

NEGOTIATION_LIMIT: Final = 10.0  # seconds for the client's answer
BURST: Final = 32
RATE: Final = 1.0
"""Streams that a client may add and remove at once, and per second in the long run: each costs both ends an exchange
of session descriptions."""


class Sources(Protocol):
    """What the streams of a connection use of `part.Video`."""

    roster: Roster

    def watch(self, name: str, viewer: VideoTrack | SoundTrack) -> None:
        """Add a viewer of a camera, or a listener of a microphone. Raises MachineError."""
        ...

    def leave(self, name: str, viewer: VideoTrack | SoundTrack) -> None:
        """Remove a viewer; ignored if it is not one."""
        ...

    def check_room(self) -> None:
        """Raise MachineError if there cannot be one more viewer."""
        ...

    async def check_sound(self, name: str) -> None:
        """Raise MachineError (UNSUPPORTED) if the sound of a microphone cannot be sent."""
        ...

    async def sizes(self, camera: str) -> list[Size]:
        """Return the sizes to offer for a camera's stream."""
        ...

    def set_size(self, camera: str, size: Size | None) -> None:
        """Show a camera at this size; None is its own. Raises MachineError (INVALID)."""
        ...


@dataclass(frozen=True, slots=True)
class _Stream:
    source: str  # full name of the resource
    track: VideoTrack | SoundTrack


class Streams:
    """The streams of one connection, by name; the value of `Peer.media`."""

    def __init__(self, sources: Sources, peer: PeerConnection, negotiator: Negotiator) -> None:
        self.sources = sources
        self._peer = peer
        self._negotiator = negotiator
        self._streams: dict[str, _Stream] = {}
        self._changes = Bucket(BURST, RATE)

    async def add(self, name: str) -> None:
        """Send a video or sound to the client, and wait until the client has accepted it.

        Raises MachineError: NOT_FOUND or UNAVAILABLE (see `source_of`), UNSUPPORTED for a sound in a format that cannot
        be sent, PRECONDITION if the stream is
        active already or the client does not accept it, EXHAUSTED for too many videos or changes, TIMEOUT.
        """
        source = source_of(self.sources.roster, name)
        stream, full, sound = stream_of(source), str(source), is_sound(str(source))
        if stream in self._streams:
            raise MachineError(
                f"the stream {stream!r} is active already", kind=ErrorKind.PRECONDITION, remedy="remove it first"
            )
        self.sources.check_room()
        self._count_change()
        track = self._peer.add_sound(stream) if sound else self._peer.add_video(stream)
        self._streams[stream] = _Stream(full, track)
        try:
            if sound:
                await self.sources.check_sound(full)
            await self._negotiate()
            if not track.live:
                raise MachineError(
                    f"the client has not accepted the {'sound' if sound else 'video'}",
                    kind=ErrorKind.PRECONDITION,
                    remedy=f"use a client that decodes {'Opus' if sound else 'VP8'}",
                )
            self.sources.watch(full, track)
        except BaseException:
            self._end(stream)
            raise

    async def remove(self, name: str) -> None:
        """End a stream, and tell the client. Raises MachineError: PRECONDITION if it is not active, TIMEOUT."""
        stream = name.replace(":", "+")
        if stream not in self._streams:
            raise MachineError(
                f"the stream {stream[:80]!r} is not active on this connection",
                kind=ErrorKind.PRECONDITION,
                remedy=f"active are: {', '.join(self._streams) or 'none'}",
            )
        self._count_change()
        self._end(stream)
        await self._negotiate()

    def close(self) -> None:
        """End all streams without telling the client: the connection ends."""
        for stream in list(self._streams):
            self._end(stream)

    def _end(self, stream: str) -> None:
        ended = self._streams.pop(stream, None)
        if ended is not None:
            self.sources.leave(ended.source, ended.track)
            ended.track.close()

    async def _negotiate(self) -> None:
        try:
            with trio.fail_after(NEGOTIATION_LIMIT):
                await self._negotiator.offer()
        except trio.TooSlowError:
            raise MachineError(
                f"the client has not answered the session description within {NEGOTIATION_LIMIT:g} s",
                kind=ErrorKind.TIMEOUT,
                remedy="connect again; update the client's library if that does not help",
            ) from None

    def _count_change(self) -> None:
        if not self._changes.take(trio.current_time()):
            raise MachineError(
                f"streams are added and removed too often: more than {RATE:g} a second",
                kind=ErrorKind.EXHAUSTED,
                remedy="wait, and keep streams that are needed again",
            )
