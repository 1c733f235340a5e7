"""Decoding and encoding of images with Pillow, imported on first use. It takes milliseconds: call it in a worker."""

from __future__ import annotations

import io
import struct
from typing import TYPE_CHECKING, Final

from schema.errors import ErrorKind, MachineError

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

JPEG: Final = "image/jpeg"
PNG: Final = "image/png"
RGBA: Final = "image/vnd.viam.rgba"
DEPTH: Final = "image/vnd.viam.dep"
FORMATS: Final = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "QOI")  # Pillow supports more, some of which run other programs
LARGEST: Final = 64_000_000  # pixels; larger images are mistakes or attacks
QUALITY: Final = 92  # of JPEG
_RAW: Final = struct.Struct(">4sII")  # "RGBA", width, height, followed by four bytes per pixel


def decode(data: bytes, mime_type: str = "") -> Picture:
    """Decode an image to RGB. INVALID if the data is not a color image, or too large."""
    if mime_type == DEPTH or data.startswith(b"DEPTHMAP"):
        raise MachineError("the image is a depth map", kind=ErrorKind.INVALID, remedy="use a color image")
    from PIL import Image, UnidentifiedImageError

    if data.startswith(b"RGBA"):
        return _decode_raw(data)
    try:
        with Image.open(io.BytesIO(data), formats=FORMATS) as image:
            _check_size(*image.size)
            return image.convert("RGB")
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        kind = f" ({mime_type})" if mime_type else ""
        raise MachineError(
            f"{len(data)} bytes{kind} are not a readable image: {_first_line(error)}",
            kind=ErrorKind.INVALID,
            remedy=f"use {JPEG} or {PNG}",
        ) from error


def _decode_raw(data: bytes) -> Picture:
    from PIL import Image

    width, height = _RAW.unpack_from(data)[1:] if len(data) >= _RAW.size else (0, 0)
    _check_size(width, height)
    if not width or not height or len(data) - _RAW.size != 4 * width * height:
        raise MachineError(
            f"{len(data)} bytes of {RGBA} are not {width} x {height} pixels of 4 bytes", kind=ErrorKind.INVALID
        )
    return Image.frombytes("RGBA", (width, height), data[_RAW.size :]).convert("RGB")


def _check_size(width: int, height: int) -> None:
    if width * height > LARGEST:
        raise MachineError(
            f"the image has {width} x {height} pixels", kind=ErrorKind.INVALID, remedy=f"use at most {LARGEST} pixels"
        )


def _first_line(error: Exception) -> str:
    text = str(error)
    return "unknown format" if "cannot identify" in text else text.partition("\n")[0] or repr(error)


def encode(picture: Picture, mime_type: str) -> tuple[bytes, str]:
    """Encode a picture as PNG if `mime_type` is PNG, otherwise as JPEG; return the data and its MIME type."""
    buffer = io.BytesIO()
    if mime_type == PNG:
        picture.save(buffer, "PNG", compress_level=3)
        return buffer.getvalue(), PNG
    picture.save(buffer, "JPEG", quality=QUALITY)
    return buffer.getvalue(), JPEG
