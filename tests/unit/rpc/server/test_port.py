"""The port: protocol detection, the limit of connections, and failures to accept."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
import trio
import trio.testing

from rpc.call import ServerCore
from rpc.http.limits import HttpLimits
from rpc.http.wire import Outbox, Wire
from rpc.limits import Limits
from rpc.network.holder import holder
from rpc.network.listeners import open_listeners, parse_address
from rpc.server.port import WireProtocol, protocol_of, serve
from schema.errors import ConfigError, MachineError

GET = b"GET / HTTP/1.0\r\n\r\n"


@pytest.mark.parametrize(
    ("data", "protocol"),
    [
        (b"", None),
        (b"P", None),
        (b"PR", None),
        (b"PRI", None),
        (b"PRI ", WireProtocol.HTTP2),
        (b"PRI * HTTP/2.0\r\n", WireProtocol.HTTP2),
        (b"PUT / ", WireProtocol.HTTP1),
        (b"PRX", WireProtocol.HTTP1),
        (b"G", WireProtocol.HTTP1),
        (b"\x16", WireProtocol.TLS),
        (b"\x00", WireProtocol.HTTP1),
    ],
)
def test_first_bytes(data: bytes, protocol: WireProtocol | None) -> None:
    assert protocol_of(data) is protocol


class MemoryListener(trio.abc.Listener[trio.abc.Stream]):
    """Accepts memory streams; accept() raises any exception from the queue."""

    def __init__(self) -> None:
        self.send, self.receive = trio.open_memory_channel[object](100)

    async def connect(self) -> trio.StapledStream[trio.abc.SendStream, trio.abc.ReceiveStream]:
        near, far = trio.testing.memory_stream_pair()
        await self.send.send(far)
        return near

    async def accept(self) -> trio.abc.Stream:
        item = await self.receive.receive()
        if isinstance(item, BaseException):
            raise item
        assert isinstance(item, trio.abc.Stream)
        return item

    async def aclose(self) -> None:
        await self.receive.aclose()


async def ask(stream: trio.abc.Stream, data: bytes = GET) -> bytes:
    received = b""
    try:
        if data:
            await stream.send_all(data)
        while more := await stream.receive_some(1000):
            received += more
    except trio.BrokenResourceError:
        pass
    return received


async def test_accepting_survives_a_lack_of_descriptors(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    listener = MemoryListener()
    async with trio.open_nursery() as nursery:
        await nursery.start(serve, [listener], ServerCore({}))
        await listener.send.send(OSError(errno.EMFILE, os.strerror(errno.EMFILE)))
        assert (await ask(await listener.connect())).startswith(b"HTTP/1.1 404")
        nursery.cancel_scope.cancel()


async def test_sniffing_is_bounded_in_time(autojump_clock: trio.testing.MockClock) -> None:
    listener = MemoryListener()
    core = ServerCore({}, limits=Limits(handshake_timeout=7))
    async with trio.open_nursery() as nursery:
        await nursery.start(serve, [listener], core)
        before = trio.current_time()
        assert await ask(await listener.connect(), b"PR") == b""
        assert trio.current_time() - before == pytest.approx(7)
        assert core.statistics.refusals == {"handshake timeout": 1}
        nursery.cancel_scope.cancel()


async def test_silent_connections_are_counted(autojump_clock: trio.testing.MockClock) -> None:
    listener = MemoryListener()
    core = ServerCore({})
    async with trio.open_nursery() as nursery:
        await nursery.start(
            lambda task_status: serve([listener], core, limits=HttpLimits(max_per_address=3), task_status=task_status)
        )
        silent = [await listener.connect() for _ in range(3)]
        await trio.testing.wait_all_tasks_blocked()
        assert await ask(await listener.connect()) == b""
        assert core.statistics.refusals == {"connections": 1}
        await silent[0].aclose()
        await trio.testing.wait_all_tasks_blocked()
        assert (await ask(await listener.connect())).startswith(b"HTTP/1.1 404")
        nursery.cancel_scope.cancel()


async def test_tls_on_a_plain_port_is_answered_at_its_first_byte() -> None:
    listener = MemoryListener()
    async with trio.open_nursery() as nursery:
        await nursery.start(serve, [listener], ServerCore({}))
        stream = await listener.connect()
        await stream.send_all(b"\x16")
        assert (await stream.receive_some(1000)).startswith(b"HTTP/1.1 400")
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("localhost:8080", ("localhost", 8080)),
        (":80", ("", 80)),
        ("[::1]:0", ("::1", 0)),
        ("0.0.0.0:1", ("0.0.0.0", 1)),
    ],
)
def test_addresses(text: str, parsed: tuple[str, int]) -> None:
    assert parse_address(text) == parsed


@pytest.mark.parametrize("text", ["", "localhost", "8080", "::1:80", "a:b", "a:65536", "a:-1", "a:٣"])
def test_malformed_addresses(text: str) -> None:
    with pytest.raises(ConfigError):
        parse_address(text)


async def test_a_busy_port_is_named_with_a_remedy() -> None:
    first = await open_listeners("127.0.0.1:0")
    number = first[0].socket.getsockname()[1]
    with pytest.raises(MachineError) as caught:
        await open_listeners(f"localhost:{number}", setting="network.bind_address")
    own = (await trio.Path("/proc/self/comm").read_text()).strip()
    assert str(caught.value) == (
        f"cannot listen on localhost:{number}: it is in use by {own} (process {os.getpid()}): "
        "stop it, or set another port in network.bind_address"
    )
    for listener in first:
        await listener.aclose()
    with pytest.raises(MachineError, match=r"192\.0\.2\.1"):
        await open_listeners("192.0.2.1:0")


async def test_the_holder_of_a_port_is_named_only_if_it_is_visible(tmp_path: Path) -> None:
    assert await holder(1, tmp_path) == ""
    (tmp_path / "net").mkdir()
    row = "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4711 1"
    (tmp_path / "net" / "tcp").write_text(f"  sl  local_address\n{row}\n")
    (tmp_path / "12" / "fd").mkdir(parents=True)
    assert await holder(8080, tmp_path) == ""
    (tmp_path / "12" / "fd" / "3").symlink_to("socket:[4711]")
    (tmp_path / "12" / "comm").write_text("other\n")
    assert await holder(8080, tmp_path) == "other (process 12)"
    assert await holder(8081, tmp_path) == ""


async def test_pushed_back_bytes_are_received_first() -> None:
    near, far = trio.testing.memory_stream_pair()
    wire = Wire(far, stall=1)
    wire.push_back(b"cd")
    wire.push_back(b"ab")
    await near.send_all(b"ef")
    assert [await wire.receive_some(3), await wire.receive_some(3), await wire.receive_some(3)] == [b"abc", b"d", b"ef"]


async def test_queued_bytes_are_written_completely_even_if_the_writer_is_cancelled() -> None:
    near, far = trio.testing.lockstep_stream_pair()
    out = Outbox(Wire(far, stall=1000), lambda: None)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(out.run)
        out.put(b"x" * 1000)
        with trio.CancelScope() as scope:
            scope.cancel()
            await out.below(0)
        assert scope.cancelled_caught
        received = b""
        while len(received) < 1000:
            received += await near.receive_some(100)
        nursery.cancel_scope.cancel()
    assert received == b"x" * 1000
