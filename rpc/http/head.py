"""Strict parser for HTTP/1.1 request heads. Pure.

Syntax that two implementations could interpret differently is refused, because a proxy in front of this server may be
the other implementation (request smuggling): bare CR or LF, folded lines, two framings, a repeated or listed length,
white space around names, and a target whose host differs from the Host field.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from rpc.carrier import Headers
from rpc.http.limits import HttpLimits

_TOKEN: Final = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_REQUEST_LINE: Final = re.compile(rb"(%b) ([\x21-\x7e]+) HTTP/([0-9])\.([0-9])\Z" % _TOKEN)
_FIELD: Final = re.compile(
    rb"(%b):[ \t]*+((?:[\x21-\x7e\x80-\xff]++(?:[ \t]++[\x21-\x7e\x80-\xff]++)*+)?)[ \t]*+\Z" % _TOKEN
)
_HOST: Final = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._~-]+)(?::[0-9]{1,5})?\Z")
_ONCE: Final = frozenset({"host", "content-length", "transfer-encoding", "content-type", "authorization", "origin"})
_BARE: Final = re.compile(rb"(?<!\r)\n|\r(?!\n)")


class HeadError(Exception):
    """Request that cannot be served, with an HTTP status and a short text that is safe to send."""

    def __init__(self, status: int, text: str, *extra: tuple[str, str]) -> None:
        super().__init__(text)
        self.status = status
        self.text = text
        self.extra = extra  # additional header fields of the response


@dataclass(frozen=True, slots=True)
class Head:
    """Head of a request. Field names are lower-case, values Latin-1."""

    method: str
    path: str  # origin form with query, or "*"
    version: str  # "1.0" or "1.1"
    host: str  # "" only in HTTP/1.0
    fields: Headers
    first: Mapping[str, str] = field(init=False, compare=False)  # of each name, the first value

    def __post_init__(self) -> None:
        object.__setattr__(self, "first", dict(reversed(self.fields)))

    def get(self, name: str) -> str:
        """Return the value of the first field `name`, "" if absent."""
        return self.first.get(name, "")

    def tokens(self, name: str) -> set[str]:
        """Return the comma-separated tokens of all fields `name`, lower-case."""
        if name not in self.first:
            return set()
        return {
            word.strip().lower()
            for key, value in self.fields
            if key == name
            for word in value.split(",")
            if word.strip()
        }


def find_end(data: bytes | bytearray, limits: HttpLimits) -> int:
    """Return the length of the head at the start of `data`, including its empty line; 0 if more bytes are needed.

    Raises HeadError as soon as the bytes cannot become a valid head.
    """
    end = data.find(b"\r\n\r\n", 0, limits.max_head + 4)
    part = data[: end + 4] if end >= 0 else data
    bare = _BARE.search(part)
    if bare and not (end < 0 and bare.end() == len(part) and part[-1:] == b"\r"):
        raise HeadError(400, "lines must end with CR LF")
    if end >= 0:
        return end + 4
    line = data.find(b"\r\n")
    if (len(data) if line < 0 else line) > limits.max_target + 64:
        raise HeadError(414, f"the request's target is longer than {limits.max_target} bytes")
    if len(data) > limits.max_head:
        raise HeadError(431, f"the request's head is larger than {limits.max_head} bytes")
    return 0


def parse(raw: bytes, limits: HttpLimits, *, scheme: str) -> Head:
    """Parse a head delimited by `find_end`; HeadError if it is invalid."""
    lines = raw[:-4].split(b"\r\n")
    match = _REQUEST_LINE.match(lines[0])
    if match is None:
        raise HeadError(400, "the request line is malformed")
    method, target = match[1].decode("ascii"), match[2].decode("ascii")
    version = f"{match[3].decode()}.{match[4].decode()}"
    if version not in ("1.0", "1.1"):
        raise HeadError(505, "this server supports HTTP/1.1 and HTTP/2")
    if len(target) > limits.max_target:
        raise HeadError(414, f"the request's target is longer than {limits.max_target} bytes")
    if len(lines) - 1 > limits.max_fields:
        raise HeadError(431, f"the request has more than {limits.max_fields} header fields")
    fields = [_field(line) for line in lines[1:]]
    seen: set[str] = set()
    for name, _ in fields:
        if name in _ONCE and name in seen:
            raise HeadError(400, f"the header field {name} is repeated")
        seen.add(name)
    head = Head(method, target, version, _host(fields, version), fields)
    _framing(head, seen)
    return Head(method, _path(head, scheme), version, head.host, fields)


def _field(line: bytes) -> tuple[str, str]:
    if line[:1] in (b" ", b"\t"):
        raise HeadError(400, "folded header fields are not accepted")
    match = _FIELD.match(line)
    if match is None:
        raise HeadError(400, "a header field is malformed")
    return match[1].decode("ascii").lower(), match[2].decode("latin-1")


def _host(fields: Headers, version: str) -> str:
    host = next((value for name, value in fields if name == "host"), None)
    if host is None:
        if version == "1.1":
            raise HeadError(400, "the Host field is missing")
        return ""
    if not _HOST.match(host):
        raise HeadError(400, "the Host field is malformed")
    return host


def _framing(head: Head, seen: set[str]) -> None:
    if "transfer-encoding" in seen:
        if "content-length" in seen:
            raise HeadError(400, "Content-Length and Transfer-Encoding exclude each other")
        if head.version == "1.0":
            raise HeadError(400, "HTTP/1.0 has no Transfer-Encoding")
        if head.get("transfer-encoding").lower() != "chunked":
            raise HeadError(501, "only the transfer encoding chunked is supported")
    elif "content-length" in seen:
        length = head.get("content-length")
        if not (length.isascii() and length.isdigit() and len(length) <= 18):
            raise HeadError(400, "Content-Length is not a number")


def _path(head: Head, scheme: str) -> str:
    target = head.path
    if head.method == "CONNECT":
        raise HeadError(405, "this server is not a proxy")
    if "#" in target:
        raise HeadError(400, "the request's target must not have a fragment")
    if target.startswith("/"):
        return target
    if target == "*" and head.method == "OPTIONS":
        return target
    prefix = f"{scheme}://"
    if not target.lower().startswith(prefix):
        raise HeadError(400, "the request's target is malformed or of another scheme")
    authority, slash, path = target[len(prefix) :].partition("/")
    if authority.lower() != head.host.lower():
        raise HeadError(400, "the request's target and its Host field name different hosts")
    return slash + path or "/"
