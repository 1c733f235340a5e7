"""A simulated camera that shows the bench (`hal.sim.bench.picture`) and delivers frames by the world's clock."""

from __future__ import annotations

import io
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Final

import trio

from hal.errors import Fault, HalError
from hal.ports.video import PixelFormat, Still, Video, VideoMode, VideoSettings
from hal.sim.bench.world import World
from hal.sim.faults import system_error
from hal.sim.hotplug import Hotplug
from hal.video_modes import Rates, Sizes, choose_rate, choose_size

SIZES: Final[dict[PixelFormat, tuple[Sizes, ...]]] = {"mjpeg": (Sizes(16, 16, 4096, 4096),)}
RATES: Final = (Rates(1.0, 60.0),)
USUAL_RATE: Final = 30.0  # frames per second
JPEG_QUALITY: Final = 85


class SimCamera:
    """A camera above the bench, plugged in from the beginning. It also implements the port Video."""

    def __init__(self, name: str, world: World, hotplug: Hotplug) -> None:
        self.name = name or "camera above the bench"
        self.mode = VideoMode("mjpeg", 640, 480, USUAL_RATE)
        self.frames = 0
        self.stalled = False  # whether it delivers no frames although it is plugged in
        self._world = world
        self._hotplug = hotplug
        self._gone = trio.Event()
        self._open = False
        self._start = 0.0

    @property
    def plugged(self) -> bool:
        """Whether the device is plugged in."""
        return not self._gone.is_set()

    def unplug(self) -> None:
        """Unplug it."""
        if self.plugged:
            self._gone.set()
            self._hotplug.removed("video4linux", self.name)

    def plug(self) -> None:
        """Plug it in."""
        if not self.plugged:
            self._gone = trio.Event()
            self._hotplug.added("video4linux", self.name)

    @asynccontextmanager
    async def opened(self, settings: VideoSettings) -> AsyncIterator[Video]:
        """Open the camera exclusively."""
        await trio.lowlevel.checkpoint()
        self._check()
        if self._open:
            raise system_error(self.name, Fault.BUSY)
        pixels, width, height = choose_size(SIZES, settings, self.name)
        rate = choose_rate(RATES, settings.rate or USUAL_RATE, f"{pixels} {width}x{height}", self.name)
        self.mode = VideoMode(pixels, width, height, rate)
        self.frames, self._start, self._open = 0, self._world.now(), True
        try:
            yield self
        finally:
            self._open = False

    def _check(self) -> None:
        if not self.plugged:
            raise system_error(self.name, Fault.GONE)

    async def arrived(self) -> None:
        """Wait for the next frame."""
        passed = math.floor((self._world.now() - self._start) * self.mode.rate + 1e-6)
        due = self._start + (max(passed, self.frames) + 1) / self.mode.rate
        with trio.move_on_after(math.inf if self.stalled else due - self._world.now()):
            await self._gone.wait()
        self._check()
        self.frames = max(passed, self.frames) + 1

    async def still(self) -> Still:
        """Return an image of the current state of the bench."""
        await trio.lowlevel.checkpoint()
        self._check()
        if not self.frames:
            raise HalError(f"{self.name}: no frame has arrived yet", Fault.TIMEOUT)
        from hal.sim.bench.picture import render_bench

        buffer = io.BytesIO()
        render_bench(self._world, self.mode.width, self.mode.height).save(buffer, "jpeg", quality=JPEG_QUALITY)
        return Still(buffer.getvalue(), datetime.now(UTC))
