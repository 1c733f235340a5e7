"""Tunnels over real loopback sockets: permissions, bytes, the end of either side, limits."""

from __future__ import annotations

import gc
import socket
from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest
import trio

from runtime.parts.tunnel import tunnels
from runtime.parts.tunnel.tunnels import Tunnels
from schema.document.network import TunnelEndpoint
from schema.errors import ErrorKind, MachineError
from tests.loopback import free_port, listening


def allowing(*ports: int, timeout: float = 5.0) -> Tunnels:
    result = Tunnels()
    result.configure([TunnelEndpoint(port=port, connection_timeout=timeout) for port in ports])
    return result


async def bytes_of(*chunks: bytes) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


async def never() -> AsyncIterator[bytes]:
    await trio.sleep_forever()
    yield b""


async def collect(relay: AsyncIterator[bytes]) -> bytes:
    with trio.fail_after(30):
        return b"".join([chunk async for chunk in relay])


async def silent(stream: trio.SocketStream) -> None:
    await trio.sleep_forever()


async def until_end(stream: trio.SocketStream) -> None:
    """Answer once the client has ended its side, so that only a half-close gets an answer."""
    received = b"".join([chunk async for chunk in stream])
    await stream.send_all(received[::-1])
    await stream.aclose()


async def test_end_of_requests_is_end_of_file_at_the_port() -> None:
    async with listening(until_end) as port:
        assert await collect(allowing(port).relay(port, bytes_of(b"ab", b"cd"))) == b"dcba"


async def test_a_program_that_speaks_first_is_heard() -> None:
    async def hello(stream: trio.SocketStream) -> None:
        await stream.send_all(b"220 ready")
        await stream.aclose()

    async with listening(hello) as port:
        assert await collect(allowing(port).relay(port, never())) == b"220 ready"


async def test_other_ports_are_refused_with_those_that_are_allowed() -> None:
    with pytest.raises(MachineError, match="port 22 is not open for tunnels: allowed ports are 80, 8080; add it") as e:
        await collect(allowing(8080, 80).relay(22, never()))
    assert e.value.kind is ErrorKind.PERMISSION
    with pytest.raises(MachineError, match="tunnels: add it to network"):
        await collect(allowing().relay(22, never()))


async def test_no_listener() -> None:
    port = free_port()
    with pytest.raises(MachineError, match=rf"port {port} .*Connection refused: start the program") as refused:
        await collect(allowing(port).relay(port, never()))
    assert refused.value.kind is ErrorKind.UNAVAILABLE


async def test_a_port_that_does_not_answer_costs_the_connection_timeout() -> None:
    with socket.socket() as full, socket.socket() as waiting:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        waiting.connect(full.getsockname())  # the backlog is full: further connections get no answer
        port = full.getsockname()[1]
        with trio.fail_after(30), pytest.raises(MachineError, match="no connection within 50ms"):
            await collect(allowing(port, timeout=0.05).relay(port, never()))


async def test_an_abrupt_end_is_an_error() -> None:
    async def reset(stream: trio.SocketStream) -> None:
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        stream.socket.close()

    async with listening(reset) as port:
        with pytest.raises(MachineError, match=f"connection to port {port} of the machine failed: Connection reset"):
            await collect(allowing(port).relay(port, never()))


async def test_a_failure_of_the_client_ends_the_tunnel() -> None:
    async def failing() -> AsyncIterator[bytes]:
        yield b"x"
        raise MachineError("not a message", kind=ErrorKind.INVALID)

    ended = trio.Event()

    async def note_end(stream: trio.SocketStream) -> None:
        async for _ in stream:
            pass
        ended.set()

    async with listening(note_end) as port:
        with trio.fail_after(30), pytest.raises(MachineError, match="not a message"):
            await collect(allowing(port).relay(port, failing()))
        with trio.fail_after(30):
            await ended.wait()


async def test_a_port_that_is_taken_off_the_list_ends_its_tunnels() -> None:
    async with listening(silent) as port, trio.open_nursery() as nursery:
        result = allowing(port)

        async def use() -> None:
            with pytest.raises(MachineError, match="not open for tunnels"):
                await collect(result.relay(port, never()))

        nursery.start_soon(use)
        with trio.fail_after(30):
            while not result.open:
                await trio.lowlevel.checkpoint()
            result.configure([])
    assert not result.open


async def test_closing_the_generator_closes_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = trio.Event()

    async def chatter(stream: trio.SocketStream) -> None:
        try:
            while True:
                await stream.send_all(b"x" * 1000)
        except trio.BrokenResourceError:
            ended.set()

    async with listening(chatter) as port:
        result = allowing(port)
        relay = result.relay(port, never())
        async with aclosing(relay):
            assert await anext(relay)
            assert result.open == 1
        assert result.open == 0
        with trio.fail_after(30):
            await ended.wait()


async def test_there_is_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tunnels, "TUNNELS_LIMIT", 1)

    async def hello(stream: trio.SocketStream) -> None:
        await stream.send_all(b"hello")
        await trio.sleep_forever()

    async with listening(hello) as port:
        result = allowing(port)
        relay = result.relay(port, never())
        async with aclosing(relay):
            await anext(relay)
            with pytest.raises(MachineError, match="1 tunnels are open") as refused:
                await collect(result.relay(port, never()))
            assert refused.value.kind is ErrorKind.EXHAUSTED
        second = result.relay(port, never())
        async with aclosing(second):
            assert await anext(second) == b"hello"


async def test_nothing_is_left_open() -> None:
    async with listening(until_end) as port:
        result = allowing(port)
        for _ in range(50):
            await collect(result.relay(port, bytes_of(b"x")))
    gc.collect()  # an unclosed socket would cause a warning here
    assert result.open == 0
