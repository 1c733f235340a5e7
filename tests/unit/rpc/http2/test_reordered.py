"""Frames that arrive in a different order than their stream ids: each request has exactly one outcome."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import memory_stream_pair

from rpc import errors
from rpc.call import ServerCore
from rpc.http2.codec import frames, hpack
from rpc.http2.server import ServerConnection, serve_http2
from rpc.http2.skipped import Skipped
from rpc.limits import Limits
from runtime.parts.modules.process import PARENT
from tests.unit.rpc.echo import EchoService
from tests.unit.rpc.http2.test_against_h2 import message, replies, request

CLOSED = errors.STREAM_CLOSED
END = b"the end!"


def head(sid: int, *, end: bool = False, method: str = "Echo") -> bytes:
    return frames.headers(sid, hpack.encode_headers(request(method)), end=end, max_frame=16384)


def data(sid: int, text: str = "hello", *, end: bool = True) -> bytes:
    return frames.frame(frames.DATA, frames.END_STREAM if end else 0, sid, message(text))


@dataclass
class Seen:
    """Records the responses of the server."""

    bodies: dict[int, bytes] = field(default_factory=dict)
    ended: list[int] = field(default_factory=list)  # ids of streams with END_STREAM, in order
    resets: list[tuple[int, int]] = field(default_factory=list)
    goaway: tuple[int, int] | None = None  # last stream id, error code
    closed: bool = False

    def texts(self, sid: int) -> list[str]:
        return replies(self.bodies.get(sid, b""))

    def outcomes(self, sid: int) -> int:
        """Count the responses to a request, or 1 if its stream was reset or the connection ended."""
        if sid in self.ended:
            return self.ended.count(sid)
        return int(any(sid == first for first, _ in self.resets) or self.closed or self.goaway is not None)


async def read(stream: trio.abc.ReceiveStream, seen: Seen) -> None:
    """Read until the server answers the final PING or closes the connection."""
    rest = b""
    while True:
        try:
            more = await stream.receive_some()
        except trio.BrokenResourceError:
            more = b""
        if not more:
            seen.closed = True
            return
        rest += bytes(more)
        while len(rest) >= 9 and len(rest) >= 9 + (size := int.from_bytes(rest[:3], "big")):
            kind, flags, sid, payload = rest[3], rest[4], int.from_bytes(rest[5:9], "big"), rest[9 : 9 + size]
            rest = rest[9 + size :]
            if kind == frames.DATA:
                seen.bodies[sid] = seen.bodies.get(sid, b"") + payload
            if kind in (frames.DATA, frames.HEADERS) and flags & frames.END_STREAM:
                seen.ended.append(sid)
            elif kind == frames.RST_STREAM:
                seen.resets.append((sid, int.from_bytes(payload, "big")))
            elif kind == frames.GOAWAY:
                seen.goaway = int.from_bytes(payload[:4], "big"), int.from_bytes(payload[4:8], "big")
            elif kind == frames.PING and payload == END:
                return


async def exchange(pieces: list[bytes], limits: Limits) -> Seen:
    """Send `pieces` in one write each, let the calls finish, and send a final PING."""
    seen = Seen()
    client, server = memory_stream_pair()
    core = ServerCore(EchoService().__mapping__(), limits=limits)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve_http2, server, core)
        try:
            for piece in (frames.PREFACE + frames.settings(()), *pieces):
                await client.send_all(piece)
            await trio.testing.wait_all_tasks_blocked()
            await client.send_all(frames.ping(END, ack=False))
        except trio.BrokenResourceError:
            pass
        await read(client, seen)
        nursery.cancel_scope.cancel()
    return seen


async def test_a_stream_that_was_passed_over_is_served_on_a_module_socket():
    seen = await exchange([head(3), head(1), data(1, "one"), data(3, "three")], PARENT)
    assert (seen.texts(1), seen.texts(3), seen.resets) == (["one"], ["three"], [])


async def test_elsewhere_it_is_reset_at_once(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO, "rpc.http2")
    seen = await exchange([head(3), head(1), data(1, "one"), data(3, "three")], Limits())
    assert (seen.texts(3), seen.goaway) == (["three"], None)
    assert seen.resets == [(1, CLOSED)]
    assert "stream 1, which is closed" in caplog.text


@pytest.mark.parametrize("order", [(0, 2, 1, 3), (2, 0, 1, 3), (2, 3, 0, 1), (2, 0, 3, 1), (3, 2, 1, 0)])
async def test_data_before_its_headers_waits_for_them_on_a_module_socket(order: tuple[int, ...]):
    pieces = [head(3), data(3, "three"), data(1, "one"), head(1)]
    seen = await exchange([pieces[index] for index in order], PARENT)
    assert (seen.texts(1), seen.texts(3), seen.resets, seen.goaway) == (["one"], ["three"], [], None)


async def test_data_of_a_stream_that_was_passed_over_is_answered_elsewhere():
    seen = await exchange([head(3), data(1), data(3)], Limits())
    assert (seen.resets, seen.texts(3)) == ([(1, CLOSED)], ["hello"])


async def test_a_reset_before_its_headers_ends_the_stream():
    reset = frames.rst_stream(1, errors.CANCEL)
    for first in ([head(3), reset], [reset, head(3)]):
        seen = await exchange([*first, head(1), data(1), data(3)], PARENT)
        assert (seen.texts(1), seen.texts(3), seen.goaway) == ([], ["hello"], None)
        assert seen.ended == [3]


async def test_a_request_whose_id_was_used_before_is_reset():
    for limits in (PARENT, Limits()):
        seen = await exchange([head(1), data(1), b"", head(1), data(1), head(3), data(3)], limits)
        assert seen.ended == [1, 3]
        assert seen.resets in ([(1, CLOSED)], [(1, errors.PROTOCOL_ERROR)], [])
        assert seen.texts(3) == ["hello"]


async def test_frames_that_come_twice_harm_no_call_on_a_module_socket():
    for pieces in ([head(1), data(1), data(1)], [head(1), head(1), data(1)], [head(1) + data(1) + head(1) + data(1)]):
        seen = await exchange(pieces, PARENT)
        assert (seen.texts(1), seen.ended, seen.resets, seen.goaway) == (["hello"], [1], [], None)


async def test_trailers_of_a_finished_call_are_not_an_error(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.DEBUG, "rpc.http2")
    trailers = frames.headers(1, hpack.encode_headers([("x", "y")]), end=True, max_frame=16384)
    seen = await exchange([head(1), data(1), trailers, head(3), data(3)], Limits())
    assert (seen.ended, seen.goaway) == ([1, 3], None)
    assert "ignored from" in caplog.text


async def test_goaway_never_names_a_higher_stream_than_before():
    """Streams that GOAWAY refused stay refused: the client may have retried them elsewhere."""
    client, server = memory_stream_pair()
    core = ServerCore(EchoService().__mapping__())
    seen = Seen()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve_http2, server, core)
        await client.send_all(frames.PREFACE + frames.settings(()) + head(1, method="Unread"))
        await trio.testing.wait_all_tasks_blocked()
        (connection,) = core._connections
        assert isinstance(connection, ServerConnection)
        connection.drain()
        await client.send_all(frames.ping(b"draining", ack=True))
        await trio.testing.wait_all_tasks_blocked()
        await client.send_all(head(5) + data(5) + head(3) + data(3) + frames.rst_stream(1, errors.CANCEL))
        await read(client, seen)
        nursery.cancel_scope.cancel()
    assert seen.goaway == (1, errors.NO_ERROR)
    assert seen.closed
    assert not seen.ended


async def test_memory_of_skipped_stream_ids_is_bounded():
    skipped = Skipped(4, 1000)
    skipped.add(1, 2**31 - 1)
    assert (len(skipped), skipped.forgotten) == (4, 2**31 - 11)
    assert 2**31 - 3 in skipped
    sid = 2**31 - 3
    assert skipped.keep(sid, (b"x" * 800, 800, False))
    assert not skipped.keep(sid, (b"x", 1, False))
    assert skipped.take(sid) == [(b"x" * 800, 800, False)]
    assert skipped.keep(2**31 - 5, (b"x" * 800, 800, False))


async def test_a_request_that_comes_after_its_id_was_forgotten_is_reset():
    limits = Limits(max_streams=2, late_streams=True)
    early = [data(1), data(3), data(5)]  # two of the three ids are remembered
    seen = await exchange([*early, head(1), head(3), head(5)], limits)
    assert seen.resets == [(1, CLOSED)]
    assert sorted(seen.ended) == [3, 5]
    seen = await exchange([head(9), data(9), head(1), data(1), head(5), data(5), head(7), data(7)], limits)
    assert seen.resets == [(1, CLOSED)]
    assert sorted(seen.ended) == [5, 7, 9]


async def test_ids_passed_over_cost_no_memory_and_no_time():
    pieces = [head(sid) + data(sid) for sid in range(1, 2**30, 2**22)]
    seen = await exchange(pieces, PARENT)
    assert len(seen.ended) == len(pieces)


@st.composite
def shuffled(draw: st.DrawFn) -> tuple[list[bytes], set[int]]:
    """Draw frames of a few requests; each may be delayed, repeated or split."""
    sids = [2 * n + 1 for n in range(draw(st.integers(1, 6)))]
    queue: list[tuple[int, bytes]] = []
    for position, sid in enumerate(sids):
        parts = [head(sid, method=draw(st.sampled_from(["Echo", "Collect", "Bidi", "Missing"])))]
        parts += [data(sid, end=False) for _ in range(draw(st.integers(0, 2)))]
        parts.append(data(sid))
        for index, part in enumerate(parts):
            due = 4 * position + index + draw(st.integers(0, 12))
            queue.append((due, part))
            if draw(st.integers(0, 9)) == 0:
                queue.append((due + draw(st.integers(0, 8)), part))
    stream = b"".join(part for _, part in sorted(queue, key=lambda item: item[0]))
    cuts = sorted(draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    return [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)], set(sids)


@settings(max_examples=100, deadline=None)
@given(shuffled(), st.sampled_from([PARENT, Limits(), Limits(max_streams=2, late_streams=True)]))
async def test_every_request_has_exactly_one_outcome(sent: tuple[list[bytes], set[int]], limits: Limits):
    pieces, sids = sent
    with trio.fail_after(5):
        seen = await exchange([piece for piece in pieces if piece], limits)
    assert {sid: seen.outcomes(sid) for sid in sids} == dict.fromkeys(sids, 1)
