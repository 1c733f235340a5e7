"""gRPC-Web, preflights and pages over HTTP/2, asked for by the `h2` library through memory."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
import trio
import trio.testing
from google.protobuf.wrappers_pb2 import StringValue
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from rpc import errors
from rpc.asgi import fallback
from rpc.call import ServerCore
from rpc.carrier import HttpExchange
from rpc.http2_server import ServerConnection, serve_http2
from rpc.http_limits import HttpLimits
from rpc.limits import Limits
from tests.unit.rpc_core.h2_peer import Answer, H2Client
from tests.unit.rpc_edges import support
from tests.unit.rpc_edges.support import Methods, frame

BASE = [(":method", "POST"), (":scheme", "https"), (":authority", "localhost:8080")]
ORIGIN = "https://page.example"


def web(method: str, *extra: tuple[str, str], text: bool = False) -> list[tuple[str, str]]:
    """The fields that Chromium sends for grpc-web's fetch transport."""
    return [
        *BASE,
        (":path", f"/test.Echo/{method}"),
        ("content-type", "application/grpc-web-text" if text else "application/grpc-web+proto"),
        ("accept", "application/grpc-web-text" if text else "application/grpc-web+proto"),
        ("x-grpc-web", "1"),
        ("x-user-agent", "grpc-web-javascript/0.1"),
        ("origin", ORIGIN),
        ("sec-fetch-mode", "cors"),
        ("referer", f"{ORIGIN}/"),
        ("cookie", "session=1"),
        ("accept-encoding", "gzip, deflate, br"),
        *extra,
    ]


def page(path: str = "/", method: str = "GET", *extra: tuple[str, str]) -> list[tuple[str, str]]:
    return [(":method", method), *BASE[1:], (":path", path), *extra]


def messages(*values: str) -> bytes:
    return b"".join(frame(StringValue(value=value).SerializeToString()) for value in values)


def read(answer: Answer) -> support.Response:
    body = answer.body
    if "text" in answer.headers["content-type"]:
        decoded = b""
        while body:  # each flush is padded by itself
            end = len(body) if b"=" not in body else (body.index(b"=") | 3) + 1
            decoded, body = decoded + base64.b64decode(body[:end], validate=True), body[end:]
        body = decoded
    return support.Response(answer.status, answer.headers, body)


@dataclass
class Server:
    core: ServerCore
    methods: Methods
    nursery: trio.Nursery

    async def connect(self, *, acknowledges: bool = True) -> H2Client:
        near, far = trio.testing.memory_stream_pair()
        self.nursery.start_soon(serve_http2, far, self.core)
        client = H2Client(near, acknowledges=acknowledges)
        await client.start()
        return client

    @property
    def connection(self) -> ServerConnection:
        (connection,) = self.core._connections
        assert isinstance(connection, ServerConnection)
        return connection


@asynccontextmanager
async def serving(app: Any = None, *, limits: Limits | None = None, **core: Any) -> AsyncIterator[Server]:
    methods = Methods()
    shared = ServerCore(methods.router(), limits=limits or Limits(), **core)
    if app is not None:
        shared.fallback = fallback(app, HttpLimits(max_body=1_000_000))
    async with trio.open_nursery() as nursery:
        yield Server(shared, methods, nursery)
        nursery.cancel_scope.cancel()


# gRPC-Web


@pytest.mark.parametrize("text", [False, True])
async def test_a_call(text: bool) -> None:
    async with serving() as server:
        client = await server.connect()
        body = messages("hello")
        answer = await client.ask(web("unary", text=text), base64.b64encode(body) if text else body)
        assert answer.ended
        assert answer.trailers is None, "browsers cannot read them"
        response = read(answer)
        assert (response.status, response.values) == (200, ["hello"])
        assert response.frames[-1] == (0x80, b"grpc-status: 0\r\n")
        assert answer.headers["content-type"] == f"application/grpc-web{'-text' if text else ''}+proto"
        assert answer.headers["access-control-allow-origin"] == ORIGIN
        assert "grpc-status" in answer.headers["access-control-expose-headers"]
        assert server.connection.streams == {}
        assert server.connection.budget.used == 0


@pytest.mark.parametrize("text", [False, True])
async def test_a_stream_of_replies(text: bool) -> None:
    async with serving() as server:
        client = await server.connect()
        body = messages("300")
        answer = await client.ask(web("many", text=text), base64.b64encode(body) if text else body)
        assert read(answer).values == [str(number) for number in range(300)]


async def test_text_cut_anywhere() -> None:
    async with serving() as server:
        client = await server.connect()
        body = b"".join(base64.b64encode(messages(value)) for value in ("a", "bc", "def"))
        assert b"=" in body[:-2]
        sid = client.begin(web("collect", text=True))
        for index in range(len(body)):
            await client.send(sid, body[index : index + 1], end=index == len(body) - 1)
        assert read(await client.answer(sid)).values == ["a,bc,def"]


@pytest.mark.parametrize("body", [b"AAA", b"AA!A", b"A===", b"AAAAA"])
async def test_text_that_is_no_base64(body: bytes) -> None:
    async with serving() as server:
        client = await server.connect()
        assert read(await client.ask(web("unary", text=True), body)).trailers["grpc-status"] == "3"
        assert server.methods.events == []


async def test_an_error_is_only_a_head() -> None:
    async with serving() as server:
        client = await server.connect()
        for method, status in (("fail", "5"), ("nothing", "12")):
            answer = await client.ask(web(method), messages("x"))
            assert (answer.status, answer.body, answer.headers["grpc-status"]) == (200, b"", status)
            assert answer.headers["access-control-allow-origin"] == ORIGIN, "or the page could not read the error"
        assert read(await client.ask(web("unary"), messages("on"))).values == ["on"]


async def test_what_belongs_to_the_browser_is_no_metadata() -> None:
    async with serving() as server:
        client = await server.connect()
        await client.ask(web("unary", ("x-mine", "1")), messages("x"))
        assert server.methods.metadata == [
            {"x-grpc-web": "1", "x-user-agent": "grpc-web-javascript/0.1", "sec-fetch-mode": "cors", "x-mine": "1"}
        ]


async def test_parameters_of_the_content_type() -> None:
    async with serving() as server:
        client = await server.connect()
        fields = [
            (k, "application/grpc-web+proto; charset=UTF-8" if k == "content-type" else v) for k, v in web("unary")
        ]
        assert read(await client.ask(fields, messages("x"))).values == ["x"]


async def test_deadline(autojump_clock: trio.testing.MockClock) -> None:
    async with serving() as server:
        client = await server.connect()
        before = trio.current_time()
        answer = await client.ask(web("hang", ("grpc-timeout", "250m")), messages("x"))
        assert read(answer).trailers["grpc-status"] == "4"
        assert trio.current_time() - before == pytest.approx(0.25)


async def test_a_reset_cancels_the_call_and_nothing_else() -> None:
    async with serving() as server:
        client = await server.connect()
        sid = client.begin(web("hang"))
        await client.send(sid, messages("x"))
        await server.methods.hanging.wait()
        await client.reset(sid, errors.CANCEL)
        await server.methods.cancelled.wait()
        assert read(await client.ask(web("unary"), messages("on"))).values == ["on"]
        assert server.core.statistics.cancelled_calls == 1


async def test_a_browser_that_goes_away_cancels_the_call() -> None:
    async with serving() as server:
        client = await server.connect()
        sid = client.begin(web("hang"))
        await client.send(sid, messages("x"), end=False)
        await server.methods.hanging.wait()
        await client.stream.aclose()
        await server.methods.cancelled.wait()
        await trio.testing.wait_all_tasks_blocked()
        assert server.core.statistics.open_connections == 0


async def test_a_browser_that_does_not_read_holds_the_handler(autojump_clock: trio.testing.MockClock) -> None:
    async with serving(limits=Limits(window_stall=20)) as server:
        client = await server.connect(acknowledges=False)
        sid = client.begin(web("flood"))
        await client.send(sid, messages("x"))
        await client.until(lambda: len(client.answers[sid].body) == 65535)
        before = trio.current_time()
        (stream,) = server.connection.streams.values()
        assert stream.send_window == 0
        assert server.connection.writer.size == 0
        assert (await client.answer(sid)).reset == errors.CANCEL
        assert trio.current_time() - before == pytest.approx(20)
        await server.methods.cancelled.wait()


async def test_the_trailers_wait_for_window() -> None:
    async with serving() as server:
        client = await server.connect(acknowledges=False)
        size = 65535 - 10
        sid = client.begin(web("unary"))
        value = "x" * (size - 5 - 4)
        assert len(messages(value)) == size
        await client.send(sid, messages(value))
        await client.until(lambda: len(client.answers[sid].body) == 65535)
        await trio.testing.wait_all_tasks_blocked()
        assert not client.answers[sid].ended
        (stream,) = server.connection.streams.values()
        assert stream.finished, "the handler is gone, ten bytes of trailers are through"
        client.h2.increment_flow_control_window(3, sid)
        client.h2.increment_flow_control_window(3)
        await client.flush()
        await client.until(lambda: len(client.answers[sid].body) == 65538)
        client.h2.increment_flow_control_window(1000, sid)
        client.h2.increment_flow_control_window(1000)
        await client.flush()
        assert read(await client.answer(sid)).trailers == {"grpc-status": "0"}
        assert server.connection.streams == {}


async def test_a_reset_instead_of_the_trailers() -> None:
    async with serving() as server:
        client = await server.connect(acknowledges=False)
        sid = client.begin(web("unary"))
        await client.send(sid, messages("x" * (65535 - 19)))
        await client.until(lambda: len(client.answers[sid].body) == 65535)
        assert server.connection.streams
        await client.reset(sid, errors.CANCEL)
        await trio.testing.wait_all_tasks_blocked()
        assert server.connection.streams == {}


# Preflights


async def test_a_preflight_with_the_fields_of_a_browser() -> None:
    async with serving(authorize=lambda method, metadata: 1 / 0) as server:
        client = await server.connect()
        answer = await client.ask(
            [
                (":method", "OPTIONS"),
                *BASE[1:],
                (":path", "/test.Echo/unary"),
                ("access-control-request-method", "POST"),
                ("access-control-request-headers", "authorization,content-type,x-grpc-web"),
                ("origin", ORIGIN),
            ]
        )
        assert (answer.status, answer.body, answer.ended) == (204, b"", True)
        assert answer.headers["access-control-allow-origin"] == ORIGIN
        assert answer.headers["access-control-allow-headers"] == "authorization,content-type,x-grpc-web"
        assert "POST" in answer.headers["access-control-allow-methods"]
        assert "access-control-allow-credentials" not in answer.headers
        assert server.methods.events == []


async def test_a_preflight_with_a_body_is_told_to_stop() -> None:
    async with serving() as server:
        client = await server.connect()
        sid = client.begin(page("/x", "OPTIONS", ("access-control-request-method", "POST"), ("origin", ORIGIN)))
        await client.flush()
        answer = await client.answer(sid)
        assert (answer.status, answer.ended) == (204, True)
        assert server.connection.streams == {}


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
    """A peer that sends single bytes must not make the server keep an object for each."""
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
    """A page that streams for ever. Not an async generator, which Trio wants closed by whoever iterates over it."""

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
        assert answer.reset is not None, "nobody may take it for whole"
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
        # Sent before the client has read that the server is going: still accepted
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
