"""HTTP/1.1 connections over memory streams: keep-alive, deadlines, bodies, refusals and shutdown."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.routing import Route

from rpc.http.limits import HttpLimits
from rpc.limits import Limits
from tests.unit.rpc.http1.support import serving

GET = b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n"


async def echo(request: Request) -> PlainTextResponse:
    return PlainTextResponse(await request.body() or b"nothing")


async def ignore(request: Request) -> PlainTextResponse:
    return PlainTextResponse("ignored")


APP = Starlette(routes=[Route("/", echo, methods=["GET", "POST", "PUT"]), Route("/ignore", ignore, methods=["POST"])])


async def test_keep_alive() -> None:
    async with serving(APP) as server:
        client = server.connect()
        for body in (b"", b"one", b"two"):
            response = await client.request("POST", "/", body=body)
            assert (response.status, response.body) == (200, body or b"nothing")
            assert "date" in response.headers
        assert server.core.statistics.connections == 1


async def test_chunked_request() -> None:
    async with serving(APP) as server:
        response = await server.connect().request("POST", "/", [("transfer-encoding", "chunked")], b"abc")
        assert response.body == b"abc"


async def test_a_client_that_is_quicker_than_the_end_of_the_page_is_answered() -> None:
    """The client has its response and sends the next request while the application is still cleaning up."""
    left, asked = trio.Event(), trio.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})
        if not left.is_set():
            await asked.wait()
            await trio.testing.wait_all_tasks_blocked()  # the second request has arrived
            left.set()

    async with serving(app) as server:
        client = server.connect()
        first = await client.request("GET", "/")
        async with trio.open_nursery() as nursery:

            async def second() -> None:
                assert (await client.request("GET", "/")).body == first.body == b"ok"

            nursery.start_soon(second)
            await trio.testing.wait_all_tasks_blocked()
            asked.set()


@pytest.mark.parametrize(
    ("method", "status", "fields", "body"),
    [
        ("GET", 303, [(b"content-length", b"0")], b""),
        ("GET", 204, [], b""),
        ("GET", 304, [], b""),
        ("HEAD", 200, [], b""),
        ("GET", 200, [(b"content-length", b"2")], b"ok"),
    ],
)
async def test_a_client_that_is_quicker_than_the_last_message_of_the_page_is_answered(
    method: str, status: int, fields: list[tuple[bytes, bytes]], body: bytes
) -> None:
    """The client knows from the head, or from the length, that it has the response before the application ends it."""
    first, sent = True, trio.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        nonlocal first
        await send({"type": "http.response.start", "status": status, "headers": fields})
        if body:
            await send({"type": "http.response.body", "body": body, "more_body": True})
        if first:
            first = False
            await sent.wait()
            await trio.testing.wait_all_tasks_blocked()  # the second request has arrived
        await send({"type": "http.response.body", "body": b""})

    async with serving(app) as server:
        client = server.connect()
        assert (await client.request(method, "/")).status == status
        async with trio.open_nursery() as nursery:

            async def second() -> None:
                assert (await client.request(method, "/")).body == body

            nursery.start_soon(second)
            await trio.testing.wait_all_tasks_blocked()
            sent.set()


async def test_a_client_that_had_its_answer_before_its_body_was_read_is_answered() -> None:
    async with serving(APP) as server:
        client = server.connect()
        await client.stream.send_all(b"POST /ignore HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\n")
        await trio.testing.wait_all_tasks_blocked()  # the response has arrived
        received = await client.raw(b"body." + GET.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n"))
        assert received.count(b"HTTP/1.1 200") == 2
        assert received.endswith(b"nothing")


async def test_head_has_no_body() -> None:
    async with serving(APP) as server:
        received = await server.connect().raw(b"HEAD / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
        assert received.startswith(b"HTTP/1.1 200")
        assert b"content-length: 7" in received.lower()
        assert received.endswith(b"\r\n\r\n")


async def test_http_1_0_is_answered_and_closed() -> None:
    async with serving(APP) as server:
        received = await server.connect().raw(b"GET / HTTP/1.0\r\n\r\n")
        assert received.startswith(b"HTTP/1.1 200")
        assert received.endswith(b"nothing")


async def test_close_on_request() -> None:
    async with serving(APP) as server:
        response = await server.connect().raw(GET.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n"))
        assert b"\r\nconnection: close\r\n" in response.lower()


async def test_pipelined_requests_are_not_served() -> None:
    async with serving(APP) as server:
        received = await server.connect().raw(GET * 3)
        assert received.count(b"HTTP/1.1 200") == 1


async def test_a_smuggled_request_in_a_body_is_only_a_body() -> None:
    async with serving(APP) as server:
        client = server.connect()
        inner = b"GET /secret HTTP/1.1\r\nhost: a\r\n\r\n"
        assert (await client.request("POST", "/", body=inner)).body == inner
        assert (await client.request("GET", "/")).body == b"nothing"


@pytest.mark.parametrize(
    "body",
    [
        b"-1\r\n",
        b"0x3\r\nabc\r\n0\r\n\r\n",
        b"3 \nabc",
        b"3\r\nabcd\r\n0\r\n\r\n",
        b"fffffffffffffffffffffffff\r\n",
        b"\r\n",
        b"3;" + b"x" * 70_000,
    ],
)
async def test_bad_chunks(body: bytes, autojump_clock: trio.testing.MockClock) -> None:
    async with serving(APP) as server:
        head = b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n"
        received = await server.connect().raw(head + body)
        assert received.split()[1] in (b"400", b"408", b"431")
        assert received.count(b"HTTP/1.1") == 1


async def test_unwanted_body_is_read_and_the_connection_used_again() -> None:
    async with serving(APP) as server:
        client = server.connect()
        assert (await client.request("POST", "/ignore", body=b"x" * 1000)).body == b"ignored"
        assert (await client.request("GET", "/")).body == b"nothing"


async def test_large_unwanted_body_ends_the_connection() -> None:
    async with serving(APP) as server:
        client = server.connect()
        head = b"POST /ignore HTTP/1.1\r\nhost: a\r\ncontent-length: 5000000\r\n\r\n"
        assert (await client.raw(head + b"x" * 100_000)).count(b"HTTP/1.1") == 1


async def test_continue_is_sent_only_when_the_body_is_wanted(autojump_clock: trio.testing.MockClock) -> None:
    async with serving(APP) as server:
        client = server.connect()
        await client.stream.send_all(b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\nexpect: 100-continue\r\n\r\n")
        assert (await client.stream.receive_some(1000)).startswith(b"HTTP/1.1 100 ")
        await client.stream.send_all(b"hi")
        await trio.testing.wait_all_tasks_blocked()
        assert (await client.stream.receive_some(1000)).endswith(b"hi")
        refused = await server.connect().raw(
            b"POST /nowhere HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\nexpect: 100-continue\r\n\r\n"
        )
        assert refused.startswith(b"HTTP/1.1 404")
        assert b"connection: close" in refused.lower()
        unknown = await server.connect().raw(b"POST / HTTP/1.1\r\nhost: a\r\nexpect: tea\r\n\r\n")
        assert unknown.startswith(b"HTTP/1.1 417")


async def test_silence_before_a_request_ends_quietly(autojump_clock: trio.testing.MockClock) -> None:
    async with serving(APP, limits=HttpLimits(idle_timeout=75)) as server:
        before = trio.current_time()
        assert await server.connect().rest() == b""
        assert trio.current_time() - before == pytest.approx(75)


async def test_a_slow_head_is_refused(autojump_clock: trio.testing.MockClock) -> None:
    async with serving(APP) as server:
        client = server.connect()

        async def drip() -> None:
            for index in range(len(GET)):
                await client.stream.send_all(GET[index : index + 1])
                await trio.sleep(1)

        server.nursery.start_soon(drip)
        before = trio.current_time()
        assert (await client.rest()).startswith(b"HTTP/1.1 408")
        assert 10 <= trio.current_time() - before < 12


async def test_a_slow_body_is_refused(autojump_clock: trio.testing.MockClock) -> None:
    async with serving(APP, limits=HttpLimits(body_grace=20, body_rate=10)) as server:
        client = server.connect()
        await client.stream.send_all(b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1000\r\n\r\n")

        async def drip() -> None:
            for _ in range(1000):
                await client.stream.send_all(b"x")
                await trio.sleep(1)

        server.nursery.start_soon(drip)
        before = trio.current_time()
        assert (await client.rest()).startswith(b"HTTP/1.1 408")
        assert 20 <= trio.current_time() - before < 25


async def test_a_body_at_the_rate_is_read_to_its_end(autojump_clock: trio.testing.MockClock) -> None:
    async with serving(APP, limits=HttpLimits(body_grace=5, body_rate=10)) as server:
        client = server.connect()
        await client.stream.send_all(b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 300\r\nconnection: close\r\n\r\n")

        async def steady() -> None:
            for _ in range(30):
                await client.stream.send_all(b"x" * 10)
                await trio.sleep(1)

        server.nursery.start_soon(steady)
        assert (await client.rest()).endswith(b"x" * 300)


async def test_body_bound() -> None:
    async with serving(APP, limits=HttpLimits(max_body=100, files_below="/files/", max_file=200)) as server:
        assert (await server.connect().request("POST", "/", body=b"x" * 100)).status == 200
        assert (await server.connect().request("POST", "/", body=b"x" * 101)).status == 413
        chunked = [("transfer-encoding", "chunked")]
        assert (await server.connect().request("POST", "/", chunked, b"x" * 101)).status == 413
        assert (await server.connect().request("POST", "/files/x", body=b"x" * 200)).status == 404
        assert (await server.connect().request("POST", "/files/x", body=b"x" * 201)).status == 413


async def test_trace_and_options() -> None:
    async with serving(APP) as server:
        assert (await server.connect().raw(b"TRACE / HTTP/1.1\r\nhost: a\r\n\r\n")).startswith(b"HTTP/1.1 405")
        assert (await server.connect().request("OPTIONS", "*")).status == 204


async def test_errors_name_themselves_and_close() -> None:
    async with serving(APP) as server:
        received = await server.connect().raw(b"\x80\x2e\x01\x03\r\n\r\n")
        head, _, body = received.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 400 Bad Request")
        assert b"connection: close" in head
        assert body == b"400 Bad Request: the request line is malformed\n"


async def test_drain_closes_an_idle_connection_at_once_and_a_busy_one_after_its_answer(
    autojump_clock: trio.testing.MockClock,
) -> None:
    release = trio.Event()
    entered = trio.Event()

    async def wait(request: Request) -> PlainTextResponse:
        entered.set()
        await release.wait()
        return PlainTextResponse("done")

    async with serving(Starlette(routes=[Route("/", wait)])) as server:
        idle, busy = server.connect(), server.connect()
        await busy.stream.send_all(GET)
        await entered.wait()
        server.nursery.start_soon(server.core.drain)
        before = trio.current_time()
        assert await idle.rest() == b""
        assert trio.current_time() == before
        release.set()
        received = await busy.rest()
        assert received.endswith(b"done")
        assert b"connection: close" in received.lower()
        assert await server.connect().rest() == b""  # new connections are refused


async def test_a_page_without_end_is_cut_off_at_a_shutdown(autojump_clock: trio.testing.MockClock) -> None:
    async def ticks() -> Any:
        while True:
            yield b"tick"
            await trio.sleep(0.5)

    async def stream(request: Request) -> StreamingResponse:
        return StreamingResponse(ticks())

    async with serving(Starlette(routes=[Route("/", stream)])) as server:
        client = server.connect()
        await client.stream.send_all(GET)
        await trio.testing.wait_all_tasks_blocked()
        before = trio.current_time()
        await server.core.drain()
        assert trio.current_time() - before <= server.core.limits.farewell + server.limits.linger + 0.1
        assert not (await client.rest()).endswith(b"0\r\n\r\n")  # an incomplete response must not look complete


async def test_no_more_connections_than_the_core_admits() -> None:
    async with serving(APP, core_limits=Limits(max_connections=1)) as server:
        first = server.connect()
        assert (await first.request("GET", "/")).status == 200
        assert await server.connect().rest() == b""
        assert server.core.statistics.refusals["connections"] == 1


async def test_pipelined_after_an_answer_that_watches_nothing(autojump_clock: trio.testing.MockClock) -> None:
    async with serving(APP) as server:
        begin = b"OPTIONS * HTTP/1.1\r\nhost: a\r\n\r\n"
        client = server.connect()
        await client.stream.send_all(begin + GET)
        await trio.testing.wait_all_tasks_blocked()
        received = await client.raw(GET)  # with the leftover bytes this would be parsed as two requests
        assert received.count(b"HTTP/1.1 2") == 1
