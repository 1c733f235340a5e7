"""Fuzz the HTTP/1.1 side of a port: `pytest tests/fuzz/fuzz_http1.py`, or run this file where atheris is installed."""

from __future__ import annotations

import logging
import re
import sys

import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from rpc.http.asgi import Receive, Scope, Send
from tests.unit.rpc.http1.support import serving

STATUS = re.compile(rb"HTTP/1\.1 ([1-5]\d\d) ")


class Errors(logging.Handler):
    """Collects the errors that the server logs."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """Accept a page or WebSocket and send back everything received."""
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.accept"})
        while (message := await receive())["type"] == "websocket.receive":
            await send({**message, "type": "websocket.send"})
        return
    await send({"type": "http.response.start", "status": 200, "headers": []})
    more = True
    while more:
        message = await receive()
        more = message["more_body"]
        await send({"type": "http.response.body", "body": message["body"], "more_body": more})


async def attack(pieces: list[bytes]) -> bytes:
    """Send `pieces` in turn, end our side, and return everything read until the end."""
    async with serving(echo) as server:
        client = server.connect()
        received = b""
        try:
            for piece in pieces:
                if piece:
                    await client.stream.send_all(piece)
                    await trio.testing.wait_all_tasks_blocked()
            await client.stream.send_eof()
            while more := await client.stream.receive_some(65536):
                received += more
        except trio.BrokenResourceError:
            pass
        await client.stream.aclose()
        await trio.testing.wait_all_tasks_blocked()
        await trio.sleep(200)
        assert server.core.statistics.open_connections == 0
        return received


def run_input(pieces: list[bytes]) -> None:
    """Check that the connection ends, the server logs no error, and the answer begins as HTTP."""
    errors = Errors()
    logging.getLogger().addHandler(errors)
    try:
        received = trio.run(attack, pieces, clock=trio.testing.MockClock(autojump_threshold=0))
    finally:
        logging.getLogger().removeHandler(errors)
    assert errors.messages == []
    assert not received or STATUS.match(received)


WORDS = [
    b"GET ", b"POST ", b"HEAD ", b"OPTIONS ", b"/", b"/test.Echo/collect", b"*", b" HTTP/1.1\r\n", b" HTTP/1.0\r\n",
    b"host: localhost\r\n", b"content-length: 5\r\n", b"content-length: 0\r\n", b"transfer-encoding: chunked\r\n",
    b"content-type: application/grpc-web\r\n", b"content-type: application/grpc-web-text\r\n", b"connection: close\r\n",
    b"connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n", b"expect: 100-continue\r\n",
    b"sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n", b"grpc-timeout: 1S\r\n", b"origin: http://a\r\n", b"\r\n",
    b"\n", b"5\r\nhello\r\n", b"0\r\n\r\n", b"hello", b"\0\0\0\0\0", b"\0\0\0\0\x03\n\x01a", b"AAAAAAA=",
    b"\x81\x80\0\0\0\0",
    b"\x88\x80\0\0\0\0", b"POST /test.Echo/collect HTTP/1.1\r\nhost: a\r\ncontent-type: application/grpc-web\r\n",
    b"POST / HTTP/1.1\r\nhost: a\r\n", b"GET /ws HTTP/1.1\r\nhost: a\r\n",
]  # fmt: skip


@given(st.lists(st.lists(st.sampled_from(WORDS) | st.binary(max_size=20), max_size=8).map(b"".join), max_size=6))
def test_fuzz(pieces: list[bytes]) -> None:
    run_input(pieces)


def main() -> None:
    """Run atheris until it finds a failure."""
    import atheris  # type: ignore[import-not-found]

    def target(data: bytes) -> None:
        provider = atheris.FuzzedDataProvider(data)
        run_input(
            [provider.ConsumeBytes(provider.ConsumeIntInRange(0, 400)) for _ in range(provider.ConsumeIntInRange(0, 6))]
        )

    atheris.Setup(sys.argv, target)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
