"""Detects the format of an encoded image. Pure."""

from __future__ import annotations

from typing import Final

_MAGIC: Final = (
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"RGBA", "image/vnd.viam.rgba"),
    (b"DEPTHMAP", "image/vnd.viam.dep"),
    (b"GIF8", "image/gif"),
    (b"qoif", "image/qoi"),
)


def mime_type(data: bytes) -> str:
    """Return the media type that the first bytes indicate; application/octet-stream if unknown."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((mime for magic, mime in _MAGIC if data.startswith(magic)), "application/octet-stream")
