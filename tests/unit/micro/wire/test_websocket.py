from __future__ import annotations

import base64
import hashlib
import struct
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wsproto.connection import Connection as Reference
from wsproto.connection import ConnectionType
from wsproto.events import BytesMessage, CloseConnection, Event, Ping, Pong, TextMessage
from wsproto.frame_protocol import CloseReason

from micro.wire.websocket import BINARY, GUID, TEXT, WebSocket, WebSocketFault, request, status_of

KEY = b"dGhlIHNhbXBsZSBub25jZQ=="
ACCEPT = b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo="  # RFC 6455, section 1.3


def random(count: int) -> bytes:
    return bytes(range(7, 7 + count))


def server_frames(*events: Event) -> bytes:
    server = Reference(ConnectionType.SERVER)
    return b"".join(server.send(event) for event in events)


def read_by_reference(data: bytes) -> list[Event]:
    server = Reference(ConnectionType.SERVER)
    server.receive_data(data)
    return list(server.events())


def feed(socket: WebSocket, data: bytes, cuts: Iterable[int] = (1 << 20,)) -> None:
    for size in cuts:
        socket.receive(data[:size])
        data = data[size:]
    socket.receive(data)


def test_handshake() -> None:
    assert base64.b64encode(hashlib.sha1(KEY + GUID).digest()) == ACCEPT
    assert request("h:1", "/p?q=1", KEY, "t").startswith(b"GET /p?q=1 HTTP/1.1\r\nHost: h:1\r\n")
    head = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: %b"
    assert status_of(head % ACCEPT, ACCEPT) == 101
    assert status_of(b"HTTP/1.1 401 Unauthorized\r\nSec: x", ACCEPT) == 401
    for bad in (head % b"other", b"HTTP/1.1 101 x", b"garbage", b"SSH-2.0-x y"):
        with pytest.raises(WebSocketFault):
            status_of(bad, ACCEPT)


@given(st.lists(st.integers(1, 50), max_size=20), st.sampled_from([0, 1, 125, 126, 300, 70_000]))
def test_messages_of_the_reference_are_read(cuts: list[int], size: int) -> None:
    data = server_frames(TextMessage("x" * size), BytesMessage(b"a" * size), Ping(b"hello"), BytesMessage(b"end"))
    socket = WebSocket(100_000, random)
    feed(socket, data, cuts)
    assert socket.texts == [b"x" * size]
    assert bytes(socket.data) == b"a" * size + b"end"
    pong = read_by_reference(socket.output())
    assert [(type(event), bytes(event.payload)) for event in pong if isinstance(event, Pong)] == [(Pong, b"hello")]


@pytest.mark.parametrize("size", [0, 125, 126, 65535, 65536])
def test_the_reference_reads_our_messages(size: int) -> None:
    socket = WebSocket(1000, random)
    socket.send(BINARY, b"z" * size)
    socket.send(TEXT, b"text")
    events = read_by_reference(socket.output())
    assert b"".join(bytes(event.data) for event in events if isinstance(event, BytesMessage)) == b"z" * size
    assert "".join(event.data for event in events if isinstance(event, TextMessage)) == "text"


def test_close_is_answered() -> None:
    socket = WebSocket(1000, random)
    feed(socket, server_frames(CloseConnection(CloseReason.NORMAL_CLOSURE)))
    assert socket.closed
    assert isinstance(read_by_reference(socket.output())[0], CloseConnection)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"\x81\x80abcd", id="masked"),
        pytest.param(b"\xc1\x00", id="extension"),
        pytest.param(b"\x89\x7e\x01\x00", id="long ping"),
        pytest.param(b"\x09\x00", id="ping in pieces"),
        pytest.param(b"\x80\x00", id="continues nothing"),
        pytest.param(b"\x01\x01a\x81\x01b", id="message within another"),
        pytest.param(b"\x81\x7f" + struct.pack(">Q", 1 << 40), id="message of a terabyte"),
        pytest.param(b"\x01\x7e\x03\xe8" + b"x" * 1000 + b"\x80\x01y", id="message in too many pieces"),
    ],
)
def test_faults_of_the_peer(data: bytes) -> None:
    with pytest.raises(WebSocketFault):
        WebSocket(1000, random).receive(data)


def test_pings_to_a_socket_that_sends_nothing_are_bounded() -> None:
    socket = WebSocket(1000, random)
    with pytest.raises(WebSocketFault, match="pings"):
        socket.receive(server_frames(Ping(b"x" * 100)) * 100)
