"""Conversion of camera frames to JPEG images. Imports Pillow when the first raw frame is converted. Pure."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hal.ports.video import PixelFormat

if TYPE_CHECKING:
    from PIL import Image

QUALITY: Final = 90  # of encoded JPEG images
_DHT: Final = b"\xff\xc4"
_SCAN: Final = b"\xff\xda"

# The tables of ITU-T T.81 annex K.3, which motion JPEG omits: class and number, counts of codes by length, values.
_TABLES: Final = (
    (0x00, "00010501010101010100000000000000", "000102030405060708090a0b"),
    (
        0x10,
        "0002010303020403050504040000017d",
        "01020300041105122131410613516107227114328191a1082342b1c11552d1f02433627282090a161718191a25262728292a3435363738"
        "393a434445464748494a535455565758595a636465666768696a737475767778797a838485868788898a92939495969798999aa2a3a4a5"
        "a6a7a8a9aab2b3b4b5b6b7b8b9bac2c3c4c5c6c7c8c9cad2d3d4d5d6d7d8d9dae1e2e3e4e5e6e7e8e9eaf1f2f3f4f5f6f7f8f9fa",
    ),
    (0x01, "00030101010101010101010000000000", "000102030405060708090a0b"),
    (
        0x11,
        "00020102040403040705040400010277",
        "000102031104052131061241510761711322328108144291a1b1c109233352f0156272d10a162434e125f11718191a262728292a353637"
        "38393a434445464748494a535455565758595a636465666768696a737475767778797a82838485868788898a92939495969798999aa2a3"
        "a4a5a6a7a8a9aab2b3b4b5b6b7b8b9bac2c3c4c5c6c7c8c9cad2d3d4d5d6d7d8d9dae2e3e4e5e6e7e8e9eaf2f3f4f5f6f7f8f9fa",
    ),
)
_CONTENT: Final = b"".join(
    bytes([number]) + bytes.fromhex(counts) + bytes.fromhex(values) for number, counts, values in _TABLES
)
HUFFMAN_TABLES: Final = _DHT + (len(_CONTENT) + 2).to_bytes(2, "big") + _CONTENT


@dataclass(frozen=True, slots=True)
class RawFrame:
    """A frame from a camera. `stride` is the distance of rows in bytes; 0 if rows have no padding."""

    data: bytes
    pixels: PixelFormat
    width: int
    height: int
    stride: int = 0
    full_range: bool = False  # luma from 0 to 255 instead of 16 to 235


def to_jpeg(frame: RawFrame) -> bytes:
    """Convert a frame to a JPEG image; ValueError if it is incomplete or invalid."""
    if frame.pixels == "mjpeg":
        return complete_jpeg(frame.data)
    buffer = io.BytesIO()
    _CONVERTERS[frame.pixels](frame).save(buffer, "jpeg", quality=QUALITY)
    return buffer.getvalue()


def complete_jpeg(data: bytes) -> bytes:
    """Convert a frame of motion JPEG to a complete image: add Huffman tables, remove data after its end."""
    end = data.rfind(b"\xff\xd9")
    scan = data.find(_SCAN)
    if not data.startswith(b"\xff\xd8") or end < 0 or scan < 0:
        raise ValueError(f"{len(data)} bytes are not a complete JPEG image")
    if _DHT in data[:scan]:
        return data[: end + 2]
    return data[:scan] + HUFFMAN_TABLES + data[scan : end + 2]


def _plane(data: bytes, width: int, height: int, stride: int, mode: str = "L", raw: str = "L") -> Image.Image:
    from PIL import Image

    if len(data) < stride * (height - 1) + width * len(mode):
        raise ValueError(f"{len(data)} bytes are too few for {width}x{height}")
    padded = data.ljust(stride * height, b"\0")  # the last row may be shorter than the others
    return Image.frombytes(mode, (width, height), padded, "raw", raw, stride, 1)


def _colour(frame: RawFrame, luma: Image.Image, blue: Image.Image, red: Image.Image) -> Image.Image:
    """Merge planes to an image with the full range of JPEG; the two colour planes are smaller."""
    from PIL import Image

    if not frame.full_range:
        luma = luma.point([_scaled(value, 16, 219, 0) for value in range(256)])
        blue, red = (plane.point([_scaled(value, 128, 224, 128) for value in range(256)]) for plane in (blue, red))
    size = (frame.width, frame.height)
    return Image.merge("YCbCr", (luma, blue.resize(size), red.resize(size)))


def _scaled(value: int, zero: int, span: int, to: int) -> int:
    """Scale a value from the video range of Rec. ITU-R BT.601 to 0 to 255."""
    return min(255, max(0, round((value - zero) * 255 / span) + to))


def _yuyv(frame: RawFrame) -> Image.Image:
    stride = frame.stride or frame.width * 2
    width, height, data = frame.width, frame.height, frame.data
    return _colour(
        frame,
        _plane(data[0::2], width, height, stride // 2),
        _plane(data[1::4], width // 2, height, stride // 4),
        _plane(data[3::4], width // 2, height, stride // 4),
    )


def _nv12(frame: RawFrame) -> Image.Image:
    stride = frame.stride or frame.width
    width, height = frame.width, frame.height
    colours = frame.data[stride * height :]
    return _colour(
        frame,
        _plane(frame.data[: stride * height], width, height, stride),
        _plane(colours[0::2], width // 2, height // 2, stride // 2),
        _plane(colours[1::2], width // 2, height // 2, stride // 2),
    )


def _rgb24(frame: RawFrame) -> Image.Image:
    return _plane(frame.data, frame.width, frame.height, frame.stride or frame.width * 3, "RGB", "RGB")


def _bgr24(frame: RawFrame) -> Image.Image:
    return _plane(frame.data, frame.width, frame.height, frame.stride or frame.width * 3, "RGB", "BGR")


def _grey(frame: RawFrame) -> Image.Image:
    return _plane(frame.data, frame.width, frame.height, frame.stride or frame.width)


_CONVERTERS: Final = {"yuyv": _yuyv, "nv12": _nv12, "rgb24": _rgb24, "bgr24": _bgr24, "grey": _grey}
