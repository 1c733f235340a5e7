"""Viewers and listeners for these scenes and for `bench.video`: the port of peers itself receives nothing."""

from __future__ import annotations

import array
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import trio

from rpc.peers.port import PeerConnection


@dataclass(frozen=True, slots=True)
class Picture:
    """Decoded picture, with the luma of its pixels from the top left."""

    width: int
    height: int
    luma: bytes

    def level(self, x: float, y: float) -> int:
        """Return the luma at a place, given as fractions of width and height."""
        return self.luma[int(y * self.height) * self.width + int(x * self.width)]


class Viewer(Protocol):
    """Receiver of one video."""

    async def next(self) -> Picture:
        """Wait for the next picture."""
        ...


def let_media_in(peer: Any) -> None:
    """Make an end receive media; call it before the first description."""
    peer._refuse_media = lambda: None


def view(peer: PeerConnection, index: int = 0) -> Viewer:
    """Return a viewer of a video of this end, after the negotiation."""
    native: Any = peer
    receivers = native._native.getReceivers()
    video = [receiver.track for receiver in receivers if receiver.track.kind in ("video", _wrtc_kind("video"))]
    return _WrtcViewer(peer, video[index]) if hasattr(native, "_mailbox") else _AiortcViewer(peer, video[index])


def _wrtc_kind(name: str) -> Any:
    from rpc.peers.wrtc_native import enums

    return getattr(enums.MediaType, name)


class Listener(Protocol):
    """Receiver of one sound."""

    async def next(self) -> tuple[int, list[int]]:
        """Wait for the next samples; return their rate and those of the first channel."""
        ...


def listen(peer: PeerConnection, index: int = 0) -> Listener:
    """Return a listener to a sound of this end, after the negotiation."""
    native: Any = peer
    receivers = native._native.getReceivers()
    sounds = [receiver.track for receiver in receivers if receiver.track.kind in ("audio", _wrtc_kind("audio"))]
    return _WrtcListener(peer, sounds[index]) if hasattr(native, "_mailbox") else _AiortcListener(peer, sounds[index])


async def pitch_of(listener: Listener, expected: float) -> float:
    """Listen until a half second of sound has a pitch within 2 % of `expected` (Hz); return it.

    The first samples of a sound are silence, and those after a loss are made up by the decoder.
    """
    while True:
        samples: list[int] = []
        rate = 0
        while not rate or len(samples) < rate // 2:
            rate, some = await listener.next()
            samples += some
        rising = sum(before < 0 <= after for before, after in pairwise(samples))
        pitch = rising * rate / len(samples)
        if abs(pitch - expected) <= expected * 0.02 and max(samples) > 2_000:
            return pitch


class _WrtcReceiver:
    waiting = 4  # frames that are kept until they are read

    def __init__(self, peer: Any, track: Any) -> None:
        from rpc.peers.wrtc_native import native

        self._processor = native.MediaStreamTrackProcessor(track, self.waiting)
        self._arrival = trio.lowlevel.ParkingLot()
        peer._mailbox.bind(self._processor, self._wake)

    def _wake(self, _name: str, _arguments: Any) -> None:
        self._processor._ackWakeup()
        self._arrival.unpark_all()

    async def _read(self) -> Any:
        while (item := self._processor.read()) is None:
            await self._arrival.park()
        return item


class _WrtcViewer(_WrtcReceiver):
    async def next(self) -> Picture:
        frame = (await self._read())[0]
        width, height = frame.width, frame.height
        half, rows, size = (width + 1) // 2, (height + 1) // 2, width * height
        data = bytearray(size + 2 * half * rows)
        colours = [(0, 0, half, rows, size + number * half * rows, half) for number in range(2)]
        frame.copyPlanes(data, [(0, 0, width, height, 0, width), *colours])
        return Picture(width, height, bytes(data[:size]))


class _WrtcListener(_WrtcReceiver):
    waiting = 100  # of 10 ms: a busy computer may not read them in time

    async def next(self) -> tuple[int, list[int]]:
        data, _, rate, channels, _, _ = await self._read()
        return rate, array.array("h", data)[::channels].tolist()


class _AiortcReceiver:
    def __init__(self, peer: Any, track: Any) -> None:
        self._loop = peer._loop
        self._track = track


class _AiortcViewer(_AiortcReceiver):
    async def next(self) -> Picture:
        frame = await self._loop.run(self._track.recv)
        plane = frame.planes[0]
        data, width = bytes(plane), frame.width
        rows = (data[begin : begin + width] for begin in range(0, plane.line_size * frame.height, plane.line_size))
        return Picture(width, frame.height, b"".join(rows))


class _AiortcListener(_AiortcReceiver):
    async def next(self) -> tuple[int, list[int]]:
        frame = await self._loop.run(self._track.recv)
        samples = array.array("h", bytes(frame.planes[0])[: frame.samples * 4])
        return frame.sample_rate, samples[::2].tolist()
