"""Overload and hostile peers on small heaps: calls are refused, and nothing is wedged."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import trio

from rpc.api.client import ApiClient
from rpc.client.channel import Channel
from rpc.http2.codec import frames
from schema import MachineError
from tests.e2e.micro.machines import CAR, SMALL
from tests.e2e.micro.program import FIRMWARE, MicroServer, micro_server
from tests.helpers.hostile import HTTP2, SETTINGS
from tests.scope import some_of

SENSOR = ("rdk:component:sensor", "self")
PATH = "/viam.component.sensor.v1.SensorService/GetReadings"
SLACK = 2500  # bytes, such as those of lines in the log
HEAPS = [("32k", SMALL, 1), ("128k", CAR, 4), ("64k", CAR, 2)]


async def free(server: MicroServer, at_least: int = 0, tries: int = 100) -> int:
    """Return the free heap, by the call of a new client; tries again while the server is busy with its attackers."""
    for attempt in range(tries):
        try:
            async with Channel(f"http://{server.address}") as channel:
                reply = await ApiClient(channel).call(*SENSOR, "get_readings")
            if reply["heap_free_bytes"] >= at_least or attempt == tries - 1:
                return int(reply["heap_free_bytes"])
        except (MachineError, OSError):
            if attempt == tries - 1:
                raise
            await trio.sleep(0.2)  # wait: until the server has noticed that its attackers have gone
    raise AssertionError


def connect(server: MicroServer) -> socket.socket:
    peer = socket.create_connection(("127.0.0.1", server.port), 5)
    peer.settimeout(1)
    return peer


def send(peer: socket.socket, data: bytes, *, reads: bool = True) -> bytes:
    """Send as much as the server takes, and return what it answers at once."""
    try:
        peer.sendall(data)
        return peer.recv(4096) if reads else b""
    except OSError:
        return b""


@pytest.mark.parametrize(("heap", "document", "clients"), HEAPS)
def test_clients_of_a_heap(tmp_path: Path, heap: str, document: dict[str, Any], clients: int) -> None:
    async def main(server: MicroServer) -> None:
        async def client(ready: trio.Event) -> None:
            async with Channel(f"http://{server.address}") as channel:
                for _ in range(20):
                    await ApiClient(channel).call(*SENSOR, "get_readings")
                ready.set()
                await trio.sleep_forever()

        async with trio.open_nursery() as nursery:
            for _ in range(clients):
                ready = trio.Event()
                nursery.start_soon(client, ready)
                with trio.fail_after(20):
                    await ready.wait()
            nursery.cancel_scope.cancel()
        assert await free(server) > 1000

    with micro_server(tmp_path, document, FIRMWARE, heap) as server:
        trio.run(main, server)
    assert not [line for line in server.lines if "Traceback" in line or "memory" in line]


@pytest.mark.parametrize(("heap", "document", "clients"), some_of(2, HEAPS, 4))
def test_attacks_do_not_wedge_the_server(tmp_path: Path, heap: str, document: dict[str, Any], clients: int) -> None:
    with micro_server(tmp_path, document, FIRMWARE, heap) as server, ExitStack() as stack:
        before = trio.run(free, server)
        silent = [stack.enter_context(connect(server)) for _ in range(12)]  # more than the server takes
        for peer in silent:
            send(peer, b"PRI * HT", reads=False)
        for peer in silent:
            peer.close()
        for row in HTTP2:
            with connect(server) as peer:
                send(peer, (frames.PREFACE + SETTINGS if row.preface else b"") + (row.data * row.repeat)[:200_000])
        large = frames.PREFACE + SETTINGS
        for sid in range(1, 40, 2):
            large += frames.headers(sid, BLOCK, end=False, max_frame=16384)
            large += frames.frame(frames.DATA, 0, sid, b"\0\0\0\x07\xd0" + b"x" * 1900)  # never complete
        attackers = [stack.enter_context(connect(server)) for _ in range(4)]
        for peer in attackers:
            send(peer, large, reads=False)
        for peer in attackers:
            peer.close()
        after = trio.run(free, server, before - SLACK)
        assert after >= before - SLACK, "an attack has left something behind"
    assert not [line for line in server.lines if "Traceback" in line]


def _block() -> bytes:
    from rpc.http2.codec import hpack

    fields = [(":method", "POST"), (":scheme", "http"), (":path", PATH), ("content-type", "application/grpc")]
    return hpack.encode_headers(fields)


BLOCK = _block()
