"""The binary interface of Video4Linux 2: structures and requests of a capture device. Pure.

Layouts and numbers are from linux/videodev2.h; the interface is described in the kernel's userspace-api/media/v4l.
"""

from __future__ import annotations

import ctypes
from typing import Final

from hal.ports.video import PixelFormat

u8, u32 = ctypes.c_uint8, ctypes.c_uint32

CAPTURE: Final = 1  # V4L2_BUF_TYPE_VIDEO_CAPTURE
MMAP: Final = 1  # V4L2_MEMORY_MMAP
FIELD_ANY: Final = 0
CAP_VIDEO_CAPTURE: Final = 0x00000001
CAP_STREAMING: Final = 0x04000000
CAP_DEVICE_CAPS: Final = 0x80000000
CAP_TIMEPERFRAME: Final = 0x1000
DISCRETE: Final = 1  # V4L2_FRMSIZE_TYPE_DISCRETE, V4L2_FRMIVAL_TYPE_DISCRETE
BUFFER_ERROR: Final = 0x0040
TIMESTAMP_MASK: Final = 0xE000
TIMESTAMP_MONOTONIC: Final = 0x2000
COLORSPACE_JPEG: Final = 7
QUANTIZATION_DEFAULT: Final = 0
QUANTIZATION_FULL: Final = 1


def fourcc(code: str) -> int:
    """Return the number of a pixel format for its four letters."""
    return int.from_bytes(code.encode("ascii"), "little")


FORMATS: Final[dict[int, PixelFormat]] = {
    fourcc("MJPG"): "mjpeg",
    fourcc("JPEG"): "mjpeg",
    fourcc("YUYV"): "yuyv",
    fourcc("NV12"): "nv12",
    fourcc("RGB3"): "rgb24",
    fourcc("BGR3"): "bgr24",
    fourcc("GREY"): "grey",
}
"""The supported pixel formats by the kernel's number."""


class Capability(ctypes.Structure):
    """struct v4l2_capability."""

    _fields_ = (
        ("driver", ctypes.c_char * 16),
        ("card", ctypes.c_char * 32),
        ("bus_info", ctypes.c_char * 32),
        ("version", u32),
        ("capabilities", u32),
        ("device_caps", u32),
        ("reserved", u32 * 3),
    )


class FormatDescription(ctypes.Structure):
    """struct v4l2_fmtdesc."""

    _fields_ = (
        ("index", u32),
        ("type", u32),
        ("flags", u32),
        ("description", ctypes.c_char * 32),
        ("pixelformat", u32),
        ("mbus_code", u32),
        ("reserved", u32 * 3),
    )


class FrameSize(ctypes.Structure):
    """struct v4l2_frmsizeenum; a discrete size is in the first two of `sizes`: width, height.

    Otherwise they are minimum width, maximum width, its step, minimum height, maximum height, its step.
    """

    _fields_ = (
        ("index", u32),
        ("pixel_format", u32),
        ("type", u32),
        ("sizes", u32 * 6),
        ("reserved", u32 * 2),
    )


class Fraction(ctypes.Structure):
    """struct v4l2_fract."""

    _fields_ = (("numerator", u32), ("denominator", u32))


class FrameInterval(ctypes.Structure):
    """struct v4l2_frmivalenum; `intervals` begins with the discrete value, otherwise it is minimum, maximum, step."""

    _fields_ = (
        ("index", u32),
        ("pixel_format", u32),
        ("width", u32),
        ("height", u32),
        ("type", u32),
        ("intervals", Fraction * 3),
        ("reserved", u32 * 2),
    )


class PixFormat(ctypes.Structure):
    """struct v4l2_pix_format."""

    _fields_ = (
        ("width", u32),
        ("height", u32),
        ("pixelformat", u32),
        ("field", u32),
        ("bytesperline", u32),
        ("sizeimage", u32),
        ("colorspace", u32),
        ("priv", u32),
        ("flags", u32),
        ("ycbcr_enc", u32),
        ("quantization", u32),
        ("xfer_func", u32),
    )


class _FormatUnion(ctypes.Union):
    _fields_ = (
        ("pix", PixFormat),
        ("raw_data", u8 * 200),
        ("pointer", ctypes.c_void_p),  # the pointers in v4l2_window determine the alignment
    )


class Format(ctypes.Structure):
    """struct v4l2_format."""

    _fields_ = (("type", u32), ("fmt", _FormatUnion))


class RequestBuffers(ctypes.Structure):
    """struct v4l2_requestbuffers."""

    _fields_ = (
        ("count", u32),
        ("type", u32),
        ("memory", u32),
        ("capabilities", u32),
        ("flags", u8),
        ("reserved", u8 * 3),
    )


class _Timeval(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("microseconds", ctypes.c_long))


class _Timecode(ctypes.Structure):
    _fields_ = (("type", u32), ("flags", u32), ("values", u8 * 8))


class _Memory(ctypes.Union):
    _fields_ = (("offset", u32), ("userptr", ctypes.c_ulong), ("planes", ctypes.c_void_p), ("fd", ctypes.c_int32))


class Buffer(ctypes.Structure):
    """struct v4l2_buffer."""

    _fields_ = (
        ("index", u32),
        ("type", u32),
        ("bytesused", u32),
        ("flags", u32),
        ("field", u32),
        ("timestamp", _Timeval),
        ("timecode", _Timecode),
        ("sequence", u32),
        ("memory", u32),
        ("m", _Memory),
        ("length", u32),
        ("reserved2", u32),
        ("request_fd", ctypes.c_int32),
    )


class _CaptureParameters(ctypes.Structure):
    _fields_ = (
        ("capability", u32),
        ("capturemode", u32),
        ("timeperframe", Fraction),
        ("extendedmode", u32),
        ("readbuffers", u32),
        ("reserved", u32 * 4),
    )


class _StreamUnion(ctypes.Union):
    _fields_ = (("capture", _CaptureParameters), ("raw_data", u8 * 200))


class StreamParameters(ctypes.Structure):
    """struct v4l2_streamparm."""

    _fields_ = (("type", u32), ("parm", _StreamUnion))


_WRITE, _READ = 1, 2


def _request(direction: int, number: int, size: int) -> int:
    return direction << 30 | size << 16 | ord("V") << 8 | number


def _both(number: int, kind: type[ctypes.Structure]) -> int:
    return _request(_READ | _WRITE, number, ctypes.sizeof(kind))


QUERYCAP: Final = _request(_READ, 0, ctypes.sizeof(Capability))
ENUM_FMT: Final = _both(2, FormatDescription)
S_FMT: Final = _both(5, Format)
REQBUFS: Final = _both(8, RequestBuffers)
QUERYBUF: Final = _both(9, Buffer)
QBUF: Final = _both(15, Buffer)
DQBUF: Final = _both(17, Buffer)
STREAMON: Final = _request(_WRITE, 18, 4)
STREAMOFF: Final = _request(_WRITE, 19, 4)
G_PARM: Final = _both(21, StreamParameters)
S_PARM: Final = _both(22, StreamParameters)
TRY_FMT: Final = _both(64, Format)
ENUM_FRAMESIZES: Final = _both(74, FrameSize)
ENUM_FRAMEINTERVALS: Final = _both(75, FrameInterval)
