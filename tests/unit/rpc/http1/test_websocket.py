"""WebSockets of ASGI applications, with trio-websocket as the client over memory streams."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
import trio.testing
from starlette.applications import Starlette
from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect
from structlog.testing import capture_logs
from trio_websocket import ConnectionClosed, ConnectionRejected, WebSocketConnection, wrap_client_stream

from rpc.http.asgi import Receive, Scope, Send
from rpc.http.limits import HttpLimits
from tests.unit.rpc.http1.support import Server, serving


async def echo(socket: WebSocket) -> None:
    await socket.accept(subprotocol="status" if "status" in socket.scope["subprotocols"] else None)
    async for text in socket.iter_text():
        await socket.send_text(f"{text}!")


APP = Starlette(routes=[WebSocketRoute("/echo", echo)])


@asynccontextmanager
async def dialled(server: Server, path: str = "/echo", **options: Any) -> AsyncIterator[WebSocketConnection]:
    stream = server.connect().stream
    async with trio.open_nursery() as nursery:
        yield await wrap_client_stream(nursery, stream, "localhost:8080", path, **options)
        nursery.cancel_scope.cancel()
        await stream.aclose()


async def test_echo_text() -> None:
    async with serving(APP) as server, dialled(server, subprotocols=["other", "status"]) as socket:
        assert socket.subprotocol == "status"
        for word in ("a", "ö", "x" * 100_000):
            await socket.send_message(word)
            assert await socket.get_message() == f"{word}!"
        await socket.aclose()


async def test_bytes_and_close_code_of_the_application() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "websocket"
        assert (scope["scheme"], scope["path"], scope["query_string"]) == ("ws", "/b", b"q=1")
        assert (await receive())["type"] == "websocket.connect"
        await send({"type": "websocket.accept", "headers": [(b"x-a", b"b")]})
        message = await receive()
        await send({"type": "websocket.send", "bytes": message["bytes"] * 2})
        await send({"type": "websocket.close", "code": 4001, "reason": "enough"})

    async with serving(app) as server, dialled(server, "/b?q=1") as socket:
        assert (b"x-a", b"b") in socket.handshake_headers
        await socket.send_message(b"12")
        assert await socket.get_message() == b"1212"
        with pytest.raises(ConnectionClosed) as caught:
            await socket.get_message()
        assert (caught.value.reason.code, caught.value.reason.reason) == (4001, "enough")


async def test_disconnect_names_the_code() -> None:
    seen: list[int] = []
    heard = trio.Event()

    async def listen(socket: WebSocket) -> None:
        await socket.accept()
        try:
            await socket.receive_text()
        except WebSocketDisconnect as error:
            seen.append(error.code)
        heard.set()

    async with serving(Starlette(routes=[WebSocketRoute("/echo", listen)])) as server:
        async with dialled(server) as socket:
            await socket.aclose(4002)
        await heard.wait()
        assert seen == [4002]


async def test_unknown_path_and_denial() -> None:
    async def deny(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await send(
            {
                "type": "websocket.http.response.start",
                "status": 401,
                "headers": [(b"content-length", b"4"), (b"x", b"y")],
            }
        )
        await send({"type": "websocket.http.response.body", "body": b"who?"})

    async with serving(APP) as server:
        with pytest.RaisesGroup(ConnectionRejected):
            async with dialled(server, "/nowhere"):
                pass
    async with serving(deny) as server:
        stream = server.connect()
        received = await stream.raw(HANDSHAKE)
        assert received.startswith(b"HTTP/1.1 401")
        assert received.endswith(b"who?")
        assert b"x: y" in received


HANDSHAKE = (
    b"GET /echo HTTP/1.1\r\nhost: localhost\r\nupgrade: websocket\r\nconnection: keep-alive, Upgrade\r\n"
    b"sec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)


@pytest.mark.parametrize(
    ("old", "new", "status"),
    [
        (b"version: 13", b"version: 8", b"426"),
        (b"AAAAAAAAAAAAAAAAAAAAAA==", b"AAAA", b"400"),
        (b"AAAAAAAAAAAAAAAAAAAAAA==", b"!", b"400"),
        (b"GET", b"POST", b"400"),
        (b"HTTP/1.1", b"HTTP/1.0", b"400"),
        (b"host:", b"content-length: 5\r\nhost:", b"400"),
        (b"upgrade: websocket", b"upgrade: h2c", b"404"),
    ],
)
async def test_bad_handshakes(old: bytes, new: bytes, status: bytes) -> None:
    async with serving(APP) as server:
        request = HANDSHAKE.replace(old, new).replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n")
        received = await server.connect().raw(request)
        assert received.split()[1] == status
        assert (b"sec-websocket-version: 13" in received) == (status == b"426")


async def test_message_bound() -> None:
    async with serving(APP, limits=HttpLimits(max_websocket_message=1000)) as server, dialled(server) as socket:
        await socket.send_message("x" * 1001)
        with pytest.raises(ConnectionClosed) as caught:
            await socket.get_message()
        assert caught.value.reason.code == 1009


async def test_a_peer_that_answers_no_ping_is_dropped(autojump_clock: trio.testing.MockClock) -> None:
    async with serving(APP) as server:
        client = server.connect()
        await client.stream.send_all(HANDSHAKE)
        before = trio.current_time()
        received = await client.rest()
        assert received.startswith(b"HTTP/1.1 101")
        assert received[-6:-4] == b"\x89\x04"  # the frame of the ping
        assert trio.current_time() - before == pytest.approx(2 * server.limits.ping_interval, abs=3)


async def test_an_application_that_only_sends_ends_with_its_peer(autojump_clock: trio.testing.MockClock) -> None:
    cancelled = trio.Event()

    async def push(socket: WebSocket) -> None:
        await socket.accept()
        try:
            await trio.sleep_forever()
        finally:
            cancelled.set()

    async with serving(Starlette(routes=[WebSocketRoute("/echo", push)])) as server:
        async with dialled(server):
            pass
        await cancelled.wait()
        await trio.testing.wait_all_tasks_blocked()
        assert server.core.statistics.open_connections in (0, 1)


async def test_shutdown_says_going_away(autojump_clock: trio.testing.MockClock) -> None:
    async with serving(APP) as server, dialled(server) as socket:
        server.nursery.start_soon(server.core.drain)
        with pytest.raises(ConnectionClosed) as caught:
            await socket.get_message()
        assert caught.value.reason.code == 1001
        await trio.sleep(5)
        assert server.core.statistics.open_connections == 0


async def test_a_failing_application_closes_with_1011(autojump_clock: trio.testing.MockClock) -> None:
    async def fail(socket: WebSocket) -> None:
        await socket.accept()
        raise ValueError("secret")

    async with serving(Starlette(routes=[WebSocketRoute("/echo", fail)])) as server, dialled(server) as socket:
        with pytest.raises(ConnectionClosed) as caught:
            await socket.get_message()
        assert caught.value.reason.code == 1011
        assert not caught.value.reason.reason


async def test_sending_after_the_end_is_a_disconnect_for_starlette() -> None:
    ended = trio.Event()

    async def push(socket: WebSocket) -> None:
        await socket.accept()
        try:
            while True:
                await socket.send_text("x")
                await trio.lowlevel.checkpoint()
        except WebSocketDisconnect:
            ended.set()

    async with serving(Starlette(routes=[WebSocketRoute("/echo", push)])) as server:
        async with dialled(server) as socket:
            await socket.get_message()
        with trio.fail_after(10):
            await ended.wait()


async def test_an_application_that_sends_in_a_nursery_to_a_peer_that_has_gone_has_not_failed() -> None:
    ended = trio.Event()

    async def app(socket: WebSocket) -> None:
        await socket.accept()

        async def stream() -> None:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(trio.sleep_forever)
                while True:
                    await socket.send_text("state")

        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(stream)
                await trio.sleep_forever()
        finally:
            ended.set()

    with capture_logs() as messages:
        async with serving(Starlette(routes=[WebSocketRoute("/echo", app)])) as server:
            async with dialled(server) as socket:
                await socket.get_message()
                with trio.fail_after(20):
                    await socket.aclose()
            with trio.fail_after(20):
                await ended.wait()
    assert [message for message in messages if message["log_level"] == "error"] == []


async def test_a_defect_in_a_nursery_of_an_application_is_logged() -> None:
    async def app(socket: WebSocket) -> None:
        await socket.accept()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep_forever)
            raise KeyError("defect")

    with capture_logs() as messages:
        async with serving(Starlette(routes=[WebSocketRoute("/echo", app)])) as server, dialled(server) as socket:
            with pytest.raises(ConnectionClosed):
                await socket.get_message()
    assert [message["event"] for message in messages] == ["a WebSocket's handler failed"]
