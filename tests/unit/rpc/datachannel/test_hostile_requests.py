"""Requests that are malformed, too large or too many: the call or the channel ends, counted with a reason."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

import pytest
import trio
from grpclib.const import Status
from trio.testing import wait_all_tasks_blocked

from rpc.limits import Limits
from rpc.peers.port import MAX_MESSAGE
from tests.unit.rpc.datachannel.raw import E, half_close, headers, packet, raw, reset, stream

LIMITS = Limits(
    max_message=200_000,
    max_buffered=1_000_000,
    stream_window=100_000,
    max_header_list=4_096,
    max_streams=10,
    glitch_burst=50,
    glitch_rate=0.001,
    reset_burst=50,
    reset_rate=0.001,
)
INTERNAL, EXHAUSTED = Status.INTERNAL, Status.RESOURCE_EXHAUSTED
GROUP = b"\x7b"
BIG = bytes(60_000)


def field(number: int, data: bytes) -> bytes:
    """Encode a field of length-delimited bytes."""
    size, length = len(data), bytearray()
    while size > 0x7F:
        length.append(size & 0x7F | 0x80)
        size >>= 7
    return bytes([number << 3 | 2, *length, size]) + data


def request(**fields: Any) -> bytes:
    return bytes(E.Request(**fields).SerializeToString())


def with_metadata(entries: bytes) -> bytes:
    """Encode headers whose metadata has these encoded entries."""
    return field(1, b"\x08\x01") + field(2, field(1, b"/test.v1.EchoService/Echo") + field(2, entries))


# Name of the row: envelopes, reason that is counted
ENDS_CHANNEL: dict[str, tuple[Iterable[bytes | str], str]] = {
    "text": (["hello"], "frame format"),
    "JSON": (['{"stream": {"id": 1}}'], "frame format"),
    "empty text": ([""], "frame format"),
    "random bytes": ([b"\xff" * 40], "frame format"),
    "cut off": ([headers(1)[:-3]], "frame format"),
    "one byte": ([b"\x0a"], "frame format"),
    "a length beyond the end": ([b"\x0a\xff\xff\xff\xff\x0f"], "frame format"),
    "groups inside each other": ([GROUP * 30_000], "frame format"),
    "an invalid tag": ([b"\0\0"], "frame format"),
    "text that is not UTF-8": ([field(2, field(1, b"/\xff\xfe"))], "frame format"),
    "HTTP/2": ([b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"], "frame format"),
    "a wrong wire type": ([b"\x08\x01\x12\x02\x0a"], "frame format"),
    "empty envelopes": ([b""] * 60, "useless frames"),
    "unknown fields only": ([b"\x78\x01" * 30_000] * 60, "useless frames"),
    "envelopes without a stream": ([request(rst_stream=False, headers={"method": "/x"})] * 60, "useless frames"),
    "envelopes without content": ([request(stream=stream(1))] * 60, "useless frames"),
    "messages of calls that never began": ([packet(9)] * 60, "useless frames"),
    "messages without content": (
        [headers(1, "Unread"), *[request(stream=stream(1), message={})] * 60],
        "useless frames",
    ),
    "empty packets": ([headers(1, "Unread"), *[packet(1, b"", eom=False, eos=False)] * 60], "useless frames"),
    "resets of calls that never began": ([reset(7)] * 60, "resets"),
    "calls that are cancelled at once": ([part for sid in range(60) for part in (headers(sid), reset(sid))], "resets"),
    "more calls than are allowed, again and again": ([headers(sid, "Hang") for sid in range(99)], "streams"),
}

# Name of the row: envelopes for call 1, status of the call, reason that is counted
ENDS_CALL: dict[str, tuple[Iterable[bytes], Status, str]] = {
    "no method": ([headers(1, "")], INTERNAL, "header fields"),
    "a method without a slash": ([request(stream=stream(1), headers={"method": "Echo"})], INTERNAL, "header fields"),
    "a method of 60,000 bytes": ([headers(1, "/" + "x" * 60_000)], INTERNAL, "header fields"),
    "a key of metadata that is empty": ([headers(1, metadata={"": ["x"]})], INTERNAL, "header fields"),
    "a pseudo-header": ([headers(1, metadata={":path": ["/x"]})], INTERNAL, "header fields"),
    "a key with a line break": ([headers(1, metadata={"a\nb": ["x"]})], INTERNAL, "header fields"),
    "a key that is not ASCII": ([headers(1, metadata={"ключ": ["x"]})], INTERNAL, "header fields"),
    "a value with a line break": ([headers(1, metadata={"k": ["a\r\nb: c"]})], INTERNAL, "header fields"),
    "a value with NUL": ([headers(1, metadata={"k": ["\0"]})], INTERNAL, "header fields"),
    "a value that is not Latin-1": ([headers(1, metadata={"k": ["\u20ac"]})], INTERNAL, "header fields"),
    "too many keys": ([headers(1, metadata={str(n): [] for n in range(200)})], EXHAUSTED, "header list size"),
    "too many values": ([headers(1, metadata={"k": [""] * 200})], EXHAUSTED, "header list size"),
    "a large value": ([headers(1, metadata={"k": ["x" * 5_000]})], EXHAUSTED, "header list size"),
    "32,000 empty values": ([with_metadata(field(1, field(1, b"k") + field(2, b"\x0a\0" * 32_000)))], EXHAUSTED, ""),
    "headers twice": ([headers(1, "Hang"), headers(1, "Hang")], INTERNAL, "stream id"),
    "a message after the end": ([headers(1, "Unread"), packet(1), packet(1)], INTERNAL, "frame format"),
    "the end twice": ([headers(1, "Unread"), half_close(1), half_close(1)], INTERNAL, "frame format"),
    "the end inside a message": (
        [headers(1, "Unread"), packet(1, b"x", eom=False, eos=False), half_close(1)],
        INTERNAL,
        "frame format",
    ),
    "a message that is too large": (
        [headers(1, "Hang"), *[packet(1, BIG, eom=False, eos=False)] * 4],
        EXHAUSTED,
        "message size",
    ),
    "unread messages": ([headers(1, "Hang"), *[packet(1, BIG, eos=False)] * 6], EXHAUSTED, "buffered bytes"),
    "unread empty messages": (
        [headers(1, "Hang"), *[packet(1, b"", eos=False)] * 60_010],
        EXHAUSTED,
        "buffered bytes",
    ),
    "not a message": ([headers(1), packet(1, b"\xff\xff")], INTERNAL, ""),
    "metadata that is not base64": (
        [headers(1, "Echo", {"data-bin": ["?"]}), packet(1)],
        Status.OK,
        "",
    ),
}


@pytest.mark.parametrize("row", ENDS_CHANNEL)
async def test_the_channel_ends(row: str, caplog: pytest.LogCaptureFixture) -> None:
    envelopes, reason = ENDS_CHANNEL[row]
    async with raw(limits=LIMITS) as client:
        await client.send(*envelopes)
        await wait_all_tasks_blocked()
        assert client.ended
        assert client.core.statistics.refusals[reason] >= 1
        assert client.core.statistics.open_connections == 0
    assert [record for record in caplog.records if record.levelno > logging.INFO] == []


@pytest.mark.parametrize("row", ENDS_CALL)
async def test_the_call_ends(row: str, caplog: pytest.LogCaptureFixture) -> None:
    envelopes, status, reason = ENDS_CALL[row]
    async with raw(limits=LIMITS) as client:
        await client.send(*envelopes)
        await wait_all_tasks_blocked()
        assert client.status(1) is status
        assert client.kinds(1)[0] == "headers"
        assert client.kinds(1)[-1] == "trailers"
        if reason:
            assert client.core.statistics.refusals == {reason: 1}
        assert client.connection.budget.used == 0
        assert client.connection.running == 0
        await client.send(headers(2), packet(2))
        await wait_all_tasks_blocked()
        assert client.texts(2) == ["hello"], "other calls go on"
    errors = [record for record in caplog.records if record.levelno > logging.INFO]
    assert [record.getMessage() for record in errors] == []


async def test_messages_larger_than_the_channel_allows_end_it() -> None:
    async with raw() as client:
        client.connection.channel.arrived(bytes(MAX_MESSAGE + 1))  # an engine may deliver it
        await wait_all_tasks_blocked()
        assert client.ended
        assert client.core.statistics.refusals == {"frame size": 1}


async def test_all_calls_together_are_limited() -> None:
    async with raw(limits=LIMITS) as client:
        for sid in range(1, 10):
            await client.send(headers(sid, "Hang"), *[packet(sid, BIG, eos=False)] * 2)
        await wait_all_tasks_blocked()
        ended = [sid for sid in range(1, 10) if client.status(sid) is EXHAUSTED]
        assert len(ended) == 1, "the call that receives beyond the limit"
        assert client.connection.budget.used <= LIMITS.max_buffered


async def test_refused_calls_end_while_others_go_on() -> None:
    async with raw(limits=LIMITS) as client:
        await client.send(*[headers(sid, "Hang") for sid in range(12)])
        await wait_all_tasks_blocked()
        assert [client.status(sid) for sid in range(12)] == [None] * 10 + [EXHAUSTED] * 2
        await client.send(reset(3), headers(12), packet(12))
        await wait_all_tasks_blocked()
        assert (client.status(3), client.texts(12)) == (Status.CANCELLED, ["hello"])


async def test_a_peer_that_reads_nothing_is_not_read_either(autojump_clock: trio.testing.MockClock) -> None:
    async with raw(rate=1.0, reading=False) as client:
        for sid in range(100_000):
            client.connection.channel.arrived(headers(sid, "Missing"))
        await wait_all_tasks_blocked()
        assert client.connection.channel.buffered < 3_000_000
        assert client.core.statistics.failed_calls < 100_000


async def test_a_peer_that_never_reads_loses_its_channel(autojump_clock: trio.testing.MockClock) -> None:
    async with raw(limits=Limits(window_stall=30), rate=1.0, reading=False) as client:
        for sid in range(100_000):
            client.connection.channel.arrived(headers(sid, "Missing"))
        begin = trio.current_time()
        await client.core._changed.next.wait()
        assert trio.current_time() - begin == pytest.approx(30, abs=2)
        assert client.core.statistics.refusals["slow reader"] == 1


async def test_a_stalled_reply_ends_the_channel(autojump_clock: trio.testing.MockClock) -> None:
    async with raw(limits=Limits(window_stall=30), rate=0.01, reading=False) as client:
        client.connection.channel.arrived(headers(1, "Many"))
        client.connection.channel.arrived(packet(1, b"\x0a\x0a1000,10000"))
        begin = trio.current_time()
        await client.core._changed.next.wait()
        assert trio.current_time() - begin == pytest.approx(30, abs=2)
        assert client.core.statistics.refusals == {"slow reader": 1}
