"""Viewers of video for the scenes of this folder and for `bench.video`: the port of peers itself receives nothing."""

from __future__ import annotations

from dataclasses import dataclass
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
    video = [receiver.track for receiver in receivers if receiver.track.kind in ("video", _wrtc_video())]
    return _WrtcViewer(peer, video[index]) if hasattr(native, "_mailbox") else _AiortcViewer(peer, video[index])


def _wrtc_video() -> Any:
    from rpc.peers.wrtc_native import enums

    return enums.MediaType.video


class _WrtcViewer:
    def __init__(self, peer: Any, track: Any) -> None:
        from rpc.peers.wrtc_native import native

        self._processor = native.MediaStreamTrackProcessor(track, 4)
        self._arrival = trio.lowlevel.ParkingLot()
        peer._mailbox.bind(self._processor, self._wake)

    def _wake(self, _name: str, _arguments: Any) -> None:
        self._processor._ackWakeup()
        self._arrival.unpark_all()

    async def next(self) -> Picture:
        while (item := self._processor.read()) is None:
            await self._arrival.park()
        frame = item[0]
        width, height = frame.width, frame.height
        half, rows, size = (width + 1) // 2, (height + 1) // 2, width * height
        data = bytearray(size + 2 * half * rows)
        colours = [(0, 0, half, rows, size + number * half * rows, half) for number in range(2)]
        frame.copyPlanes(data, [(0, 0, width, height, 0, width), *colours])
        return Picture(width, height, bytes(data[:size]))


class _AiortcViewer:
    def __init__(self, peer: Any, track: Any) -> None:
        self._loop = peer._loop
        self._track = track

    async def next(self) -> Picture:
        frame = await self._loop.run(self._track.recv)
        plane = frame.planes[0]
        data, width = bytes(plane), frame.width
        rows = (data[begin : begin + width] for begin in range(0, plane.line_size * frame.height, plane.line_size))
        return Picture(width, frame.height, b"".join(rows))
