"""Outgoing videos and sounds of a connection, the same for all engines: their number, end, and use of senders again."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, Generic, Protocol, TypeVar

from rpc.peers.port import TrackReport
from schema import ErrorKind, MachineError

MAX_STREAM: Final = 256  # characters of a stream's name
_STREAM: Final = re.compile(r"[!#$%&'*+\-.0-9A-Z^_`a-z{|}~]+")
"""A token of RFC 8866, as in the attribute msid."""


Frame = TypeVar("Frame")
Frame_contra = TypeVar("Frame_contra", contravariant=True)


class Sender(Protocol[Frame_contra]):
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

    def write(self, frame: Frame_contra) -> None:
        """Pass a frame to the encoder, or drop it."""
        ...

    async def report(self) -> TrackReport:
        """Return what the encoder does now."""
        ...


class Senders(Generic[Frame]):
    """The senders of one kind of a connection: at most `limit`, which errors call `noun`.

    A sender whose track has ended is used again: descriptions can only grow.
    """

    def __init__(self, make: Callable[[], Sender[Frame]], limit: int, noun: str) -> None:
        self._make = make
        self._limit = limit
        self._noun = noun
        self._senders: list[Sender[Frame]] = []
        self._tracks: dict[int, Track[Frame]] = {}  # by the index of the sender

    def add(self, stream: str) -> Track[Frame]:
        """Return a new track, see `port.PeerConnection.add_video`."""
        if len(stream) > MAX_STREAM or not _STREAM.fullmatch(stream):
            raise MachineError(
                f"the name of a stream cannot be {stream[:40]!r}",
                kind=ErrorKind.INVALID,
                remedy=f"use at most {MAX_STREAM} letters, digits and -._+ of ASCII",
            )
        index = next((number for number in range(self._limit) if number not in self._tracks), None)
        if index is None:
            raise MachineError(
                f"this connection has {self._limit} {self._noun} already",
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
        """Note which tracks the other end takes, after each exchange of descriptions."""
        for sender in self._senders:
            sender.sending = sender.accepted()

    def release(self, index: int) -> None:
        """Forget a track that has ended."""
        del self._tracks[index]

    def end(self) -> None:
        """End all tracks, because the connection is closed."""
        for track in list(self._tracks.values()):
            track.ended()


class Track(Generic[Frame]):
    """Implementation of `port.VideoTrack` and `port.SoundTrack`."""

    def __init__(self, senders: Senders[Frame], index: int, sender: Sender[Frame]) -> None:
        self._senders = senders
        self._index = index
        self._sender: Sender[Frame] | None = sender

    @property
    def live(self) -> bool:
        """Whether the last negotiation has found that the other end takes this track."""
        return self._sender is not None and self._sender.sending

    def send(self, frame: Frame) -> None:
        """Pass a frame to the encoder, see `port.VideoTrack` and `port.SoundTrack`."""
        if self._sender is not None and self._sender.sending:
            self._sender.write(frame)

    async def report(self) -> TrackReport:
        """Return what the encoder does now, see `port.VideoTrack`."""
        if self._sender is None:
            raise MachineError("the track has ended", kind=ErrorKind.PRECONDITION, remedy="add it again")
        return await self._sender.report()

    def close(self) -> None:
        """End the track. Idempotent."""
        if self._sender is not None:
            self._sender.stop()
            self._sender.sending = False
            self.ended()

    def ended(self) -> None:
        """Send nothing more; the sender may be used for another track."""
        self._sender = None
        self._senders.release(self._index)
