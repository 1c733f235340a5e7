"""One capture device of Video4Linux: blocking calls, made in the camera's own thread while frames are not flowing."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import mmap
import os
from collections.abc import Iterator
from typing import Final, TypeVar

from hal.errors import Fault, HalError
from hal.linux import v4l2
from hal.ports.video import PixelFormat, VideoMode, VideoSettings
from hal.video_modes import TOLERANCE, USUAL, Rates, Sizes, choose_rate, choose_size

GROUP: Final = "video"  # whose members may use cameras
USED: Final = "end the program, or remove the other resource of this machine, that shows the camera"
BUFFERS: Final = 4  # one is kept as the newest, the others are being filled
_END: Final = (errno.EINVAL, errno.ENOTTY, errno.ENODATA)  # of an enumeration, or there is none

StructT = TypeVar("StructT", bound="ctypes.Structure | ctypes.c_int")
EntryT = TypeVar("EntryT", v4l2.FormatDescription, v4l2.FrameSize, v4l2.FrameInterval)


class CaptureDevice:
    """Opened, agreed on a mode and started by `start`; `close` undoes whatever has been done."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.fd = -1
        self.name = ""
        self.driver = ""
        self.mode = VideoMode("mjpeg", 0, 0, 0.0)
        self.stride = 0
        self.full_range = False
        self.maps: list[mmap.mmap] = []
        self._streaming = False

    def start(self, wanted: VideoSettings) -> None:
        """Frames are flowing when this returns; HalError otherwise."""
        try:
            self.open()
            self._agree(wanted)
            self._map()
            self.ioctl(v4l2.STREAMON, ctypes.c_int(v4l2.CAPTURE))
            self._streaming = True
        except OSError as error:
            raise self.error(error) from error

    def open(self) -> None:
        """OSError if that fails; HalError if it is no capture device."""
        self.fd = os.open(self.path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            said = self.ioctl(v4l2.QUERYCAP, v4l2.Capability())
        except OSError as error:
            if error.errno == errno.ENOTTY:
                raise HalError(f"{self.path} is not a camera", Fault.UNSUPPORTED) from error
            raise
        self.name, self.driver = (text.decode(errors="replace") for text in (said.card, said.driver))
        caps = said.device_caps if said.capabilities & v4l2.CAP_DEVICE_CAPS else said.capabilities
        if not (caps & v4l2.CAP_VIDEO_CAPTURE and caps & v4l2.CAP_STREAMING):
            raise HalError(
                f"{self.path} ({self.name}) delivers no frames",
                Fault.UNSUPPORTED,
                remedy="a camera often has a second device, for what is about its frames; use the other one",
            )

    def error(self, error: OSError) -> HalError:
        """In words that fit a camera."""
        if error.errno == errno.ENOSPC:
            return HalError(
                f"{self.path}: the USB bus has no room for {self.mode}",
                Fault.UNSUPPORTED,
                remedy="choose mjpeg, a smaller size or frame rate, or plug the camera into another controller",
            )
        if error.errno == errno.EIO and not os.path.exists(self.path):
            return HalError(f"{self.path}: the camera has vanished", Fault.GONE)
        if error.errno == errno.EBUSY:
            return HalError(f"{self.path} is already used", Fault.BUSY, remedy=USED)
        return HalError.of(error, self.path, group=GROUP)

    def ioctl(self, request: int, argument: StructT) -> StructT:
        """OSError if that fails."""
        fcntl.ioctl(self.fd, request, argument)
        return argument

    def formats(self) -> dict[int, PixelFormat]:
        """Formats that can be made a picture of, by the kernel's number."""
        described = self._enumerate(v4l2.ENUM_FMT, v4l2.FormatDescription(type=v4l2.CAPTURE))
        return {f.pixelformat: v4l2.FORMATS[f.pixelformat] for f in described if f.pixelformat in v4l2.FORMATS}

    def _enumerate(self, request: int, entry: EntryT) -> Iterator[EntryT]:
        index = 0
        while True:
            item = type(entry).from_buffer_copy(entry)
            item.index = index
            try:
                yield self.ioctl(request, item)
            except OSError as error:
                if error.errno in _END:
                    return
                raise
            index += 1

    def _sizes(self, code: int, wanted: VideoSettings) -> Iterator[Sizes]:
        found = False
        for entry in self._enumerate(v4l2.ENUM_FRAMESIZES, v4l2.FrameSize(pixel_format=code)):
            found = True
            s = entry.sizes
            if entry.type == v4l2.DISCRETE:
                yield Sizes(s[0], s[1])
            else:
                yield Sizes(s[0], s[3], s[1], s[4], s[2], s[5])
                break
        if not found:  # what the driver would make of it
            tried = self._format(code, wanted.width or USUAL[0], wanted.height or USUAL[1], v4l2.TRY_FMT)
            yield Sizes(tried.width, tried.height)

    def _rates(self, code: int, width: int, height: int) -> Iterator[Rates]:
        first = v4l2.FrameInterval(pixel_format=code, width=width, height=height)
        for entry in self._enumerate(v4l2.ENUM_FRAMEINTERVALS, first):
            rates = [i.denominator / i.numerator if i.numerator else 0.0 for i in entry.intervals[:2]]
            if entry.type == v4l2.DISCRETE:
                yield Rates(rates[0], rates[0])
            else:
                yield Rates(rates[1], rates[0])
                return

    def _format(self, code: int, width: int, height: int, request: int) -> v4l2.PixFormat:
        asked = v4l2.Format(type=v4l2.CAPTURE)
        pix = asked.fmt.pix
        pix.width, pix.height, pix.pixelformat, pix.field = width, height, code, v4l2.FIELD_ANY
        given: v4l2.PixFormat = self.ioctl(request, asked).fmt.pix
        return given

    def _agree(self, wanted: VideoSettings) -> None:
        camera = f"{self.path} ({self.name})"
        codes = {pixels: code for code, pixels in reversed(self.formats().items())}
        offers = {pixels: tuple(self._sizes(code, wanted)) for pixels, code in codes.items()}
        pixels, width, height = choose_size(offers, wanted, camera)
        self.mode = VideoMode(pixels, width, height, wanted.rate)
        given = self._format(codes[pixels], width, height, v4l2.S_FMT)
        if (given.width, given.height, given.pixelformat) != (width, height, codes[pixels]):
            raise HalError(
                f"{camera} does not keep what it offers: {given.width}x{given.height} instead of {self.mode}",
                Fault.UNSUPPORTED,
            )
        self.stride = given.bytesperline
        self.full_range = given.quantization == v4l2.QUANTIZATION_FULL or (
            given.quantization == v4l2.QUANTIZATION_DEFAULT and given.colorspace == v4l2.COLORSPACE_JPEG
        )
        rate = self._agree_rate(tuple(self._rates(codes[pixels], width, height)), wanted.rate, camera)
        self.mode = VideoMode(pixels, width, height, round(rate, 3))

    def _agree_rate(self, offers: tuple[Rates, ...], wanted: float, camera: str) -> float:
        if wanted and offers:
            wanted = choose_rate(offers, wanted, str(self.mode), camera)
        parameters = v4l2.StreamParameters(type=v4l2.CAPTURE)
        try:
            said = self.ioctl(v4l2.G_PARM, parameters).parm.capture
            if wanted and said.capability & v4l2.CAP_TIMEPERFRAME:
                said.timeperframe.numerator, said.timeperframe.denominator = 1000, round(wanted * 1000)
                said = self.ioctl(v4l2.S_PARM, parameters).parm.capture
        except OSError as error:
            if error.errno not in _END:
                raise
            said = parameters.parm.capture
        per_frame = said.timeperframe
        rate = float(per_frame.denominator / per_frame.numerator) if per_frame.numerator else 0.0
        if wanted and abs(rate - wanted) > wanted * TOLERANCE:
            raise HalError(
                f"{camera} has {rate:g} frames/s instead of {wanted:g}",
                Fault.UNSUPPORTED,
                remedy=f"use {rate:g}, or leave frame_rate to the camera",
            )
        return rate

    def _map(self) -> None:
        asked = self.ioctl(v4l2.REQBUFS, v4l2.RequestBuffers(count=BUFFERS, type=v4l2.CAPTURE, memory=v4l2.MMAP))
        for index in range(asked.count):
            buffer = self.buffer(index)
            self.ioctl(v4l2.QUERYBUF, buffer)
            self.maps.append(mmap.mmap(self.fd, buffer.length, offset=buffer.m.offset))
            self.ioctl(v4l2.QBUF, buffer)

    def buffer(self, index: int = 0) -> v4l2.Buffer:
        """To ask about, to queue, or to be filled in."""
        return v4l2.Buffer(index=index, type=v4l2.CAPTURE, memory=v4l2.MMAP)

    def close(self) -> None:
        """Stop and let go. May be called at any time, and again."""
        if self._streaming:
            self._streaming = False
            try:
                self.ioctl(v4l2.STREAMOFF, ctypes.c_int(v4l2.CAPTURE))
            except OSError:  # gone
                pass
        while self.maps:
            self.maps.pop().close()
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)
