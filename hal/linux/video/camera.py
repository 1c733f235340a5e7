"""Cameras of Video4Linux: frames by memory mapping; blocking calls run in the camera's thread."""

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
from hal.linux.video import v4l2
from hal.linux.video.device import CaptureDevice
from hal.pixels import RawFrame, to_jpeg
from hal.ports.video import Still, Video, VideoSettings
from hal.worker import BusWorker

ROOT: Final = Path("/")
PROCESSORS: Final = frozenset({"bcm2835-isp", "bcm2835-codec", "pispbe", "rpivid"})
"""Drivers of a Raspberry Pi's image processors: they only convert frames that they receive."""

CLOSING: Final = 5.0  # maximum seconds for stopping a camera

T = TypeVar("T")


def find_camera(camera: str, root: Path = ROOT) -> str:
    """Return the path of the camera with that path or name; if empty, of the first usable one.

    HalError lists the cameras. Blocks, because cameras are opened to check them.
    """
    if camera.startswith("/"):
        if not (root / camera.lstrip("/")).exists():
            raise HalError(f"{camera}: No such file or directory; {_listed(root)}", Fault.GONE)
        return camera
    candidates = [path for path, name in _nodes(root) if camera in ("", name, Path(path).name)]
    failure: HalError | None = None
    for path in candidates:
        device = CaptureDevice(str(root / path.lstrip("/")))
        try:
            device.open()
            if device.formats() and (camera or device.driver not in PROCESSORS):
                return path
        except HalError as error:
            failure = failure or error
        except OSError as error:
            failure = failure or device.error(error)
        finally:
            device.close()
    if failure is not None:
        raise failure
    raise HalError(f"no camera {f'is called {camera!r}' if camera else 'can be used'}; {_listed(root)}", Fault.GONE)


def _nodes(root: Path) -> list[tuple[str, str]]:
    """Return path and name of every video device, in the order of their numbers."""
    entries = [
        (int(number), entry)
        for entry in (root / "sys/class/video4linux").glob("video*")
        if (number := entry.name[5:]).isdigit()
    ]
    return [(f"/dev/{entry.name}", (entry / "name").read_text().strip()) for _, entry in sorted(entries)]


def _listed(root: Path) -> str:
    links = sorted(f"/dev/v4l/by-id/{link.name}" for link in (root / "dev/v4l/by-id").glob("*"))
    cameras = links or [f"{path} ({name})" for path, name in _nodes(root)]
    return f"there are {', '.join(cameras)}" if cameras else "there are no cameras"


@asynccontextmanager
async def open_video(camera: str, settings: VideoSettings, root: Path = ROOT) -> AsyncIterator[Video]:
    """Open a camera and start streaming."""
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
                await worker.run(device.close)  # after `start`, which continues in the thread if it was cancelled


class LinuxVideo:
    """An open camera. The newest frame stays in its buffer until the next one arrives."""

    def __init__(self, device: CaptureDevice, worker: BusWorker) -> None:
        self.name = device.name
        self.mode = device.mode
        self.frames = 0
        self.broken = 0  # frames that the driver marked as damaged
        self.closed = False  # its buffers must no longer be used
        self._device = device
        self._worker = worker
        self._newest: v4l2.Buffer | None = None
        self._captured = datetime.min
        self._still: tuple[int, Still] | None = None  # number of the frame, and its image
        self._converting = trio.Lock()

    async def arrived(self) -> None:
        """Wait for the next frame; skip older ones that have arrived."""
        await trio.lowlevel.checkpoint()
        before = self.frames
        while True:
            while self._take():
                pass
            if self.frames != before:
                return
            await trio.lowlevel.wait_readable(self._device.fd)

    def _take(self) -> bool:
        """Take one filled buffer, if there is one; return whether there was."""
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
        """Return the newest frame; all callers get the same image of a frame."""
        async with self._converting:
            if self._still is not None and self._still[0] == self.frames:
                return self._still[1]
            if self.closed:
                raise HalError(f"{self._device.path} is closing", Fault.GONE)
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
    """Return when a frame was captured; most drivers use the monotonic clock."""
    now = datetime.now(UTC)
    if buffer.flags & v4l2.TIMESTAMP_MASK != v4l2.TIMESTAMP_MONOTONIC:
        return now
    taken = buffer.timestamp.seconds + buffer.timestamp.microseconds / 1e6
    return now - timedelta(seconds=max(0.0, time.clock_gettime(time.CLOCK_MONOTONIC) - taken))
