"""Validation of request and response header lists (RFC 9113 section 8). Pure.

The names of a request are validated once for each distinct sequence of names, and the result is cached.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from rpc.carrier import Headers
from rpc.errors import PROTOCOL_ERROR, StreamFault

_TOKEN: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9a-z]+\Z")
_CONNECTION: Final = frozenset({"connection", "proxy-connection", "keep-alive", "transfer-encoding", "upgrade"})
_REQUEST: Final = frozenset({":method", ":scheme", ":path", ":authority"})
_REQUIRED: Final = frozenset({":method", ":scheme", ":path"})
_RESPONSE: Final = frozenset({":status"})

_MAX_SHAPES: Final = 256
_MAX_SHAPE_TEXT: Final = 1024  # characters; longer sequences are not cached
_request_shapes: set[tuple[str, ...]] = set()


def check_request(headers: Headers, fields: Mapping[str, str]) -> None:
    """Raise StreamFault unless `headers` are valid request headers. `fields` is `dict(headers)`."""
    shape = tuple(fields)
    if len(fields) != len(headers) or shape not in _request_shapes:
        _check(headers, _REQUEST, _REQUIRED)
        if len(fields) == len(headers) and sum(map(len, shape)) <= _MAX_SHAPE_TEXT:
            if len(_request_shapes) >= _MAX_SHAPES:
                _request_shapes.clear()
            _request_shapes.add(shape)
    path = fields[":path"]
    if path[:1] != "/" and not (path == "*" and fields[":method"] == "OPTIONS"):
        raise _malformed(f":path {path[:40]!r}")
    if fields.get("te", "trailers") != "trailers":
        raise _malformed("te other than trailers")


def check_response(headers: Headers) -> None:
    """Raise StreamFault unless `headers` are valid response headers."""
    _check(headers, _RESPONSE, _RESPONSE)


def check_trailers(headers: Headers) -> None:
    """Raise StreamFault unless `headers` are valid trailers."""
    _check(headers, frozenset(), frozenset())


def content_length(fields: Mapping[str, str]) -> int | None:
    """Return the value of `content-length`, None if absent; StreamFault if it is not a number."""
    value = fields.get("content-length")
    if value is None:
        return None
    if not (value.isascii() and value.isdigit() and len(value) < 19):
        raise _malformed("content-length")
    return int(value)


def _check(headers: Headers, allowed: frozenset[str], required: frozenset[str]) -> None:
    seen: set[str] = set()
    regular = False
    for name, _ in headers:
        if name[:1] == ":":
            if regular or name not in allowed or name in seen:
                raise _malformed(f"pseudo-header field {name[:40]!r} out of place")
            seen.add(name)
            continue
        regular = True
        if name in _CONNECTION or not _TOKEN.match(name):
            raise _malformed(f"field name {name[:40]!r}")
    if not required <= seen:
        raise _malformed(f"without {', '.join(sorted(required - seen))}")


def _malformed(text: str) -> StreamFault:
    return StreamFault(PROTOCOL_ERROR, "header fields", text)
