"""Pages over HTTP/2, requested with the `h2` library over memory streams."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from rpc import errors
from rpc.carrier import HttpExchange
from rpc.limits import Limits
from tests.unit.rpc.http2.browser import messages, page, serving, web

# Pages


async def show(request: Request) -> Response:
    return PlainTextResponse(f"{request.method} {request.url.path} {(await request.body()).decode()}")


async def test_a_page() -> None:
    app = Starlette(routes=[Route("/{rest:path}", show, methods=["GET", "HEAD", "PUT"])])
    async with serving(app) as server:
        client = await server.connect()
        answer = await client.ask(page("/a%20b?q=1"))
        assert (answer.status, answer.body) == (200, b"GET /a b ")
        answer = await client.ask(page("/a", "HEAD"))
        assert (answer.status, answer.body, answer.headers["content-length"]) == (200, b"", "8")
        assert (await client.ask(page("/a", "POST"), b"x")).status == 405


@pytest.mark.parametrize("size", [1, 70_000, 900_000])
async def test_an_upload_larger_than_its_window(size: int) -> None:
    app = Starlette(routes=[Route("/", show, methods=["PUT"])])
    async with serving(app, limits=Limits(stream_window=70_000, connection_window=80_000)) as server:
        client = await server.connect()
        answer = await client.ask(page("/", "PUT"), b"x" * size)
        assert answer.body == b"PUT / " + b"x" * size
        assert server.connection.budget.used == 0


@pytest.mark.parametrize("announced", [True, False])
async def test_an_upload_above_the_limit(announced: bool) -> None:
    async with serving(Starlette(routes=[Route("/", show, methods=["PUT"])])) as server:
        client = await server.connect()
        extra = [("content-length", "1000001")] if announced else []
        sid = client.begin(page("/", "PUT", *extra))
        await client.send(sid, b"x" * 1_000_001)
        answer = await client.answer(sid)
        assert (answer.status, answer.ended) == (413, True)


async def test_unread_bytes_cost_what_they_cost_on_the_wire() -> None:
    """A peer that sends single bytes must not make the server keep an object for each byte."""
    go = trio.Event()
    received: list[int] = []

    async def late(exchange: HttpExchange) -> None:
        await go.wait()
        while data := await exchange.receive():
            received.append(len(data))
        await exchange.respond(200, [])
        await exchange.send_body(b"", end=True)

    async with serving() as server:
        server.core.fallback = late
        client = await server.connect()
        sid = client.begin(page("/", "PUT"))
        for _ in range(1000):
            client.h2.send_data(sid, b"x", pad_length=3)
        await client.flush()
        await trio.testing.wait_all_tasks_blocked()
        assert server.connection.budget.used == 1000
        go.set()
        client.h2.end_stream(sid)
        await client.flush()
        assert (await client.answer(sid)).status == 200
        assert received == [1000]
        assert server.connection.budget.used == 0


async def test_all_unread_bodies_together_are_bounded() -> None:
    cancelled = trio.Event()

    async def never(exchange: HttpExchange) -> None:
        try:
            await trio.sleep_forever()
        finally:
            cancelled.set()

    async with serving(limits=Limits(max_buffered=50_000)) as server:
        server.core.fallback = never
        client = await server.connect()
        first, second = client.begin(page("/", "PUT")), client.begin(page("/", "PUT"))
        await client.send(first, b"x" * 30_000, end=False)
        await client.send(second, b"x" * 30_000, end=False)
        assert (await client.answer(second)).reset == errors.ENHANCE_YOUR_CALM
        await cancelled.wait()
        await trio.testing.wait_all_tasks_blocked()
        assert server.connection.budget.used == 30_000
        assert not client.answers[first].over
        assert server.core.statistics.refusals == {"buffered bytes": 1}


def endless(piece: bytes, pause: float, ended: trio.Event) -> Any:
    """Return an app that streams forever; not an async generator, which Trio requires its consumer to close."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        try:
            while True:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
                if pause:
                    await trio.sleep(pause)
        finally:
            ended.set()

    return app


@pytest.mark.parametrize(("piece", "pause"), [(b"tick", 1), (b"x" * 20_000, 0)])
@pytest.mark.parametrize("how", ["reset", "close"])
async def test_a_reader_that_goes_away_ends_the_page_quietly(
    piece: bytes,
    pause: float,
    how: str,
    autojump_clock: trio.testing.MockClock,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    ended = trio.Event()
    async with serving(endless(piece, pause, ended)) as server:
        client = await server.connect(acknowledges=False)
        sid = client.begin(page(), end=True)
        await client.flush()
        await client.until(lambda: len(client.answers[sid].body) in (8, 65535))
        await trio.testing.wait_all_tasks_blocked()
        if how == "reset":
            await client.reset(sid, errors.CANCEL)
        else:
            await client.stream.aclose()
        with trio.fail_after(0.5):
            await ended.wait()
        await trio.testing.wait_all_tasks_blocked()
        assert all(not connection.streams for connection in server.core._connections)  # type: ignore[attr-defined]
    assert "failed" not in capsys.readouterr().out + caplog.text


async def test_a_page_without_end_is_cut_off_at_a_shutdown(autojump_clock: trio.testing.MockClock) -> None:
    ended = trio.Event()
    async with serving(endless(b"tick", 1, ended)) as server:
        client = await server.connect()
        sid = client.begin(page(), end=True)
        await client.flush()
        await client.until(lambda: bool(client.answers[sid].body))
        before = trio.current_time()
        server.nursery.start_soon(server.core.drain)
        answer = await client.answer(sid)
        assert answer.reset is not None, "the client must not accept it as complete"
        await client.until(lambda: client.closed)
        assert trio.current_time() - before == pytest.approx(server.core.limits.farewell)
        assert ended.is_set()


async def test_a_page_asked_for_while_draining_has_no_longer(autojump_clock: trio.testing.MockClock) -> None:
    ended = trio.Event()
    async with serving(endless(b"tick", 1, ended)) as server:
        client = await server.connect()
        await client.until(lambda: bool(client.settings))
        call = client.begin(web("hang"))
        await client.send(call, messages("x"))
        await server.methods.hanging.wait()
        server.nursery.start_soon(server.core.drain)
        await trio.testing.wait_all_tasks_blocked()
        # The client has not read the GOAWAY yet, so its request is accepted.
        assert client.goaway is None
        sid = client.begin(page(), end=True)
        before = trio.current_time()
        await client.flush()
        await client.answer(sid)
        assert client.answers[sid].status == 200
        assert client.answers[sid].reset is not None
        assert trio.current_time() - before == pytest.approx(server.core.limits.farewell)
        assert not client.answers[call].over, "calls have drain_timeout"


async def test_a_page_that_fails_within_its_answer_is_broken_off() -> None:
    async def fail(exchange: HttpExchange) -> None:
        await exchange.respond(200, [("x-a", "b")])
        await exchange.send_body(b"half", end=False)
        raise RuntimeError("bug")

    async with serving() as server:
        server.core.fallback = fail
        client = await server.connect()
        answer = await client.ask(page())
        assert (answer.status, answer.body, answer.reset) == (200, b"half", errors.INTERNAL_ERROR)
        assert server.connection.streams == {}


async def test_misuse_of_an_exchange() -> None:
    caught: list[str] = []

    async def misuse(exchange: HttpExchange) -> None:
        for action in (
            lambda: exchange.send_body(b"", end=True),
            lambda: exchange.respond(200, []),
            lambda: exchange.respond(200, []),
            lambda: exchange.send_body(b"", end=True),
            lambda: exchange.send_body(b"", end=True),
        ):
            try:
                await action()
            except RuntimeError as error:
                caught.append(str(error))

    async with serving() as server:
        server.core.fallback = misuse
        client = await server.connect()
        assert (await client.ask(page())).status == 200
    assert len(caught) == 3
