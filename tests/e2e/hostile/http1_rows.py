"""What a hostile peer may send to the HTTP/1.1 and TLS side of a port, and what must come of it.

Each row is a name, the bytes, and the statuses that may answer them; an empty status means that the connection may be
closed without an answer. `ends` says how the peer goes on after the bytes: it waits, ends its side or resets.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Row:
    """One attack over one connection."""

    name: str
    data: bytes
    statuses: tuple[str, ...]  # "" for a close without an answer
    ends: Literal["waits", "half-closes", "resets"] = "waits"


def _request(*fields: str, line: str = "POST / HTTP/1.1", body: bytes = b"") -> bytes:
    return "\r\n".join([line, "Host: localhost", *fields, "", ""]).encode("latin-1") + body


_SMUGGLED = b"GET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n"
_CHUNKED = "Transfer-Encoding: chunked"
_WEB = "Content-Type: application/grpc-web"

ROWS: tuple[Row, ...] = (
    # Request smuggling
    Row("length and chunked", _request("Content-Length: 5", _CHUNKED, body=b"0\r\n\r\n" + _SMUGGLED), ("400",)),
    Row("two lengths", _request("Content-Length: 0", "Content-Length: 45", body=_SMUGGLED), ("400",)),
    Row("listed lengths", _request("Content-Length: 0, 45", body=_SMUGGLED), ("400",)),
    Row("signed length", _request("Content-Length: +0", body=_SMUGGLED), ("400",)),
    Row("chunked twice", _request(_CHUNKED, _CHUNKED, body=b"0\r\n\r\n"), ("400",)),
    Row("hidden chunked", _request("Transfer-Encoding: xchunked", body=_SMUGGLED), ("501",)),
    Row("chunked and identity", _request("Transfer-Encoding: chunked, identity", body=_SMUGGLED), ("501",)),
    Row("space before colon", _request("Transfer-Encoding : chunked", body=_SMUGGLED), ("400",)),
    Row("folded field", _request("X: a", " Content-Length: 5", body=b"12345"), ("400",)),
    Row("bare LF", _request().replace(b"\r\n", b"\n"), ("400",)),
    Row("bare LF between fields", _request("X: a\nContent-Length: 5", body=b"12345"), ("400",)),
    Row("bare CR between fields", _request("X: a\rContent-Length: 5", body=b"12345"), ("400",)),
    Row("chunk size with sign", _request(_CHUNKED, body=b"+5\r\n12345\r\n0\r\n\r\n"), ("400",)),
    Row("chunk size with prefix", _request(_CHUNKED, body=b"0x5\r\n12345\r\n0\r\n\r\n"), ("400",)),
    Row("chunk size beyond 64 bits", _request(_CHUNKED, body=b"f" * 30 + b"\r\n"), ("400",)),
    Row("chunk longer than said", _request(_CHUNKED, body=b"2\r\n12345\r\n0\r\n\r\n"), ("400",)),
    Row("endless chunk extension", _request(_CHUNKED, body=b"1;" + b"x" * 100_000), ("400", "431", "")),
    Row("other host in target", _request(line="GET http://evil.example/ HTTP/1.1"), ("400",)),
    Row("two hosts", _request("Host: evil.example"), ("400",)),
    Row("no host", b"GET / HTTP/1.1\r\n\r\n", ("400",)),
    Row("pipelined", _request(line="GET / HTTP/1.1") + _SMUGGLED * 5, ("200",)),
    # Sizes
    Row("long field", _request("X: " + "a" * 100_000), ("431",)),
    Row("many fields", _request(*["X: y"] * 5000), ("431",)),
    Row("long target", _request(line=f"GET /{'a' * 50_000} HTTP/1.1"), ("414",)),
    Row("endless line", b"A" * 200_000, ("414", "")),
    Row("huge body announced", _request("Content-Length: 999999999999"), ("413",)),
    Row("huge message announced", _request(_WEB, "Content-Length: 5", body=b"\0\xff\xff\xff\xff"), ("200", "404", "")),
    # Slow, silent and vanishing peers
    Row("nothing", b"", ("",)),
    Row("half a request line", b"GET / HT", ("408", "")),
    Row("head without end", b"GET / HTTP/1.1\r\nHost: localhost\r\n", ("408", "")),
    Row("body that never comes", _request("Content-Length: 10"), ("408", "")),
    Row("chunk that never comes", _request(_CHUNKED, body=b"5\r\n12"), ("408", "")),
    Row("half-open within the head", b"GET / HTTP/1.1\r\n", ("",), "half-closes"),
    Row("half-open within the body", _request("Content-Length: 10", body=b"12"), ("",), "half-closes"),
    Row("reset within the body", _request("Content-Length: 10", body=b"12"), ("",), "resets"),
    Row("reset at once", b"", ("",), "resets"),
    # Other protocols
    Row("TLS hello", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 500, ("400",)),
    Row("TLS alert", b"\x15\x03\x01\x00\x02\x02\x28", ("400", "408", "")),
    Row("zeros", b"\0" * 1000, ("400", "408", "")),
    Row("SSH", b"SSH-2.0-OpenSSH_9.6\r\n\r\n", ("400",)),
    Row("preface that is none", b"PRI * HTTP/1.1\r\nHost: localhost\r\n\r\n", ("",)),
    Row("HTTP/0.9", b"GET /\r\n\r\n", ("400",)),
    Row("HTTP/3.0", _request(line="GET / HTTP/3.0"), ("505",)),
    Row("proxy", b"CONNECT evil.example:25 HTTP/1.1\r\nHost: evil.example:25\r\n\r\n", ("405",)),
    Row("trace", _request(line="TRACE / HTTP/1.1"), ("405",)),
    Row("native gRPC over HTTP/1.1", _request("Content-Type: application/grpc", "Content-Length: 0"), ("415",)),
    Row(
        "WebSocket without key",
        _request("Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13", line="GET / HTTP/1.1"),
        ("400",),
    ),
)
