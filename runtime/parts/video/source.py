"""Frames of one camera for all of its viewers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import inf
from typing import Final

import structlog
import trio

from engine import Camera, Images, Roster
from rpc.peers import VideoFrame, VideoTrack
from runtime.parts.video.pictures import Converted, Size, convert, notice
from runtime.parts.video.retry import Retries
from schema import ErrorKind, MachineError
from support import Worker

RATE: Final = 15.0  # frames per second; fewer if the camera is slower
CAPTURE_LIMIT: Final = 5.0  # seconds for a picture
UNCHANGED: Final = 1.0  # seconds after which a picture that does not change is sent again
NOTICE_AFTER: Final = 2.0  # seconds without a picture after which viewers see the reason
NOTICE_SIZE: Final = (640, 480)  # where no picture was taken yet
DEPTH: Final = "image/vnd.viam.dep"

SizeOf = Callable[[], Size | None]
"""Returns the size that clients have asked for; None is the camera's own."""


async def take(roster: Roster, name: str) -> bytes:
    """Return a color picture of a camera, by its full name. Raises MachineError, and what its driver raises."""
    try:
        with trio.fail_after(CAPTURE_LIMIT):
            async with roster.find(name).use() as driver:
                assert isinstance(driver, Camera)
                return color_of(await driver.get_images())
    except trio.TooSlowError:
        pass
    raise MachineError(f"{name} has taken no picture for {CAPTURE_LIMIT:g} s", kind=ErrorKind.TIMEOUT)


def color_of(images: Images) -> bytes:
    """Return the first picture that is not a depth map."""
    for image in images.images:
        if image.mime_type != DEPTH and not image.image.startswith(b"DEPTHMAP"):
            return image.image
    raise MachineError("the camera returns no color picture", kind=ErrorKind.UNSUPPORTED)


class CameraSource:
    """Takes pictures of one camera while it has viewers, at RATE, and passes each to the encoders of all viewers.

    A viewer gets the newest frame, never an older one. While the camera fails, it is asked again after growing delays,
    and viewers see the reason instead of a picture.
    """

    def __init__(self, roster: Roster, name: str, size: SizeOf, log: structlog.stdlib.BoundLogger) -> None:
        self.viewers: set[VideoTrack] = set()
        self.taken: Size | None = None  # size of the newest picture
        self.pictures = 0  # taken since the start
        self._roster = roster
        self._name = name
        self._size = size
        self._retries = Retries(
            log,
            "a camera has no picture for its viewers",
            "a camera has pictures for its viewers again",
            camera=name,
        )
        self._worker = Worker(f"video of {name}")
        self._scope = trio.CancelScope()
        self._newest: VideoFrame | None = None
        self._shown: tuple[bytes, Size | None] = (b"", None)  # picture and size of the newest frame
        self._sent_at = -inf

    def join(self, viewer: VideoTrack) -> None:
        """Add a viewer, whose track is live; it gets the newest frame at once."""
        self.viewers.add(viewer)
        if self._newest is not None:
            viewer.send(self._newest)

    def leave(self, viewer: VideoTrack) -> None:
        """Remove a viewer; the source ends with the last one."""
        self.viewers.discard(viewer)
        if not self.viewers:
            self._scope.cancel()

    async def run(self) -> None:
        """Take and send pictures until the last viewer has left."""
        with self._scope:
            async with self._worker.opened():
                due = trio.current_time()
                while True:
                    try:
                        await self._show_picture()
                    except Exception as error:  # whatever a driver raises; it may work again later
                        await self._show_failure(error)
                        due = trio.current_time()
                    else:
                        self._retries.succeeded()
                        due = max(due + 1 / RATE, trio.current_time())
                        await trio.sleep_until(due)

    async def _show_picture(self) -> None:
        data, size = await take(self._roster, self._name), self._size()
        self.pictures += 1
        if self._shown == (data, size):
            if self._newest is not None and trio.current_time() - self._sent_at >= UNCHANGED:
                self._send(self._newest)
            return
        converted: Converted = await self._worker.run(partial(convert, data, size))
        self.taken = converted.taken
        self._shown = data, size
        self._send(converted.frame)

    async def _show_failure(self, error: Exception) -> None:
        """Tell viewers and the log, and wait before the next attempt."""
        reason = self._retries.note(error)
        if trio.current_time() - self._sent_at >= NOTICE_AFTER:
            size = self._size() or NOTICE_SIZE
            self._shown = b"", None
            self._send(await self._worker.run(partial(notice, self._name.partition("/")[2], reason, size)))
        await self._retries.wait()

    def _send(self, frame: VideoFrame) -> None:
        self._newest, self._sent_at = frame, trio.current_time()
        for viewer in tuple(self.viewers):
            viewer.send(frame)
