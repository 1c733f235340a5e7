"""gRPC-Web for any transport: content types, the trailers frame, base64 text and CORS. Pure."""

from __future__ import annotations

import base64
import binascii
from collections.abc import AsyncIterable, AsyncIterator, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rpc.carrier import Headers, MutableHeaders


class Content(Enum):
    """Protocol of a request, by content type."""

    GRPC = "application/grpc"
    WEB = "application/grpc-web"
    WEB_TEXT = "application/grpc-web-text"


CONTENT_TYPES: Final[Mapping[str, Content]] = {
    f"{content.value}{subtype}": content for content in Content for subtype in ("", "+proto")
}
"""Supported content types; others are not gRPC, or gRPC with an unsupported encoding."""

TRAILERS: Final = 0x80  # flag of the last frame
MAX_FRAME: Final = 64 * 1024**2  # bytes of a message in a stream of results

_EXPOSED: Final = (
    "access-control-expose-headers",
    "grpc-status, grpc-message, grpc-status-details-bin, grpc-accept-encoding",
)
_MAX_AGE: Final = ("access-control-max-age", "7200")  # seconds; the maximum that Chromium honors


# Fields of HTTP or the browser that are not metadata of a call
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
    """Return the protocol of a content type, ignoring parameters; None if it is not supported."""
    return CONTENT_TYPES.get(content_type) or CONTENT_TYPES.get(content_type.partition(";")[0].strip().lower())


def call_headers(content: Content, headers: Headers) -> MutableHeaders:
    """Return the header fields of a gRPC-Web call: its metadata, and the content type that `accept` expects."""
    kept = [field for field in headers if field[0] not in _NOT_METADATA]
    return [*kept, ("content-type", content.value)]


def is_grpc(content_type: str) -> bool:
    """Return True for every gRPC or gRPC-Web content type, supported or not."""
    return content_type.startswith("application/grpc")


def cors(origin: str | None) -> MutableHeaders:
    """Return header fields that let a page of `origin` read the response; empty for a request without origin."""
    if origin is None:
        return []
    return [("access-control-allow-origin", origin), ("vary", "origin"), _EXPOSED]


def is_preflight(method: str, fields: Mapping[str, str]) -> bool:
    """Return True for a CORS preflight request, which browsers send before a cross-origin request."""
    return method == "OPTIONS" and "access-control-request-method" in fields


def preflight(fields: Mapping[str, str]) -> MutableHeaders:
    """Return the header fields of the response (204) to a preflight request."""
    return [
        *cors(fields.get("origin", "*")),
        ("access-control-allow-methods", "GET, POST, PUT, DELETE, OPTIONS"),
        ("access-control-allow-headers", fields.get("access-control-request-headers", "*")),
        _MAX_AGE,
    ]


def trailers_frame(status: int, extra: Headers) -> bytes:
    """Encode the last frame of a gRPC-Web response: flag 0x80, length, and the trailers in HTTP/1.1 syntax."""
    text = f"grpc-status: {status}\r\n" + "".join(f"{key}: {value}\r\n" for key, value in extra)
    payload = text.encode("latin-1")
    return bytes([TRAILERS]) + len(payload).to_bytes(4, "big") + payload


class MalformedError(ValueError):
    """A body is not a sequence of complete frames."""


def split_frames(body: bytes) -> tuple[list[bytes], dict[str, str]]:
    """Return the messages and the trailers of a response, which are empty without a trailers frame. MalformedError."""
    messages: list[bytes] = []
    trailers: dict[str, str] = {}
    start = 0
    while start < len(body):
        flag, size = body[start], int.from_bytes(body[start + 1 : start + 5], "big")
        payload = body[start + 5 : start + 5 + size]
        if start + 5 > len(body) or len(payload) < size:
            raise MalformedError("the last frame is not complete")
        if _checked(flag) == TRAILERS:
            trailers = fields_of(payload)
        else:
            messages.append(payload)
        start += 5 + size
    return messages, trailers


async def frames(parts: AsyncIterable[bytes]) -> AsyncIterator[tuple[int, bytes]]:
    """Yield the flag and the payload of each frame when it is complete. MalformedError."""
    received = bytearray()
    async for part in parts:
        received += part
        while len(received) >= 5 and len(received) >= 5 + (size := int.from_bytes(received[1:5], "big")):
            yield _checked(received[0]), bytes(received[5 : 5 + size])
            del received[: 5 + size]
        if len(received) >= 5 and int.from_bytes(received[1:5], "big") > MAX_FRAME:
            raise MalformedError(f"a frame has more than {MAX_FRAME >> 20} MiB")
    if received:
        raise MalformedError("the last frame is not complete")


def fields_of(payload: bytes) -> dict[str, str]:
    """Return the fields of a trailers frame by name in lower case."""
    lines = payload.decode("latin-1").split("\r\n")
    return {key.strip().lower(): value.strip() for key, _, value in (line.partition(":") for line in lines)}


def _checked(flag: int) -> int:
    if flag not in (0, TRAILERS):
        raise MalformedError(f"a frame has the unknown flag {flag:#x}")
    return flag


def to_text(data: bytes | bytearray) -> bytes:
    """Encode one frame of a grpc-web-text response; each frame is padded separately, as browsers expect."""
    return base64.b64encode(data)


class TextDecoder:
    """Incremental base64 decoder for grpc-web-text requests. Input may continue after padding."""

    __slots__ = ("_rest",)

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> bytes:
        """Return the bytes that `data` completes; ValueError if it is not base64."""
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
        """Raise ValueError if the body ended inside a group of four characters."""
        if self._rest:
            raise ValueError("grpc-web-text body is cut off")
