"""Cameras of Video4Linux: frames by memory mapping, waited for in Trio; what blocks is done in the camera's thread."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

import trio

from hal.errors import Fault, HalError
from hal.linux import v4l2
from hal.linux.v4l2_device import CaptureDevice
from hal.pixels import RawFrame, to_jpeg
from hal.ports.video import Still, Video, VideoSettings
from hal.worker import BusWorker

ROOT: Final = Path("/")
PROCESSORS: Final = frozenset({"bcm2835-isp", "bcm2835-codec", "pispbe", "rpivid"})
"""Drivers of a Raspberry Pi's image processors: they deliver frames only of what they are fed."""

CLOSING: Final = 5.0  # seconds that stopping a camera may take

T = TypeVar("T")


def find_camera(camera: str, root: Path = ROOT) -> str:
    """Path of the camera with that path or name, of the first that can be shown if empty; HalError names what is there.

    Blocks: cameras are opened to see what they are.
    """
    if camera.startswith("/"):
        if not (root / camera.lstrip("/")).exists():
            raise HalError(f"{camera}: No such file or directory; {_listed(root)}", Fault.GONE)
        return camera
    found = [(path, name) for path, name in _nodes(root) if camera in ("", name, Path(path).name)]
    refused: HalError | None = None
    for path, _ in found:
        device = CaptureDevice(str(root / path.lstrip("/")))
        try:
            device.open()
            if device.formats() and (camera or device.driver not in PROCESSORS):
                return path
        except HalError as error:
            refused = refused or error
        except OSError as error:
            refused = refused or device.error(error)
        finally:
            device.close()
    if refused is not None:
        raise refused
    raise HalError(f"no camera {f'is called {camera!r}' if camera else 'can be shown'}; {_listed(root)}", Fault.GONE)


def _nodes(root: Path) -> list[tuple[str, str]]:
    """Path and name of every video device, in the order of their numbers."""
    places = [
        (int(number), place)
        for place in (root / "sys/class/video4linux").glob("video*")
        if (number := place.name[5:]).isdigit()
    ]
    return [(f"/dev/{place.name}", (place / "name").read_text().strip()) for _, place in sorted(places)]


def _listed(root: Path) -> str:
    links = sorted(f"/dev/v4l/by-id/{link.name}" for link in (root / "dev/v4l/by-id").glob("*"))
    there = links or [f"{path} ({name})" for path, name in _nodes(root)]
    return f"there are {', '.join(there)}" if there else "there are no cameras"


@asynccontextmanager
async def open_video(camera: str, settings: VideoSettings, root: Path = ROOT) -> AsyncIterator[Video]:
    """A camera that is delivering."""
    worker = BusWorker(f"camera {camera}".rstrip())
    async with worker.opened():
        path = await worker.run(partial(find_camera, camera, root))
        device = CaptureDevice(str(root / path.lstrip("/")))
        try:
            await worker.run(partial(device.start, settings))
            video = LinuxVideo(device, worker)
            try:
                yield video
            finally:
                video.closed = True
        finally:
            if device.fd >= 0:
                trio.lowlevel.notify_closing(device.fd)
            with trio.move_on_after(CLOSING, shield=True):
                await worker.run(device.close)  # after `start`, should that have been cancelled


class LinuxVideo:
    """An open camera. The newest frame stays in its buffer until the next one has come."""

    def __init__(self, device: CaptureDevice, worker: BusWorker) -> None:
        self.name = device.name
        self.mode = device.mode
        self.frames = 0
        self.broken = 0  # frames that the driver itself called damaged
        self.closed = False  # its buffers are no longer to be touched
        self._device = device
        self._worker = worker
        self._newest: v4l2.Buffer | None = None
        self._captured = datetime.min
        self._still: tuple[int, Still] | None = None  # of which frame
        self._converting = trio.Lock()

    async def arrived(self) -> None:
        """Wait for the next frame; older ones that have arrived meanwhile are skipped."""
        await trio.lowlevel.checkpoint()
        before = self.frames
        while True:
            while self._take():
                pass
            if self.frames != before:
                return
            await trio.lowlevel.wait_readable(self._device.fd)

    def _take(self) -> bool:
        """Take one filled buffer, if there is one."""
        device = self._device
        try:
            try:
                buffer = device.ioctl(v4l2.DQBUF, device.buffer())
            except BlockingIOError:
                return False
            if buffer.flags & v4l2.BUFFER_ERROR or not buffer.bytesused:
                self.broken += 1
                device.ioctl(v4l2.QBUF, buffer)
                return True
            before, self._newest = self._newest, buffer
            if before is not None:
                device.ioctl(v4l2.QBUF, before)
        except OSError as error:
            raise device.error(error) from error
        self._captured = _moment(buffer)
        self.frames += 1
        return True

    async def still(self) -> Still:
        """The newest frame; everybody who asks for the same one gets the same image."""
        async with self._converting:
            if self._still is not None and self._still[0] == self.frames:
                return self._still[1]
            if self.closed:
                raise HalError(f"{self._device.path} is being closed", Fault.GONE)
            buffer, number, captured = self._newest, self.frames, self._captured
            if buffer is None:
                raise HalError(f"{self._device.path}: no frame has arrived yet", Fault.TIMEOUT)
            mode = self.mode
            data = self._device.maps[buffer.index][: buffer.bytesused]
            frame = RawFrame(data, mode.format, mode.width, mode.height, self._device.stride, self._device.full_range)
            try:
                jpeg = to_jpeg(frame) if mode.format == "mjpeg" else await self._worker.run(partial(to_jpeg, frame))
            except ValueError as error:
                raise HalError(
                    f"{self._device.path}: {error}", Fault.BUS, remedy="check the cable; choose a smaller size"
                ) from error
            still = Still(jpeg, captured)
            self._still = (number, still)
            return still


def _moment(buffer: v4l2.Buffer) -> datetime:
    """When a frame was taken: the driver's clock is the monotonic one, mostly."""
    now = datetime.now(UTC)
    if buffer.flags & v4l2.TIMESTAMP_MASK != v4l2.TIMESTAMP_MONOTONIC:
        return now
    taken = buffer.timestamp.seconds + buffer.timestamp.microseconds / 1e6
    return now - timedelta(seconds=max(0.0, time.clock_gettime(time.CLOCK_MONOTONIC) - taken))
