"""Decoding and encoding of images with Pillow, imported on first use. It takes milliseconds: call it in a worker."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Final

from schema import ErrorKind, MachineError
from support.media import pictures

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

JPEG: Final = "image/jpeg"
PNG: Final = "image/png"
RGBA: Final = "image/vnd.viam.rgba"
DEPTH: Final = "image/vnd.viam.dep"
QUALITY: Final = 92  # of JPEG


def decode(data: bytes, mime_type: str = "") -> Picture:
    """Decode an image to RGB, upright. INVALID if the data is not a color image, or too large."""
    if mime_type == DEPTH or data.startswith(b"DEPTHMAP"):
        raise MachineError("the image is a depth map", kind=ErrorKind.INVALID, remedy="use a color image")
    return pictures.decode(data, stated=mime_type)


def encode(picture: Picture, mime_type: str) -> tuple[bytes, str]:
    """Encode a picture as PNG if `mime_type` is PNG, otherwise as JPEG; return the data and its MIME type."""
    buffer = io.BytesIO()
    if mime_type == PNG:
        picture.save(buffer, "PNG", compress_level=3)
        return buffer.getvalue(), PNG
    picture.save(buffer, "JPEG", quality=QUALITY)
    return buffer.getvalue(), JPEG
