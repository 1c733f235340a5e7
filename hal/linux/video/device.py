"""A capture device of Video4Linux: blocking calls, made in the camera's thread before and after streaming."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import mmap
import os
from collections.abc import Iterator
from typing import Final, TypeVar

from hal.errors import Fault, HalError
from hal.linux.video import v4l2
from hal.ports.video import PixelFormat, VideoMode, VideoSettings
from hal.video_modes import TOLERANCE, USUAL, Rates, Sizes, choose_rate, choose_size

GROUP: Final = "video"  # the group with access to cameras
USED: Final = "end the program that uses the camera, or remove the other resource of this machine that does"
BUFFERS: Final = 4  # one holds the newest frame, the others are being filled
_END: Final = (errno.EINVAL, errno.ENOTTY, errno.ENODATA)  # the end of an enumeration, or enumeration is not supported

StructT = TypeVar("StructT", bound="ctypes.Structure | ctypes.c_int")
EntryT = TypeVar("EntryT", v4l2.FormatDescription, v4l2.FrameSize, v4l2.FrameInterval)


class CaptureDevice:
    """A capture device. `start` opens it, negotiates a mode and starts streaming; `close` reverts all of that."""

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

    def start(self, settings: VideoSettings) -> None:
        """Open the device and start streaming. HalError if that fails."""
        try:
            self.open()
            self._negotiate(settings)
            self._map()
            self.ioctl(v4l2.STREAMON, ctypes.c_int(v4l2.CAPTURE))
            self._streaming = True
        except OSError as error:
            raise self.error(error) from error

    def open(self) -> None:
        """Open the device. OSError if that fails; HalError if it is not a capture device."""
        self.fd = os.open(self.path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            capability = self.ioctl(v4l2.QUERYCAP, v4l2.Capability())
        except OSError as error:
            if error.errno == errno.ENOTTY:
                raise HalError(f"{self.path} is not a camera", Fault.UNSUPPORTED) from error
            raise
        self.name, self.driver = (text.decode(errors="replace") for text in (capability.card, capability.driver))
        is_node = capability.capabilities & v4l2.CAP_DEVICE_CAPS
        caps = capability.device_caps if is_node else capability.capabilities
        if not (caps & v4l2.CAP_VIDEO_CAPTURE and caps & v4l2.CAP_STREAMING):
            raise HalError(
                f"{self.path} ({self.name}) delivers no frames",
                Fault.UNSUPPORTED,
                remedy="a camera often has a second device for metadata; use the first one",
            )

    def error(self, error: OSError) -> HalError:
        """Return the error for a system error, with messages that are specific to cameras."""
        if error.errno == errno.ENOSPC:
            return HalError(
                f"{self.path}: the USB bus does not have enough bandwidth for {self.mode}",
                Fault.UNSUPPORTED,
                remedy="choose mjpeg, a smaller size or frame rate, or plug the camera into another controller",
            )
        if error.errno == errno.EIO and not os.path.exists(self.path):
            return HalError(f"{self.path}: the camera has vanished", Fault.GONE)
        if error.errno == errno.EBUSY:
            return HalError(f"{self.path} is already used", Fault.BUSY, remedy=USED)
        return HalError.of(error, self.path, group=GROUP)

    def ioctl(self, request: int, argument: StructT) -> StructT:
        """Execute a request. OSError if that fails."""
        fcntl.ioctl(self.fd, request, argument)
        return argument

    def formats(self) -> dict[int, PixelFormat]:
        """Return the pixel formats of the device that are supported, by the kernel's number."""
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

    def _sizes(self, code: int, settings: VideoSettings) -> Iterator[Sizes]:
        enumerated = False
        for entry in self._enumerate(v4l2.ENUM_FRAMESIZES, v4l2.FrameSize(pixel_format=code)):
            enumerated = True
            s = entry.sizes
            if entry.type == v4l2.DISCRETE:
                yield Sizes(s[0], s[1])
            else:
                yield Sizes(s[0], s[3], s[1], s[4], s[2], s[5])
                break
        if not enumerated:  # use the size that the driver would select
            selected = self._format(code, settings.width or USUAL[0], settings.height or USUAL[1], v4l2.TRY_FMT)
            yield Sizes(selected.width, selected.height)

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
        requested = v4l2.Format(type=v4l2.CAPTURE)
        pix = requested.fmt.pix
        pix.width, pix.height, pix.pixelformat, pix.field = width, height, code, v4l2.FIELD_ANY
        selected: v4l2.PixFormat = self.ioctl(request, requested).fmt.pix
        return selected

    def _negotiate(self, settings: VideoSettings) -> None:
        camera = f"{self.path} ({self.name})"
        codes = {pixels: code for code, pixels in reversed(self.formats().items())}
        offers = {pixels: tuple(self._sizes(code, settings)) for pixels, code in codes.items()}
        pixels, width, height = choose_size(offers, settings, camera)
        self.mode = VideoMode(pixels, width, height, settings.rate)
        selected = self._format(codes[pixels], width, height, v4l2.S_FMT)
        if (selected.width, selected.height, selected.pixelformat) != (width, height, codes[pixels]):
            raise HalError(
                f"{camera} selected {selected.width}x{selected.height} instead of {self.mode}, which it offers",
                Fault.UNSUPPORTED,
            )
        self.stride = selected.bytesperline
        self.full_range = selected.quantization == v4l2.QUANTIZATION_FULL or (
            selected.quantization == v4l2.QUANTIZATION_DEFAULT and selected.colorspace == v4l2.COLORSPACE_JPEG
        )
        rate = self._negotiate_rate(tuple(self._rates(codes[pixels], width, height)), settings.rate, camera)
        self.mode = VideoMode(pixels, width, height, round(rate, 3))

    def _negotiate_rate(self, offers: tuple[Rates, ...], requested: float, camera: str) -> float:
        if requested and offers:
            requested = choose_rate(offers, requested, str(self.mode), camera)
        parameters = v4l2.StreamParameters(type=v4l2.CAPTURE)
        try:
            capture = self.ioctl(v4l2.G_PARM, parameters).parm.capture
            if requested and capture.capability & v4l2.CAP_TIMEPERFRAME:
                capture.timeperframe.numerator, capture.timeperframe.denominator = 1000, round(requested * 1000)
                capture = self.ioctl(v4l2.S_PARM, parameters).parm.capture
        except OSError as error:
            if error.errno not in _END:
                raise
            capture = parameters.parm.capture
        per_frame = capture.timeperframe
        rate = float(per_frame.denominator / per_frame.numerator) if per_frame.numerator else 0.0
        if requested and abs(rate - requested) > requested * TOLERANCE:
            raise HalError(
                f"{camera} selected {rate:g} frames/s instead of {requested:g}",
                Fault.UNSUPPORTED,
                remedy=f"use {rate:g}, or omit frame_rate",
            )
        return rate

    def _map(self) -> None:
        granted = self.ioctl(v4l2.REQBUFS, v4l2.RequestBuffers(count=BUFFERS, type=v4l2.CAPTURE, memory=v4l2.MMAP))
        for index in range(granted.count):
            buffer = self.buffer(index)
            self.ioctl(v4l2.QUERYBUF, buffer)
            self.maps.append(mmap.mmap(self.fd, buffer.length, offset=buffer.m.offset))
            self.ioctl(v4l2.QBUF, buffer)

    def buffer(self, index: int = 0) -> v4l2.Buffer:
        """Return a buffer argument to query, queue or dequeue a buffer."""
        return v4l2.Buffer(index=index, type=v4l2.CAPTURE, memory=v4l2.MMAP)

    def close(self) -> None:
        """Stop streaming and close the device. May be called at any time and more than once."""
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
