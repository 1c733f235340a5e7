"""The attacks of tests/e2e/hostile on HTTP/2: bounded memory, an answer, and the next connection is served."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from micro.wire.bounds import Bounds
from micro.wire.http2 import PREFACE, Budget, Connection
from rpc.http2.codec import frames
from tests.helpers.hostile import HTTP2, SETTINGS, Row
from tests.unit.micro.wire.peer import Peer

HARMLESS = {
    "line break in a value": "no value is passed on",
    "upper-case field name": "such a field is not read",
    "connection-specific field": "such a field is not read",
    "te other than trailers": "the field is not read",
    "pseudo-header field twice": "the first counts",
    "pseudo-header field after others": "the order has no meaning here",
    "unknown pseudo-header field": "such a field is not read",
    "wrong content-length": "the length in the prefix of gRPC counts",
    "content-length that is not a number": "the length in the prefix of gRPC counts",
    "time limit of a million digits": "time limits of callers are not read",
    "metadata that is not base64": "such a field is not read",
    "unknown compression": "the flag in the prefix of gRPC counts",
    "HEADERS of a skipped stream": "a stream that was skipped is closed, and its frames have no effect",
    "DATA of a skipped stream": "a stream that was skipped is closed, and its frames have no effect",
    "second HEADERS that does not end the request": "it is read and counted as a frame without effect",
    "more than the stream's window": "nothing is kept beyond the length in the prefix of gRPC",
    "vanishes without closing": "see test_time_limits",
    "opens and says nothing": "see test_time_limits",
    "half a preface, then silence": "see test_time_limits",
    "preface without SETTINGS": "see test_time_limits",
    "truncated message": "fails the call, see test_http2",
    "stream depends on itself": "priorities are not read",
    "request without path": "the call fails when the request is complete",
    "unknown frame types": "they are counted as frames without effect",
}
"""Attacks after which the connection may go on, each with the reason."""

CHUNK = 512  # bytes that a host reads at once


def size_of(value: Any, seen: set[int]) -> int:
    """Return the bytes of an object and all that it refers to."""
    if id(value) in seen or isinstance(value, type):
        return 0
    seen.add(id(value))
    size = sys.getsizeof(value)
    if isinstance(value, dict):
        return size + sum(size_of(key, seen) + size_of(item, seen) for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return size + sum(size_of(item, seen) for item in value)
    return size + (size_of(vars(value), seen) if hasattr(value, "__dict__") else 0)


@pytest.mark.parametrize("row", HTTP2, ids=[row.name for row in HTTP2])
def test_hostile_peers_are_bounded(row: Row) -> None:
    bounds = Bounds()
    budget = Budget(bounds.held)
    connection = Connection(bounds, budget, 1)
    data = (PREFACE + SETTINGS if row.preface else b"") + row.data * row.repeat
    most, sent = 0, b""
    for at in range(0, len(data), CHUNK):
        connection.receive(data[at : at + CHUNK], 1)
        if row.reads:
            while reply := connection.output():
                sent += reply
        if at % (CHUNK * 8) == 0:
            most = max(most, size_of(connection, set()))
        if connection.over:
            break
        for stream in connection.ready:  # a call that fails at once, such as one of an unknown method
            connection.fail(stream, 12, "no such call")
        connection.ready.clear()
    assert most < 48 * 1024  # on a 64-bit interpreter; the limits of a small heap are lower
    while reply := connection.output():
        sent += reply
    kinds = {sent[at + 3] for at in frame_starts(sent)}
    if connection.over:
        assert frames.GOAWAY in kinds
    elif row.name not in HARMLESS:
        assert frames.RST_STREAM in kinds or frames.HEADERS in kinds, "the peer gets no answer"
    if row.answer.kind == "goaway" and row.name not in HARMLESS:
        assert connection.over
    connection.fail_all()
    assert budget.left == bounds.held
    assert Peer(bounds, budget).ask(b"still served").status == 0


def frame_starts(data: bytes) -> list[int]:
    starts, at = [], 0
    while at < len(data):
        starts.append(at)
        at += 9 + int.from_bytes(data[at : at + 3], "big")
    return starts


def test_every_excuse_is_an_attack() -> None:
    assert set(HARMLESS) <= {row.name for row in HTTP2}


def test_a_peer_that_reads_nothing_cannot_collect_answers() -> None:
    connection = Connection(Bounds(), Budget(1000), 1)
    connection.receive(PREFACE + SETTINGS, 1)
    for _ in range(5000):
        connection.receive(frames.ping(b"x" * 8, ack=False), 1)
    assert "no effect" in connection.over
    assert len(connection.output()) < 8192


def test_rapid_resets_end_the_connection() -> None:
    connection = Connection(Bounds(), Budget(1000), 1)
    connection.receive(PREFACE + SETTINGS, 1)
    from tests.helpers.hostile import head

    for sid in range(1, 2001, 2):
        connection.receive(head(sid) + frames.rst_stream(sid, 8), 1)
        connection.output()
    assert "no effect" in connection.over
