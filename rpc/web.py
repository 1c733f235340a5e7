"""gRPC-Web without a transport: content types, the trailers frame, base64 text, CORS. Shared by HTTP/1.1 and HTTP/2."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from enum import Enum
from typing import Final

from rpc.carrier import Headers, MutableHeaders


class Content(Enum):
    """Which protocol a request speaks, by its content type."""

    GRPC = "application/grpc"
    WEB = "application/grpc-web"
    WEB_TEXT = "application/grpc-web-text"


CONTENT_TYPES: Final[Mapping[str, Content]] = {
    f"{content.value}{subtype}": content for content in Content for subtype in ("", "+proto")
}
"""Content types that are answered; everything else is not gRPC, or gRPC in an encoding that nobody here speaks."""

_EXPOSED: Final = (
    "access-control-expose-headers",
    "grpc-status, grpc-message, grpc-status-details-bin, grpc-accept-encoding",
)
_MAX_AGE: Final = ("access-control-max-age", "7200")  # seconds; the longest that Chromium honours


# Fields that belong to HTTP or to the browser and mean nothing to a call
_NOT_METADATA: Final = frozenset(
    {
        "accept",
        "accept-encoding",
        "accept-language",
        "cache-control",
        "connection",
        "content-length",
        "content-type",
        "cookie",
        "expect",
        "host",
        "keep-alive",
        "origin",
        "pragma",
        "proxy-connection",
        "referer",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)


def content_of(content_type: str) -> Content | None:
    """Which of gRPC's protocols a content type means, parameters aside; None if none of those served here."""
    return CONTENT_TYPES.get(content_type) or CONTENT_TYPES.get(content_type.partition(";")[0].strip().lower())


def call_headers(content: Content, headers: Headers) -> MutableHeaders:
    """What a gRPC-Web call sees of its request's fields: its metadata, and the content type as `accept` knows it."""
    kept = [field for field in headers if field[0] not in _NOT_METADATA]
    return [*kept, ("content-type", content.value)]


def is_grpc(content_type: str) -> bool:
    """True for every content type that means gRPC or gRPC-Web, known subtype or not."""
    return content_type.startswith("application/grpc")


def cors(origin: str | None) -> MutableHeaders:
    """Header fields that let a page of any origin read a response; none for a request without origin."""
    if origin is None:
        return []
    return [("access-control-allow-origin", origin), ("vary", "origin"), _EXPOSED]


def is_preflight(method: str, fields: Mapping[str, str]) -> bool:
    """True for the question a browser asks before a request across origins."""
    return method == "OPTIONS" and "access-control-request-method" in fields


def preflight(fields: Mapping[str, str]) -> MutableHeaders:
    """Header fields of the answer (204) to a preflight."""
    return [
        *cors(fields.get("origin", "*")),
        ("access-control-allow-methods", "GET, POST, PUT, DELETE, OPTIONS"),
        ("access-control-allow-headers", fields.get("access-control-request-headers", "*")),
        _MAX_AGE,
    ]


def trailers_frame(status: int, extra: Headers) -> bytes:
    """The last frame of a gRPC-Web response: flag 0x80, length, and the trailers as HTTP/1.1 would write them."""
    text = f"grpc-status: {status}\r\n" + "".join(f"{key}: {value}\r\n" for key, value in extra)
    payload = text.encode("latin-1")
    return b"\x80" + len(payload).to_bytes(4, "big") + payload


def to_text(data: bytes) -> bytes:
    """One frame of a grpc-web-text response, padded by itself as browsers' decoders expect."""
    return base64.b64encode(data)


class TextDecoder:
    """Base64 of a grpc-web-text request, in pieces of any size; each padded piece may be followed by another."""

    __slots__ = ("_rest",)

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> bytes:
        """What `data` completes; ValueError if it is not base64."""
        data = self._rest + data
        whole = len(data) & ~3
        self._rest = data[whole:]
        out = []
        start = 0
        while start < whole:
            padding = data.find(b"=", start, whole)
            end = whole if padding < 0 else (padding | 3) + 1
            try:
                out.append(base64.b64decode(data[start:end], validate=True))
            except binascii.Error as error:
                raise ValueError("grpc-web-text body is not base64") from error
            start = end
        return b"".join(out)

    def end(self) -> None:
        """ValueError if the body stopped inside a group of four."""
        if self._rest:
            raise ValueError("grpc-web-text body is cut off")
