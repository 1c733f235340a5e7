"""gRPC-Web, preflights and pages over HTTP/2, requested with the `h2` library over memory streams."""

from __future__ import annotations

import base64

import pytest
import trio
import trio.testing

from rpc import errors
from rpc.limits import Limits
from tests.unit.rpc.http2.browser import BASE, ORIGIN, messages, page, read, serving, web

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
async def test_text_that_is_not_base64(body: bytes) -> None:
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


async def test_headers_of_the_browser_are_not_metadata() -> None:
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


async def test_a_preflight_with_a_body_is_reset() -> None:
    async with serving() as server:
        client = await server.connect()
        sid = client.begin(page("/x", "OPTIONS", ("access-control-request-method", "POST"), ("origin", ORIGIN)))
        await client.flush()
        answer = await client.answer(sid)
        assert (answer.status, answer.ended) == (204, True)
        assert server.connection.streams == {}
