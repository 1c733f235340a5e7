"""Outgoing videos of a connection, the same for all engines: their number, their end, and the use of senders again."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, Protocol

from rpc.peers.port import MAX_TRACKS, VideoFrame, VideoReport
from schema.errors import ErrorKind, MachineError

MAX_STREAM: Final = 256  # characters of a stream's name
_STREAM: Final = re.compile(r"[!#$%&'*+\-.0-9A-Z^_`a-z{|}~]+")
"""A token of RFC 8866, as in the attribute msid."""


class Sender(Protocol):
    """Native end of a track: a transceiver with its encoder. It exists as long as the connection."""

    transceiver: Any
    sending: bool
    """Whether the last negotiation has found that the other end receives. It is kept here, because engines may block
    while they look it up, and it is needed for each frame."""

    def accepted(self) -> bool:
        """Return whether the other end receives, as negotiated last."""
        ...

    @property
    def stopped(self) -> bool:
        """Whether the other end has refused the place of this sender in the description, which cannot be undone."""
        ...

    def start(self, stream: str) -> None:
        """Send a stream from the next negotiation on."""
        ...

    def stop(self) -> None:
        """Send nothing from now on. Allowed for a sender that is stopped."""
        ...

    def write(self, frame: VideoFrame) -> None:
        """Pass a frame to the encoder, or drop it."""
        ...

    async def report(self) -> VideoReport:
        """Return what the encoder does now."""
        ...


class Senders:
    """The senders of one connection. A sender whose track has ended is used again: descriptions can only grow."""

    def __init__(self, make: Callable[[], Sender]) -> None:
        self._make = make
        self._senders: list[Sender] = []
        self._tracks: dict[int, Track] = {}  # by the index of the sender

    def add(self, stream: str) -> Track:
        """Return a new track, see `port.PeerConnection.add_video`."""
        if len(stream) > MAX_STREAM or not _STREAM.fullmatch(stream):
            raise MachineError(
                f"the name of a stream cannot be {stream[:40]!r}",
                kind=ErrorKind.INVALID,
                remedy=f"use at most {MAX_STREAM} letters, digits and -._+ of ASCII",
            )
        index = next((number for number in range(MAX_TRACKS) if number not in self._tracks), None)
        if index is None:
            raise MachineError(
                f"this connection has {MAX_TRACKS} videos already",
                kind=ErrorKind.EXHAUSTED,
                remedy="remove one of them, or use another connection",
            )
        if index == len(self._senders):
            self._senders.append(self._make())
        elif self._senders[index].stopped:
            self._senders[index] = self._make()
        self._senders[index].start(stream)
        track = self._tracks[index] = Track(self, index, self._senders[index])
        return track

    def transceivers(self) -> list[Any]:
        """Return the native transceivers in use now or before."""
        return [sender.transceiver for sender in self._senders]

    def negotiated(self) -> None:
        """Note which videos the other end takes, after each exchange of descriptions."""
        for sender in self._senders:
            sender.sending = sender.accepted()

    def release(self, index: int) -> None:
        """Forget a track that has ended."""
        del self._tracks[index]

    def end(self) -> None:
        """End all tracks, because the connection is closed."""
        for track in list(self._tracks.values()):
            track.ended()


class Track:
    """Implementation of `port.VideoTrack`."""

    def __init__(self, senders: Senders, index: int, sender: Sender) -> None:
        self._senders = senders
        self._index = index
        self._sender: Sender | None = sender

    @property
    def live(self) -> bool:
        """Whether the last negotiation has found that the other end takes this video."""
        return self._sender is not None and self._sender.sending

    def send(self, frame: VideoFrame) -> None:
        """Pass the newest frame to the encoder, see `port.VideoTrack`."""
        if self._sender is not None and self._sender.sending:
            self._sender.write(frame)

    async def report(self) -> VideoReport:
        """Return what the encoder does now, see `port.VideoTrack`."""
        if self._sender is None:
            raise MachineError("the video has ended", kind=ErrorKind.PRECONDITION, remedy="add it again")
        return await self._sender.report()

    def close(self) -> None:
        """End the video. Idempotent."""
        if self._sender is not None:
            self._sender.stop()
            self._sender.sending = False
            self.ended()

    def ended(self) -> None:
        """Send nothing more; the sender may be used for another track."""
        self._sender = None
        self._senders.release(self._index)
