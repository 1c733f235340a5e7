"""HTTP/2 over TLS on loopback, as browsers use it: the `h2` library over a real handshake with ALPN."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from google.protobuf.wrappers_pb2 import StringValue
from grpclib.const import Cardinality
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.routing import Route

from rpc import errors
from rpc.client.channel import Channel
from rpc.limits import Limits
from rpc.network.listeners import names_of, only_loopback, open_unix_listener
from rpc.network.tls import client_context
from rpc.server.port import serve
from schema.errors import MachineError
from tests.e2e.port.support import Port, port
from tests.selfsigned import write_self_signed
from tests.unit.rpc.h2_peer import H2Client
from tests.unit.rpc.http2.browser import ORIGIN, messages, page, read, web

pytestmark = pytest.mark.slow


async def ten(request: Request) -> StreamingResponse:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(10):
            yield b"x" * 20_000
            await trio.lowlevel.checkpoint()

    return StreamingResponse(pieces())


async def upload(request: Request) -> PlainTextResponse:
    size = 0
    async for piece in request.stream():
        size += len(piece)
    return PlainTextResponse(f"{request.scope['scheme']} {request.scope['http_version']} {size}")


class Endless:
    """A page that streams forever and records its cancellation."""

    def __init__(self) -> None:
        self.ended = trio.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        try:
            while True:
                await send({"type": "http.response.body", "body": b"x" * 10_000, "more_body": True})
        finally:
            self.ended.set()


APP = Starlette(routes=[Route("/ten", ten), Route("/upload", upload, methods=["PUT"])])


@asynccontextmanager
async def browser(server: Port, folder: Path, **options: Any) -> AsyncIterator[H2Client]:
    context = client_context(authorities=folder / "cert.pem")
    stream = trio.SSLStream(await server.connect(), context, server_hostname="localhost", https_compatible=True)
    await stream.do_handshake()
    assert stream.selected_alpn_protocol() == "h2"
    client = H2Client(stream, **options)
    await client.start()
    try:
        yield client
    finally:
        await trio.aclose_forcefully(stream)


def local(fields: list[tuple[str, str]], server: Port) -> list[tuple[str, str]]:
    return [(k, f"localhost:{server.number}" if k == ":authority" else v) for k, v in fields]


async def test_a_browser(tmp_path: Path) -> None:
    async with port(tmp_path, app=APP) as server, browser(server, tmp_path) as client:
        preflight = [("access-control-request-method", "POST"), ("origin", ORIGIN)]
        assert (await client.ask(local(page("/test.Echo/unary", "OPTIONS", *preflight), server))).status == 204
        response = read(await client.ask(local(web("unary"), server), messages("hello")))
        assert (response.values, response.trailers) == (["hello"], {"grpc-status": "0"})
        response = read(await client.ask(local(web("many"), server), messages("500")))
        assert len(response.values) == 500
        assert (await client.ask(local(page("/ten"), server))).body == b"x" * 200_000
        own = ("origin", f"https://localhost:{server.number}")
        answer = await client.ask(local(page("/upload", "PUT", own), server), b"y" * 3_000_000)
        assert answer.body == b"https 2 3000000"
        foreign = await client.ask(local(page("/upload", "PUT", ("origin", ORIGIN)), server), b"y")
        assert foreign.status == 403


@pytest.mark.parametrize("how", ["reset", "close"])
async def test_a_browser_that_disconnects_during_a_call(how: str, tmp_path: Path) -> None:
    app = Endless()
    async with port(tmp_path, app=app) as server, browser(server, tmp_path, acknowledges=False) as client:
        call = client.begin(local(web("hang"), server))
        await client.send(call, messages("x"))
        await server.methods.hanging.wait()
        sid = client.begin(local(page("/"), server), end=True)
        await client.flush()
        await client.until(lambda: len(client.answers[sid].body) == 65535)
        if how == "reset":
            await client.reset(sid, errors.CANCEL)
            await client.reset(call, errors.CANCEL)
        else:
            await trio.aclose_forcefully(client.stream)
        await app.ended.wait()
        await server.methods.cancelled.wait()


async def test_a_call_survives_a_renewed_certificate(tmp_path: Path) -> None:
    async with port(tmp_path) as server, browser(server, tmp_path) as client:
        assert server.tls is not None
        call = client.begin(local(web("collect"), server))
        await client.send(call, messages("before"), end=False)
        for name in ("cert.pem", "key.pem"):
            (tmp_path / name).unlink()
        write_self_signed(tmp_path / "cert.pem", tmp_path / "key.pem")
        assert server.tls.reload()
        async with browser(server, tmp_path) as second:  # trusts only the new certificate
            assert read(await second.ask(local(web("unary"), server), messages("new"))).values == ["new"]
        await client.send(call, messages("after"))
        assert read(await client.answer(call)).values == ["before,after"]


async def test_the_last_answer_over_tls_survives_the_drain(tmp_path: Path) -> None:
    async with port(tmp_path, limits=Limits(drain_timeout=5)) as server:
        context = client_context(authorities=tmp_path / "cert.pem")
        async with Channel(f"localhost:{server.number}", tls=context) as channel:
            call = channel.request("/test.Echo/collect", Cardinality.STREAM_UNARY, StringValue, StringValue)
            async with call as stream:
                await stream.send_message(StringValue(value="x"))
                while not server.core.statistics.calls:  # noqa: ASYNC110 - counters have no event
                    await trio.sleep(0.001)
                server.serving.cancel()
                await trio.sleep(0.01)  # the drain has started or not: both must work
                await stream.send_message(StringValue(value="y" * 500_000), end=True)
                reply = await stream.recv_message()
            assert len(reply.value) == 500_002


async def test_a_unix_socket(tmp_path: Path) -> None:
    path = tmp_path / "machine.sock"
    async with port() as tcp:  # used only for its core
        listener = await open_unix_listener(path)
        assert names_of([listener]) == [str(path)]
        assert only_loopback([listener])
        assert path.stat().st_mode & 0o777 == 0o600
        with pytest.raises(MachineError, match="in use"):
            await open_unix_listener(path)
        async with trio.open_nursery() as nursery:
            await nursery.start(lambda task_status: serve([listener], tcp.core, task_status=task_status))
            async with Channel(f"unix:{path}") as channel:
                async with channel.request(
                    "/test.Echo/unary", Cardinality.UNARY_UNARY, StringValue, StringValue
                ) as stream:
                    await stream.send_message(StringValue(value="x"), end=True)
                    assert (await stream.recv_message()).value == "x"
                    assert stream.peer is not None
            nursery.cancel_scope.cancel()
        second = await open_unix_listener(path)  # nothing listens on the old socket any more
        await second.aclose()
