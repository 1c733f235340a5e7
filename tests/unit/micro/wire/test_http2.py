from __future__ import annotations

import struct

import pytest
from hpack import Encoder

from micro.wire import faults
from micro.wire.bounds import Bounds, for_heap
from micro.wire.http2 import CONTINUATION, CONTINUATION_COST, DATA, HEADERS, PADDED, Budget, Connection, failure_of
from tests.unit.micro.wire.peer import Peer, message, request


def bounds(**limits: int) -> Bounds:
    bounds = Bounds()
    for name, value in limits.items():
        assert hasattr(bounds, name)
        setattr(bounds, name, value)
    return bounds


@pytest.mark.parametrize("chunk", [1, 7, 1 << 20])
def test_calls_are_answered(chunk: int) -> None:
    peer = Peer()
    for number in range(3):
        sid = peer.begin(message(b"hello %d" % number), authorization="Bearer t")
        peer.exchange(chunk)
        stream = peer.server.ready.pop()
        assert bytes(stream.body) == b"hello %d" % number
        assert stream.headers[b"authorization"] == b"Bearer t"
        peer.server.answer(stream, b"reply" * number)
        peer.exchange(chunk)
        assert (peer.replies[sid].status, peer.replies[sid].body) == (0, message(b"reply" * number))
    assert (peer.server.calls, peer.server.over) == (0, "")


def test_failures_have_status_and_text() -> None:
    peer = Peer()
    sid = peer.begin(message(b""))
    peer.exchange()
    peer.server.fail(peer.server.ready.pop(), faults.NOT_FOUND, "no motor 'ä' 100%")
    peer.exchange()
    reply = peer.replies[sid]
    assert (reply.status, reply.headers["grpc-message"]) == (5, "no motor '%C3%A4' 100%25")


def test_long_replies_respect_windows_and_the_limit_of_unsent_bytes() -> None:
    peer = Peer(bounds(reply=200_000))
    peer.acknowledges = False
    sid = peer.begin(message(b""))
    peer.exchange()
    peer.server.answer(peer.server.ready.pop(), b"x" * 150_000)
    largest = 0
    while data := peer.server.output():
        largest = max(largest, len(data))
        for event in peer.h2.receive_data(data):
            peer._take(event)
    assert largest < peer.server.bounds.output + 200
    assert len(peer.replies[sid].body) == 65535
    peer.acknowledges = True
    while not peer.replies[sid].ended:
        peer.h2.increment_flow_control_window(65535)
        peer.h2.increment_flow_control_window(65535, sid)
        peer.exchange()
    assert peer.replies[sid].body == message(b"x" * 150_000)


def test_windows_are_given_back_with_the_answer() -> None:
    peer = Peer()
    before = peer.h2.outbound_flow_control_window
    for _ in range(100):
        assert peer.ask(b"x" * 4000).status == 0
    assert peer.h2.outbound_flow_control_window > before - 4 * 4100


@pytest.mark.parametrize(
    ("data", "status", "text"),
    [
        (struct.pack(">BI", 0, 8193), faults.EXHAUSTED, "8193 bytes, and this server takes 8192"),
        (struct.pack(">BI", 0, 1 << 31) + b"x" * 10_000, faults.EXHAUSTED, "this server takes"),
        (message(b"abc", 1), faults.UNIMPLEMENTED, "compressed"),
        (message(b"abc")[:-1], faults.INTERNAL, "complete"),
        (message(b"abc") + b"d", faults.INVALID, "more than one message"),
        (b"", faults.INTERNAL, "complete"),
    ],
)
def test_bad_messages_fail_one_call(data: bytes, status: int, text: str) -> None:
    peer = Peer()
    sid = peer.begin(data)
    peer.exchange()
    assert peer.replies[sid].status == status
    assert text in peer.replies[sid].headers["grpc-message"]
    assert peer.ask(b"next").status == 0


def test_a_request_without_message_fails() -> None:
    peer = Peer()
    sid = peer.begin(end=False)
    peer.h2.end_stream(sid)
    peer.exchange()
    assert peer.replies[sid].status == faults.INTERNAL


def test_requests_that_are_not_grpc_are_refused() -> None:
    peer = Peer()
    peer.h2.send_headers(1, [(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "x")], True)
    peer.server.receive(peer.h2.data_to_send(), 1)
    assert b"\x08\x03415" in peer.server.output()


def test_further_calls_at_once_are_answered_exhausted() -> None:
    peer = Peer(bounds(streams=3))
    peer.h2.remote_settings[3] = 10  # as if ours had not been read yet
    peer.h2.remote_settings.acknowledge()
    sids = [peer.begin(message(b"")) for _ in range(5)]
    peer.exchange()
    assert [peer.replies[sid].status for sid in sids[3:]] == [faults.EXHAUSTED] * 2
    for _ in range(3):
        peer.server.answer(peer.server.ready.pop(0), b"")
    peer.exchange()
    assert [peer.replies[sid].status for sid in sids[:3]] == [0] * 3


def test_requests_of_all_connections_share_a_budget() -> None:
    budget = Budget(10_000)
    first, second = Peer(budget=budget), Peer(budget=budget)
    first.begin(message(b"x" * 8000)[:-1], end=False)
    first.exchange()
    assert budget.left == 2000
    assert second.ask(b"x" * 2001).status == faults.EXHAUSTED
    assert second.ask(b"x" * 2000).status == 0
    first.server.fail_all()
    assert budget.left == 10_000


def test_cancelled_calls_count_until_they_have_been_carried_out() -> None:
    peer = Peer(bounds(streams=2))
    for _ in range(2):
        sid = peer.begin(message(b"x" * 100))
        peer.exchange()
        peer.h2.reset_stream(sid, 8)
        peer.exchange()
    assert peer.server.calls == 2
    assert peer.ask().status == faults.EXHAUSTED
    peer.server.ready.clear()
    running = list(peer.server._streams.values())
    for stream in running:
        peer.server.answer(stream, b"late")
    assert (peer.server.calls, peer.server.output()) == (0, b"")
    assert peer.server._budget.left == peer.server.bounds.held
    assert peer.ask().status == 0


def test_goaway_of_the_peer_ends_after_the_answers() -> None:
    peer = Peer()
    sid = peer.begin(message(b""))
    peer.exchange()
    peer.server.receive(b"\0\0\x08\x07\0\0\0\0\0" + bytes(8), 1)
    assert not peer.server.over
    peer.server.answer(peer.server.ready.pop(), b"last")
    peer.exchange()
    assert peer.replies[sid].status == 0
    assert peer.server.over == "the peer has ended the connection"


def test_time_limits() -> None:
    def silent(data: bytes = b"", after: int = 0, trusted: bool = True, **limits: int) -> Connection:
        connection = Connection(bounds(**limits), Budget(1000), 1)
        connection.trusted = trusted
        connection.receive(data, 1)
        connection.output()
        connection.tick(after)
        return connection

    settings = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"
    assert silent(after=10_000).over == ""
    assert silent(after=10_002).over == "the handshake takes too long"
    assert silent(settings + b"\0\0", 15_002).over == "a frame takes too long"
    assert silent(settings, 60_002, trusted=False).over == "the peer has not authenticated itself"
    connection = silent(settings, 30_002)
    assert connection.output()[3] == 6  # PING
    connection.tick(50_003)
    assert connection.over == "the peer does not answer"
    connection = silent(settings, 30_002)
    connection.receive(b"\0\0\x08\x06\1\0\0\0\0micro...", 30_100)
    connection.tick(50_003)
    assert connection.over == ""


def test_a_request_that_does_not_arrive_fails() -> None:
    peer = Peer()
    sid = peer.begin(b"\0", end=False)
    peer.exchange()
    peer.server.tick(15_002)
    peer.exchange()
    assert peer.replies[sid].status == faults.DEADLINE


def test_an_unread_reply_is_dropped() -> None:
    peer = Peer()
    peer.h2.update_settings({4: 0})
    sid = peer.begin(message(b""))
    peer.exchange()
    peer.server.answer(peer.server.ready.pop(), b"x" * 100)
    peer.exchange()
    peer.server.tick(29_000)
    assert peer.server.calls == 1
    peer.server.tick(30_002)
    peer.exchange()
    assert (peer.replies[sid].reset, peer.server.calls) == (8, 0)


def connected() -> tuple[Connection, Connection]:
    budget = Budget(100_000)
    return Connection(Bounds(), budget, 1, client=True), Connection(Bounds(), budget, 1)


def carry(client: Connection, server: Connection) -> None:
    while data := client.output():
        server.receive(data, 1)
    while data := server.output():
        client.receive(data, 1)


def test_the_client_side_calls() -> None:
    client, server = connected()
    first = client.call("/a/B", "cloud", b"question", "secret")
    second = client.call("/a/C", "cloud", b"x" * 8000)
    carry(client, server)
    first_call, second_call = server.ready
    assert (first_call.headers[b":path"], first_call.headers[b"authorization"], bytes(first_call.body)) == (
        b"/a/B",
        b"Bearer secret",
        b"question",
    )
    assert len(second_call.body) == 8000
    server.answer(first_call, b"answer")
    server.fail(second_call, faults.PERMISSION, "not you")
    carry(client, server)
    assert set(client.ready) == {first, second}
    assert (bytes(first.body), failure_of(first)) == (b"answer", None)
    failure = failure_of(second)
    assert failure is not None
    assert (failure.status, failure.text) == (faults.PERMISSION, "not you")
    assert client.calls == 0


def test_the_calls_of_a_lost_connection_fail() -> None:
    client, _ = connected()
    stream = client.call("/a/B", "cloud", b"")
    assert client.fail_all() == [stream]
    failure = failure_of(stream)
    assert failure is not None
    assert failure.status == faults.UNAVAILABLE


def test_limits_grow_with_the_heap() -> None:
    sizes = [for_heap(kib * 1024) for kib in (16, 32, 100, 500)]
    assert [each.connections for each in sizes] == [1, 2, 4, 8]
    assert [each.message for each in sizes] == [2048, 4096, 8192, 8192]


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return struct.pack(">I", len(payload))[1:] + bytes((kind, flags)) + struct.pack(">I", stream) + payload


def test_the_frames_of_a_long_body_cost_nothing() -> None:
    peer = Peer(bounds(glitches=5))
    sid = peer.begin(end=False)
    peer.exchange()
    for byte in message(b"hello"):
        peer.h2.send_data(sid, bytes((byte,)))
        peer.exchange()
    peer.h2.send_data(sid, b"", end_stream=True)
    peer.exchange()
    assert peer.goaway is None
    assert bytes(peer.server.ready.pop().body) == b"hello"


def test_headers_in_three_frames_cost_the_price_of_two_continuations() -> None:
    block = Encoder().encode(request())
    parts = (
        frame(HEADERS, 0, 1, block[:5]),
        frame(CONTINUATION, 0, 1, block[5:9]),
        frame(CONTINUATION, 4, 1, block[9:]),
    )
    for glitches, accepted in ((2 * CONTINUATION_COST, True), (2 * CONTINUATION_COST - 1, False)):
        peer = Peer(bounds(glitches=glitches + 2))  # settings and their acknowledgement cost 1 each
        peer.server.receive(b"".join(parts), peer.now)
        assert (not peer.server.over) is accepted


def test_a_frame_of_padding_only_has_no_bytes_and_is_valid() -> None:
    for padding, valid in ((4, True), (5, False)):
        peer = Peer()
        peer.begin(end=False)
        peer.exchange()
        peer.server.receive(frame(DATA, PADDED, 1, bytes((padding, 0, 0, 0, 0))), peer.now)
        assert (not peer.server.over) is valid
