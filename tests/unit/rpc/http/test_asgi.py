"""The ASGI bridge: the scope and events of applications, and the handling of their mistakes."""

from __future__ import annotations

from typing import Any

import pytest
import sniffio
import trio
import trio.testing
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, StreamingResponse
from starlette.routing import Route

from rpc.carrier import Peer
from rpc.http.asgi import Receive, Scope, Send, scope_of
from tests.unit.rpc.http1.support import serving

GET = b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n"


async def test_scope() -> None:
    seen: dict[str, Any] = {}

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.update(scope)
        seen["library"] = sniffio.current_async_library()
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body"})

    async with serving(app) as server:
        response = await server.connect().request("GET", "/a%C3%A4%2F?q=1&r=%20", [("X-A", "b"), ("x-a", "c")])
        assert response.status == 204
    assert seen["library"] == "trio"
    assert seen["type"] == "http"
    assert seen["asgi"]["version"] == "3.0"
    assert (seen["method"], seen["path"], seen["raw_path"]) == ("GET", "/aä/", b"/a%C3%A4%2F")
    assert seen["query_string"] == b"q=1&r=%20"
    assert seen["headers"] == [(b"host", b"localhost:8080"), (b"x-a", b"b"), (b"x-a", b"c")]
    assert seen["client"] == ("127.0.0.1", 40000)
    assert seen["server"] == ("localhost", 8080)
    assert (seen["scheme"], seen["http_version"], seen["root_path"]) == ("http", "1.1", "")
    assert seen["state"] == {}


@pytest.mark.parametrize(
    ("authority", "scheme", "server"),
    [
        ("a", "http", ("a", 80)),
        ("a", "https", ("a", 443)),
        ("[::1]:5", "http", ("::1", 5)),
        ("[::1]", "wss", ("::1", 443)),
        ("", "http", None),
    ],
)
def test_server_of_scope(authority: str, scheme: str, server: object) -> None:
    scope = scope_of("http", version="2", scheme=scheme, authority=authority, target="/", headers=[], peer=Peer())
    assert scope["server"] == server
    assert scope["client"] is None


async def test_starlette_runs_its_task_groups_on_trio() -> None:
    async def numbers() -> Any:
        for number in range(3):
            yield f"{number}\n"
            await trio.lowlevel.checkpoint()

    async def stream(request: Request) -> StreamingResponse:
        return StreamingResponse(numbers())

    async def show(request: Request) -> JSONResponse:
        return JSONResponse({"body": (await request.body()).decode(), "url": str(request.url)})

    app = Starlette(routes=[Route("/stream", stream), Route("/show", show, methods=["POST"])])
    async with serving(app) as server:
        client = server.connect()
        assert (await client.request("GET", "/stream")).body == b"0\n1\n2\n"
        response = await client.request("POST", "/show?x=y", body=b"b" * 100_000)
        assert b'"url":"http://localhost:8080/show?x=y"' in response.body


async def test_the_head_goes_out_before_the_first_piece() -> None:
    async def silent() -> Any:
        await trio.sleep_forever()
        yield b""

    async def stream(request: Request) -> StreamingResponse:
        return StreamingResponse(silent(), media_type="text/event-stream")

    async with serving(Starlette(routes=[Route("/", stream)])) as server:
        client = server.connect()
        await client.stream.send_all(GET)
        assert (await client.stream.receive_some(1000)).startswith(b"HTTP/1.1 200")


async def test_the_peer_that_leaves_cancels_the_page() -> None:
    cancelled = trio.Event()
    entered = trio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        entered.set()
        try:
            await trio.sleep_forever()
        finally:
            cancelled.set()

    async with serving(app) as server:
        client = server.connect()
        await client.stream.send_all(GET)
        await entered.wait()
        await client.stream.aclose()
        await cancelled.wait()


async def test_disconnect_is_reported_after_the_response() -> None:
    seen = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(await receive())
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body"})
        seen.append(await receive())

    async with serving(app) as server:
        await server.connect().request("GET", "/")
        await trio.testing.wait_all_tasks_blocked()
    assert seen == [{"type": "http.request", "body": b"", "more_body": False}, {"type": "http.disconnect"}]


async def bad_raises(scope: Scope, receive: Receive, send: Send) -> None:
    raise ValueError("secret of the page")


async def bad_silent(scope: Scope, receive: Receive, send: Send) -> None:
    await trio.lowlevel.checkpoint()


async def bad_order(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.body", "body": b"x"})


async def bad_kind(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.trailers"})


@pytest.mark.parametrize("app", [bad_raises, bad_silent, bad_order, bad_kind])
async def test_a_page_that_fails_before_its_answer_is_a_500(app: Any) -> None:
    async with serving(app) as server:
        client = server.connect()
        response = await client.request("GET", "/")
        assert response.status == 500
        assert b"secret" not in response.body
        assert (await client.request("GET", "/")).status == 500  # the connection stays usable


async def late_raises(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"part", "more_body": True})
    raise ValueError


async def late_short(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"10")]})
    await send({"type": "http.response.body", "body": b"part"})


async def late_long(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"longer"})


@pytest.mark.parametrize("app", [late_raises, late_short, late_long])
async def test_a_page_that_fails_within_its_answer_breaks_the_connection(app: Any) -> None:
    async with serving(app) as server:
        received = await server.connect().raw(GET)
        assert received.startswith(b"HTTP/1.1 200")
        assert not received.endswith(b"0\r\n\r\n")


async def test_fields_of_the_connection_are_the_carriers() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        headers = [(b"Connection", b"upgrade"), (b"Transfer-Encoding", b"gzip"), (b"Keep-Alive", b"x"), (b"X-Y", b"z")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"ok"})

    async with serving(app) as server:
        response = await server.connect().request("GET", "/")
        assert response.body == b"ok"
        assert set(response.headers) == {"transfer-encoding", "x-y", "date"}
