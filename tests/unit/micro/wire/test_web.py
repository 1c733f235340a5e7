from __future__ import annotations

import struct

import pytest

from micro.wire import faults
from micro.wire.bounds import Bounds
from micro.wire.http2 import Budget
from micro.wire.web import WebConnection
from rpc.http.grpc_web import split_frames

HEAD = b"POST /a.B/C HTTP/1.1\r\nhost: x\r\ncontent-type: application/grpc-web+proto\r\nAuthorization: Bearer t\r\n"


def connected() -> WebConnection:
    bounds = Bounds()
    return WebConnection(bounds, Budget(bounds.held), 1)


def request(body: bytes, extra: bytes = b"") -> bytes:
    body = struct.pack(">BI", 0, len(body)) + body
    return HEAD + extra + b"content-length: %d\r\n\r\n" % len(body) + body


def reply(connection: WebConnection) -> tuple[list[bytes], dict[str, str]]:
    head, _, body = connection.output().partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"content-length: %d" % len(body) in head
    messages, trailers = split_frames(body)
    return [bytes(message) for message in messages], {name: value for name, value in trailers.items() if name}


@pytest.mark.parametrize("chunk", [1, 10, 1 << 20])
def test_calls_one_after_the_other(chunk: int) -> None:
    connection = connected()
    for number in range(3):
        data = request(b"question %d" % number)
        for at in range(0, len(data), chunk):
            connection.receive(data[at : at + chunk], 1)
        stream = connection.ready.pop()
        assert (stream.headers[b":path"], bytes(stream.body)) == (b"/a.B/C", b"question %d" % number)
        assert stream.headers[b"authorization"] == b"Bearer t"
        connection.answer(stream, b"answer")
        assert reply(connection) == ([b"answer"], {"grpc-status": "0"})
    assert (connection.over, connection._budget.left) == ("", connection.bounds.held)


def test_failures() -> None:
    connection = connected()
    connection.receive(request(b""), 1)
    connection.fail(connection.ready.pop(), faults.NOT_FOUND, "no motor")
    assert reply(connection) == ([], {"grpc-status": "5", "grpc-message": "no motor"})


def test_incomplete_messages_fail() -> None:
    connection = connected()
    connection.receive(HEAD + b"content-length: 7\r\n\r\n\0\0\0\0\5ab", 1)
    assert reply(connection)[1]["grpc-status"] == "13"


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"\x16\x03\x01\x02\x00", 400),
        (b"GET / HTTP/1.1\r\nhost: x\r\n\r\n", 405),
        (b"OPTIONS /a.B/C HTTP/1.1\r\norigin: http://evil\r\n\r\n", 405),
        (request(b"", b"Origin: http://evil\r\n"), 403),
        (request(b"", b"transfer-encoding: chunked\r\n"), 400),
        (request(b"", b"content-length: 5\r\n"), 400),
        (HEAD + b"\r\n", 400),
        (HEAD + b"content-length: -5\r\n\r\n", 400),
        (HEAD + b"content-length: 99999999999\r\n\r\n", 400),
        (HEAD + b"content-length: 9000\r\n\r\n", 413),
        (HEAD + b"x: " + b"y" * 9000, 431),
        (HEAD.replace(b"1.1", b"1.0") + b"content-length: 5\r\n\r\n", 400),
        (request(b"") + request(b""), 400),
    ],
)
def test_requests_that_end_the_connection(data: bytes, status: int) -> None:
    connection = connected()
    for at in range(0, len(data), 512):
        connection.receive(data[at : at + 512], 1)
    assert connection.over
    assert connection.output().startswith(b"HTTP/1.1 %d " % status)
    connection.fail_all()
    assert connection._budget.left == connection.bounds.held


def test_time_limits() -> None:
    def silent(data: bytes, after: int, *, trusted: bool = True) -> str:
        connection = connected()
        connection.trusted = trusted
        connection.receive(data, 1)
        connection.tick(after)
        return connection.over

    assert silent(b"", 60_001) == ""
    assert silent(b"", 60_002) == "the connection is idle"
    assert silent(b"", 60_002, trusted=False) == "the peer has not authenticated itself"
    assert silent(b"POST", 15_002) == "the request takes too long to arrive"
    assert silent(request(b"abc")[:-1], 15_002) == "the request takes too long to arrive"
    assert silent(request(b"abc"), 90_000) == ""  # is carried out
