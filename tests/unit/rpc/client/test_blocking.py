"""The client that blocks, against a socket with prepared answers: HTTP of servers and of proxies before them."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest
from grpclib.const import Status
from grpclib.exceptions import GRPCError

from rpc.client import blocking
from rpc.client.blocking import LOST, PlainHttp, run_blocking
from rpc.client.target import DialTarget


class Peer:
    """The other end of a socket pair, which sends its answers before it is asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.pairs: list[socket.socket] = []
        self.answers: list[bytes] = []  # of each connection
        self.http = PlainHttp(DialTarget("machine.test", 80), None)
        monkeypatch.setattr(PlainHttp, "_opened", lambda _: self.opened())

    def opened(self) -> socket.socket:
        ours, theirs = socket.socketpair()
        self.pairs.append(theirs)
        theirs.sendall(self.answers.pop(0))
        theirs.shutdown(socket.SHUT_WR)
        return ours

    def post(self) -> tuple[int, Any, bytes]:
        return run_blocking(self.http.post("/path", [("x-name", "value")], b"body"))


@pytest.fixture
def peer(monkeypatch: pytest.MonkeyPatch) -> Iterator[Peer]:
    server = Peer(monkeypatch)
    yield server
    server.http.close()
    for pair in server.pairs:
        pair.close()


def test_a_request(peer: Peer) -> None:
    peer.answers = [b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nX-A: 1\r\nx-a: 2\r\n\r\nabc"]
    assert peer.post() == (200, {"content-length": "3", "x-a": "1,2"}, b"abc")
    expected = b"POST /path HTTP/1.1\r\nhost: machine.test:80\r\nx-name: value\r\ncontent-length: 4\r\n\r\nbody"
    assert peer.pairs[0].recv(1000) == expected


@pytest.mark.parametrize(
    ("answer", "content"),
    [
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=1\r\nabc\r\n2\r\nde\r\n0\r\nx: y\r\n\r\n",
            b"abcde",
        ),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na", b"a"),
        (b"HTTP/1.0 200 OK\n\nuntil the end", b"until the end"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
    ],
)
def test_bodies_of_all_kinds(peer: Peer, answer: bytes, content: bytes) -> None:
    peer.answers = [answer]
    assert peer.post()[2] == content


def test_a_connection_is_used_again_unless_the_server_closes_it(peer: Peer) -> None:
    kept = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n1"
    last = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: close\r\n\r\n2"
    peer.answers = [kept + last, kept]
    assert [peer.post()[2] for _ in range(3)] == [b"1", b"2", b"1"]
    assert len(peer.pairs) == 2


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.1 200",
        b"\x15\x03\x01\x00\x02\x02\x46",  # an alert of TLS
        b"SSH-2.0-OpenSSH\r\n",
        b"HTTP/1.1 odd\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n",
        b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 10 + b"x" * blocking.MAX_LINE * 2,
        b"HTTP/1.1 200 OK\r\n" + b"".join(b"x%d: y\r\n" % number for number in range(blocking.MAX_FIELDS + 1)),
    ],
)
def test_everything_else_is_a_lost_connection(peer: Peer, answer: bytes) -> None:
    peer.answers = [answer]
    with pytest.raises(GRPCError, match=LOST) as caught:
        peer.post()
    assert caught.value.status is Status.UNAVAILABLE
    assert peer.http.connected


@pytest.mark.parametrize("head", [b"", b"Content-Length: 3000\r\n", b"Transfer-Encoding: chunked\r\n"])
def test_answers_are_bounded(peer: Peer, head: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocking, "MAX_ANSWER", 1000)
    peer.answers = [b"HTTP/1.1 200 OK\r\n" + head + b"\r\n" + (b"bb8\r\n" if b"chunked" in head else b"") + bytes(3000)]
    with pytest.raises(GRPCError) as caught:
        peer.post()
    assert caught.value.status is Status.RESOURCE_EXHAUSTED


def test_an_answer_that_is_not_read_to_its_end_is_not_taken_for_the_next_one(peer: Peer) -> None:
    stream = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n1\r\nb\r\n0\r\n\r\n"
    peer.answers = [stream, b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nc"]

    async def first() -> bytes:
        _, _, parts = await peer.http.open("/path", [], b"")
        part = await anext(parts)
        await parts.aclose()  # type: ignore[attr-defined]
        return part

    assert run_blocking(first()) == b"a"
    assert peer.post()[2] == b"c"


def test_a_host_that_does_not_answer_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    http = PlainHttp(DialTarget("127.0.0.1", port), None)
    with pytest.raises(GRPCError, match="refused"):
        run_blocking(http.post("/", [], b""))
    assert not http.connected
    assert repr(http) == f"PlainHttp('127.0.0.1:{port}')"


def test_an_address_that_does_not_answer_does_not_keep_the_others_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as full, socket.create_server(("127.0.0.1", 0)) as good:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        first = socket.create_connection(full.getsockname())  # fills the queue: further ones are not answered
        kind = (socket.AF_INET, socket.SOCK_STREAM, 0, "")
        addresses = [(*kind, full.getsockname()), (*kind, good.getsockname())]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: addresses)
        monkeypatch.setattr(blocking, "OTHERS", 0.2)
        monkeypatch.setattr(blocking, "CONNECT", 1e6)
        http = PlainHttp(DialTarget("machine.test", 80), None)
        opened = http._opened()
        assert opened.getpeername() == good.getsockname()
        assert opened.gettimeout() is None
        opened.close()
        first.close()


def test_a_coroutine_that_waits_for_an_event_loop_is_an_error() -> None:
    class Waits:
        def __await__(self) -> Iterator[None]:
            yield

    async def waits() -> None:
        await Waits()

    with pytest.raises(RuntimeError, match="waits for an event loop"):
        run_blocking(waits())
