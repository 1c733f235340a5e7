"""Input of hostile peers for the HTTP/1.1 and TLS side of a port, and the required results."""

from __future__ import annotations

from typing import Literal

from tests.helpers.hostile import Answer, Row


def _row(
    name: str,
    data: bytes,
    statuses: tuple[str, ...],
    ends: Literal["waits", "half-closes", "resets"] = "waits",
    *,
    bound: str = "",
    reason: str = "",
) -> Row:
    """Return a row with the allowed statuses; "" means that the connection may be closed without an answer."""
    numbers = [int(status) for status in statuses if status]
    answer = Answer(":status", numbers[0], tuple(numbers[1:]), "" in statuses) if numbers else Answer("closed")
    return Row(name, data, answer, reason, bound, preface=False, ends=ends)


def _request(*fields: str, line: str = "POST / HTTP/1.1", body: bytes = b"") -> bytes:
    return "\r\n".join([line, "Host: localhost", *fields, "", ""]).encode("latin-1") + body


_SMUGGLED = b"GET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n"
_CHUNKED = "Transfer-Encoding: chunked"
_WEB = "Content-Type: application/grpc-web"

ROWS: tuple[Row, ...] = (
    # Request smuggling
    _row("length and chunked", _request("Content-Length: 5", _CHUNKED, body=b"0\r\n\r\n" + _SMUGGLED), ("400",)),
    _row("two lengths", _request("Content-Length: 0", "Content-Length: 45", body=_SMUGGLED), ("400",)),
    _row("listed lengths", _request("Content-Length: 0, 45", body=_SMUGGLED), ("400",)),
    _row("signed length", _request("Content-Length: +0", body=_SMUGGLED), ("400",)),
    _row("chunked twice", _request(_CHUNKED, _CHUNKED, body=b"0\r\n\r\n"), ("400",)),
    _row("hidden chunked", _request("Transfer-Encoding: xchunked", body=_SMUGGLED), ("501",)),
    _row("chunked and identity", _request("Transfer-Encoding: chunked, identity", body=_SMUGGLED), ("501",)),
    _row("space before colon", _request("Transfer-Encoding : chunked", body=_SMUGGLED), ("400",)),
    _row("folded field", _request("X: a", " Content-Length: 5", body=b"12345"), ("400",)),
    _row("bare LF", _request().replace(b"\r\n", b"\n"), ("400",)),
    _row("bare LF between fields", _request("X: a\nContent-Length: 5", body=b"12345"), ("400",)),
    _row("bare CR between fields", _request("X: a\rContent-Length: 5", body=b"12345"), ("400",)),
    _row("chunk size with sign", _request(_CHUNKED, body=b"+5\r\n12345\r\n0\r\n\r\n"), ("400",)),
    _row("chunk size with prefix", _request(_CHUNKED, body=b"0x5\r\n12345\r\n0\r\n\r\n"), ("400",)),
    _row("chunk size beyond 64 bits", _request(_CHUNKED, body=b"f" * 30 + b"\r\n"), ("400",)),
    _row("chunk longer than its size", _request(_CHUNKED, body=b"2\r\n12345\r\n0\r\n\r\n"), ("400",)),
    _row("endless chunk extension", _request(_CHUNKED, body=b"1;" + b"x" * 100_000), ("400", "431", "")),
    _row("other host in target", _request(line="GET http://evil.example/ HTTP/1.1"), ("400",)),
    _row("two hosts", _request("Host: evil.example"), ("400",)),
    _row("no host", b"GET / HTTP/1.1\r\n\r\n", ("400",)),
    _row("pipelined", _request(line="GET / HTTP/1.1") + _SMUGGLED * 5, ("200",)),
    # Sizes
    _row("long field", _request("X: " + "a" * 100_000), ("431",), bound="max_head"),
    _row("many fields", _request(*["X: y"] * 5000), ("431",), bound="max_fields"),
    _row("long target", _request(line=f"GET /{'a' * 50_000} HTTP/1.1"), ("414",), bound="max_target"),
    _row("endless line", b"A" * 200_000, ("414", ""), bound="max_target"),
    _row("huge body announced", _request("Content-Length: 999999999999"), ("413",), bound="max_body"),
    _row(
        "huge message announced",
        _request(_WEB, "Content-Length: 5", body=b"\0\xff\xff\xff\xff"),
        ("200", "404", ""),
        bound="max_message",
    ),
    # Slow, silent and vanishing peers
    _row("nothing", b"", ("",), bound="handshake_timeout", reason="handshake timeout"),
    _row("half a request line", b"GET / HT", ("408", ""), bound="head_timeout"),
    _row("head without end", b"GET / HTTP/1.1\r\nHost: localhost\r\n", ("408", ""), bound="head_timeout"),
    _row("body that never comes", _request("Content-Length: 10"), ("408", ""), bound="body_grace"),
    _row("chunk that never comes", _request(_CHUNKED, body=b"5\r\n12"), ("408", ""), bound="body_grace"),
    _row("half-open within the head", b"GET / HTTP/1.1\r\n", ("",), "half-closes"),
    _row("half-open within the body", _request("Content-Length: 10", body=b"12"), ("",), "half-closes"),
    _row("reset within the body", _request("Content-Length: 10", body=b"12"), ("",), "resets"),
    _row("reset at once", b"", ("",), "resets"),
    # Other protocols
    _row("TLS hello", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 500, ("400",)),
    _row("TLS alert", b"\x15\x03\x01\x00\x02\x02\x28", ("400", "408", "")),
    _row("zeros", b"\0" * 1000, ("400", "408", "")),
    _row("SSH", b"SSH-2.0-OpenSSH_9.6\r\n\r\n", ("400",)),
    _row("invalid preface", b"PRI * HTTP/1.1\r\nHost: localhost\r\n\r\n", ("",)),
    _row("HTTP/0.9", b"GET /\r\n\r\n", ("400",)),
    _row("HTTP/3.0", _request(line="GET / HTTP/3.0"), ("505",)),
    _row("proxy", b"CONNECT evil.example:25 HTTP/1.1\r\nHost: evil.example:25\r\n\r\n", ("405",)),
    _row("trace", _request(line="TRACE / HTTP/1.1"), ("405",)),
    _row("native gRPC over HTTP/1.1", _request("Content-Type: application/grpc", "Content-Length: 0"), ("415",)),
    _row(
        "WebSocket without key",
        _request("Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13", line="GET / HTTP/1.1"),
        ("400",),
    ),
)
