"""Calls through the HTTP/2 server, with `h2` as the client, have the same results as direct calls."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from random import Random
from typing import Any

import h2.settings
import pytest
import trio
import trio.testing
from grpclib.reflection.v1.reflection_pb2 import ServerReflectionRequest as Request
from grpclib.reflection.v1.reflection_pb2 import ServerReflectionResponse as Reply
from hypothesis import given, settings
from hypothesis import strategies as st

from rpc import errors
from rpc.call import ServerCore
from rpc.http2.server import ServerConnection, serve_http2
from rpc.limits import Limits
from tests.unit.rpc.echo import PATH, EchoService
from tests.unit.rpc.h2_peer import Answer, H2Client

FIELDS = [(":method", "POST"), (":scheme", "http"), (":authority", "x"), ("te", "trailers")]
SMALL = Limits(stream_window=20_000, connection_window=70_000, send_high_water=5_000, max_frame=16_384)


def request(method: str, *extra: tuple[str, str]) -> list[tuple[str, str]]:
    return [*FIELDS[:3], (":path", PATH + method), FIELDS[3], ("content-type", "application/grpc"), *extra]


def message(text: str) -> bytes:
    data = Request(host=text).SerializeToString()
    return b"\0" + len(data).to_bytes(4, "big") + data


def replies(body: bytes) -> list[str]:
    results = []
    while body:
        assert body[0] == 0
        size = int.from_bytes(body[1:5], "big")
        results.append(Reply.FromString(body[5 : 5 + size]).valid_host)
        assert len(body) >= 5 + size
        body = body[5 + size :]
    return results


@dataclass
class Planned:
    """A call and its expected result."""

    method: str
    plan: list[str | int]  # a number is the length of a text

    @property
    def requests(self) -> list[str]:
        return ["a" * item if isinstance(item, int) else item for item in self.plan]

    @property
    def expected(self) -> tuple[list[str], str]:
        texts = self.requests
        match self.method:
            case "Echo":
                return texts[:1], "0"
            case "Many":
                count, size = map(int, texts[0].split(","))
                return ["x" * size] * count, "0"
            case "Collect":
                return [str(sum(map(len, texts)))], "0"
            case "Bidi":
                return texts, "0"
            case "Fail":
                return [], {"grpc": "5", "machine": "9", "trailing": "15"}[texts[0]]
        return [], "12"


TEXTS = st.sampled_from([0, 1, 30, 5_000, 30_000])
CALLS = st.one_of(
    st.builds(Planned, st.just("Echo"), st.lists(TEXTS, min_size=1, max_size=1)),
    st.builds(Planned, st.just("Many"), st.sampled_from([["0,0"], ["40,5"], ["3,30000"], ["200,200"]])),
    st.builds(Planned, st.just("Collect"), st.lists(TEXTS, max_size=5)),
    st.builds(Planned, st.just("Bidi"), st.lists(TEXTS, max_size=5)),
    st.builds(Planned, st.just("Fail"), st.sampled_from([["grpc"], ["machine"], ["trailing"]])),
    st.builds(Planned, st.just("Missing"), st.just(["x"])),
)
SIDE = ("ping", "priority", "settings", "window", "nothing", "rst")


class Script:
    """Send planned calls interleaved, in pieces of any size, and read when sending is blocked.

    A seed decides the choices because the available ones depend on the responses so far.
    """

    def __init__(self, client: H2Client, chance: Random) -> None:
        self.client = client
        self.chance = chance

    async def run(self, calls: list[Planned]) -> list[Answer]:
        client, chance = self.client, self.chance
        rests: dict[int, bytes] = {}
        order: list[int] = []
        waiting = list(calls)
        while waiting or rests:
            assert not client.closed, client.goaway
            if waiting and (not rests or chance.random() < 0.5):
                call = waiting.pop(0)
                if chance.random() < 0.5:
                    sid = client.begin(request(call.method), priority_weight=7, priority_exclusive=True)
                else:  # h2 cannot send a long header block together with a priority
                    sid = client.begin(request(call.method, ("x-pad", "y" * chance.choice([0, 10, 20_000]))))
                order.append(sid)
                rests[sid] = b"".join(map(message, call.requests))
            else:
                sid = chance.choice(sorted(rests))
                await self.piece(sid, rests)
            self.side_action(chance.choice(SIDE))
            await client.flush([chance.randint(1, 40) for _ in range(chance.randint(0, 4))])
        return [await client.answer(sid) for sid in order]

    async def piece(self, sid: int, rests: dict[int, bytes]) -> None:
        client, chance = self.client, self.chance
        if client.answers[sid].over:  # refused before its body was read
            del rests[sid]
            return
        rest = rests[sid]
        padding = chance.choice([None, 0, 3, 255])
        cost = 0 if padding is None else padding + 1
        room = min(client.h2.local_flow_control_window(sid), client.h2.max_outbound_frame_size) - cost
        if rest and room <= 0:
            await client.step()
            return
        size = chance.choice([1, 4, 5, 100, 16_384, 100_000])
        piece, rests[sid] = rest[: min(size, max(room, 0))], rest[min(size, max(room, 0)) :]
        if piece or not rest:
            last = not rests[sid]
            with_trailers = last and chance.random() < 0.5
            client.h2.send_data(
                sid, piece, end_stream=last and not with_trailers, pad_length=padding if piece else None
            )
            if with_trailers:
                client.h2.send_headers(sid, [("x-checksum", "1")], end_stream=True)
            if last:
                del rests[sid]

    def side_action(self, what: str) -> None:
        """Send frames that do not affect the results of calls."""
        client, chance = self.client, self.chance
        if what == "ping":
            client.h2.ping(b"12345678")
        elif what == "priority":
            client.h2.prioritize(chance.choice([1, 3, 11, 101]), weight=chance.randint(1, 256), depends_on=0)
        elif what == "settings":
            client.h2.update_settings(
                {
                    h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: chance.choice([300, 5_000, 65_535, 1_000_000]),
                    h2.settings.SettingCodes.MAX_FRAME_SIZE: chance.choice([16_384, 100_000]),
                    h2.settings.SettingCodes.HEADER_TABLE_SIZE: chance.choice([0, 100, 4_096, 10_000]),
                }
            )
        elif what == "window":
            client.h2.increment_flow_control_window(chance.choice([1, 10_000]))
        elif what == "rst":
            sid = client.begin(request("Unread"))
            client.h2.reset_stream(sid, chance.choice([errors.CANCEL, errors.NO_ERROR, 999]))
            client.answers[sid].reset = -1


@settings(max_examples=60, deadline=None)
@given(calls=st.lists(CALLS, min_size=1, max_size=6), seed=st.integers(0, 2**32))
def test_any_order_of_frames_gives_what_the_calls_give(calls: list[Planned], seed: int):
    async def main() -> None:
        core = ServerCore(EchoService().__mapping__(), limits=SMALL)
        async with trio.open_nursery() as nursery:
            near, far = trio.testing.memory_stream_pair()
            nursery.start_soon(serve_http2, far, core)
            client = H2Client(near)
            await client.start()
            with trio.fail_after(5):  # virtual seconds
                await client.until(lambda: client.acknowledged > 0)  # h2 applies the latest at any acknowledgement
                answers = await Script(client, Random(seed)).run(calls)
            for call, answer in zip(calls, answers, strict=True):
                texts, status = call.expected
                assert answer.reset in (None, 0), answer
                last = answer.headers if answer.trailers is None else answer.trailers
                same = replies(answer.body) == texts
                assert (same, last["grpc-status"]) == (True, status), call
            await trio.testing.wait_all_tasks_blocked()
            (connection,) = core._connections
            assert isinstance(connection, ServerConnection)
            assert connection.streams == {}
            assert connection.budget.used == 0
            assert not core.statistics.refusals
            # h2 checks the window we return against the data it sent: no window may be lost over time
            assert connection.receive_window + connection.receive_owed == SMALL.connection_window
            nursery.cancel_scope.cancel()

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))


async def connected(nursery: trio.Nursery, core: ServerCore, **options: Any) -> H2Client:
    near, far = trio.testing.memory_stream_pair()
    nursery.start_soon(serve_http2, far, core)
    client = H2Client(near, **options)
    await client.start()
    return client


@pytest.mark.parametrize("sizes", [[0], [100], [100, 4096], [0, 10_000, 4096]])
async def test_a_header_table_that_was_reduced_is_declared_empty(sizes: list[int]):
    """RFC 7541 section 4.2 requires the announcement, also after several size changes between two header blocks."""
    core = ServerCore(EchoService().__mapping__())
    async with trio.open_nursery() as nursery:
        client = await connected(nursery, core)
        assert (await client.ask(request("Echo"), message("a"))).trailers == {"grpc-status": "0"}
        for size in sizes:
            client.h2.update_settings({h2.settings.SettingCodes.HEADER_TABLE_SIZE: size})
        await client.flush()
        await trio.testing.wait_all_tasks_blocked()
        (connection,) = core._connections
        assert isinstance(connection, ServerConnection)
        assert connection.shrink_table
        for _ in range(2):
            answer = await client.ask(request("Echo"), message("b"))
            assert (replies(answer.body), answer.trailers) == (["b"], {"grpc-status": "0"})
        assert not connection.shrink_table
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("kind", ["application/grpc;charset=utf-8", "application/grpc+proto; x=y", "Application/GRPC"])
async def test_parameters_of_the_content_type_mean_nothing(nursery: trio.Nursery, kind: str):
    client = await connected(nursery, ServerCore(EchoService().__mapping__()))
    fields = [(name, kind if name == "content-type" else value) for name, value in request("Echo")]
    answer = await client.ask(fields, message("a"))
    assert (replies(answer.body), answer.trailers) == (["a"], {"grpc-status": "0"})
    await client.stream.aclose()
    nursery.cancel_scope.cancel()


@pytest.mark.parametrize("kilobytes", [28, 36, 50])
async def test_metadata_beyond_the_limit_costs_its_call_only(nursery: trio.Nursery, kilobytes: int):
    """The header values are indexed, so later calls need the table in the state that the refused call left."""
    core = ServerCore(EchoService().__mapping__())
    client = await connected(nursery, core)
    before = client.begin(request("Bidi"))
    await client.send(before, message("early"), end=False)
    metadata = [(f"x-{number}", chr(97 + number % 26) * 1000) for number in range(kilobytes)]
    answer = await client.ask(request("Echo", *metadata), message("a"))
    if kilobytes < 32:
        assert (replies(answer.body), answer.trailers) == (["a"], {"grpc-status": "0"})
    else:
        assert (answer.status, answer.headers["grpc-status"], answer.body) == (200, "8", b"")
        assert answer.headers["grpc-message"] == (
            "header list of more than 32768 bytes, counting 32 more for each field; send less metadata"
        )
        assert core.statistics.refusals == {"header list size": 1}
    for _ in range(2):
        answer = await client.ask(request("Echo", metadata[-1], metadata[-2]), message("b"))
        assert (replies(answer.body), answer.trailers) == (["b"], {"grpc-status": "0"})
    await client.send(before, message("late"))
    assert replies((await client.answer(before)).body) == ["early", "late"]
    await client.stream.aclose()
    nursery.cancel_scope.cancel()


async def test_oversized_headers_that_are_not_a_call_get_an_http_status(nursery: trio.Nursery):
    client = await connected(nursery, ServerCore(EchoService().__mapping__()))
    fields = [*FIELDS[:3], (":path", "/page"), *((f"x-{number}", "x" * 8192) for number in range(5))]
    assert (await client.ask(fields)).status == 431
    assert (await client.ask(request("Echo"), message("a"))).trailers == {"grpc-status": "0"}
    await client.stream.aclose()
    nursery.cancel_scope.cancel()


async def test_a_full_server_says_so_as_http2_wants_it(autojump_clock: trio.testing.MockClock):
    core = ServerCore(EchoService().__mapping__(), limits=Limits(max_connections=1))
    async with trio.open_nursery() as nursery:
        first = await connected(nursery, core)
        await first.ask(request("Echo"), message("a"))
        near, far = trio.testing.memory_stream_pair()
        nursery.start_soon(serve_http2, far, core)
        received = b""
        while more := await near.receive_some():
            received += more
        assert [received[3], received[12]] == [4, 7], "SETTINGS come first, then GOAWAY"
        assert core.statistics.refusals == {"connections": 1}
        assert core.statistics.open_connections == 1
        await first.stream.aclose()
        await trio.testing.wait_all_tasks_blocked()
        second = await connected(nursery, core)
        assert replies((await second.ask(request("Echo"), message("b"))).body) == ["b"]
        nursery.cancel_scope.cancel()


async def test_an_idle_connection_is_closed_and_a_busy_one_is_not(autojump_clock: trio.testing.MockClock):
    service = EchoService()
    core = ServerCore(service.__mapping__(), limits=Limits(idle_timeout=30, keepalive_interval=inf))
    async with trio.open_nursery() as nursery:
        client = await connected(nursery, core)
        await trio.sleep(20)
        await client.ask(request("Echo"), message("a"))
        assert trio.current_time() == pytest.approx(20)
        await trio.sleep(20)
        sid = client.begin(request("Unread"))
        await client.send(sid, message("abc"))
        await trio.sleep(100)
        await trio.testing.wait_all_tasks_blocked()
        assert core.statistics.open_connections == 1
        service.gate.set()
        assert replies((await client.answer(sid)).body) == ["3"]
        ended = trio.current_time()
        await client.until(lambda: client.goaway is not None)
        assert client.goaway is not None
        assert client.goaway.error_code == errors.NO_ERROR
        assert trio.current_time() - ended == pytest.approx(30)
        assert core.statistics.refusals == {"idle connection": 1}
        nursery.cancel_scope.cancel()


async def test_a_silent_peer_is_asked_and_then_dropped(autojump_clock: trio.testing.MockClock):
    core = ServerCore(EchoService().__mapping__(), limits=Limits(keepalive_interval=60, keepalive_timeout=20))
    async with trio.open_nursery() as nursery:
        client = await connected(nursery, core)
        with trio.move_on_after(500):
            await client.until(lambda: False)  # h2 answers each PING
        assert core.statistics.open_connections == 1
        last = trio.current_time()
        await trio.sleep(200)  # the client neither reads nor answers
        await client.until(lambda: client.goaway is not None)
        assert client.goaway is not None
        assert client.goaway.additional_data == b"keepalive timeout"
        assert core.statistics.refusals == {"keepalive timeout": 1}
        assert trio.current_time() > last
        nursery.cancel_scope.cancel()


async def test_streams_are_refused_while_others_run(autojump_clock: trio.testing.MockClock):
    service = EchoService()
    core = ServerCore(service.__mapping__(), limits=Limits(max_streams=3))
    async with trio.open_nursery() as nursery:
        client = await connected(nursery, core)  # h2 learns the limit only from the SETTINGS of the server
        sids = [client.begin(request("Unread")) for _ in range(5)]
        await client.flush()
        for sid in sids[3:]:
            assert (await client.answer(sid)).reset == errors.REFUSED_STREAM
        service.gate.set()
        for sid in sids[:3]:
            await client.send(sid, message("abc"))
            assert replies((await client.answer(sid)).body) == ["3"]
        assert core.statistics.refusals == {"streams": 2}
        nursery.cancel_scope.cancel()


async def test_draining_takes_what_was_on_its_way_and_nothing_later(autojump_clock: trio.testing.MockClock):
    service = EchoService()
    core = ServerCore(service.__mapping__())
    async with trio.open_nursery() as nursery:
        client = await connected(nursery, core)
        await client.until(lambda: bool(client.settings))
        early = client.begin(request("Unread"))
        await client.send(early, message("abc"))
        await service.started.wait()
        nursery.start_soon(core.drain)
        await trio.testing.wait_all_tasks_blocked()
        crossing = client.begin(request("Echo"))
        await client.send(crossing, message("crossing"))  # the client has not read the GOAWAY yet
        await client.until(lambda: bool(client.answers[crossing].body))
        assert client.goaway is not None
        assert client.goaway.last_stream_id == 2**31 - 1
        assert replies(client.answers[crossing].body) == ["crossing"]
        service.gate.set()
        before = trio.current_time()
        await client.until(lambda: client.closed)
        assert replies(client.answers[early].body) == ["3"]
        assert trio.current_time() == before, "closed with the last call"
        nursery.cancel_scope.cancel()


async def test_calls_that_outlive_the_drain_are_reported(autojump_clock: trio.testing.MockClock):
    service = EchoService()
    core = ServerCore(service.__mapping__(), limits=Limits(drain_timeout=4))
    async with trio.open_nursery() as nursery:
        near, far = trio.testing.memory_stream_pair()
        scope = trio.CancelScope()

        async def serve() -> None:
            with scope:
                await serve_http2(far, core)

        nursery.start_soon(serve)
        client = H2Client(near)
        await client.start()
        sid = client.begin(request("Hang"))
        await client.send(sid, message("x"))
        await service.started.wait()
        before = trio.current_time()
        await core.drain()
        assert trio.current_time() - before == 4
        scope.cancel()
        await service.cancelled.wait()
        await client.until(lambda: client.closed)
        assert client.answers[sid].headers, "UNAVAILABLE, as far as the peer takes it"
        assert core.statistics.failed_calls == 1
        nursery.cancel_scope.cancel()
