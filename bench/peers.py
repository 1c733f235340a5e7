"""Measure the WebRTC engines of rpc/peers: `python -m bench peers`.

Each engine that is installed runs in a process and a network namespace of its own, with both ends in that process:
import, first connection, opened and closed connections, round trips and 8 MiB of messages of 64 KiB. The same calls run
over its data channel, over HTTP/2 on loopback and over a channel in memory. The longest step is the longest time for
which another task did not run. Needs root, or user namespaces.
"""

from __future__ import annotations

import argparse
import importlib
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from types import ModuleType
from typing import Final

import psutil
import trio

from bench import peer_calls
from rpc.peers.engines import ENGINES
from rpc.peers.port import MAX_MESSAGE, Engine, PeerChannel, PeerConnection, PeerOptions

INSIDE: Final = "--inside"
SIZE: Final = 8 << 20
PAIRS: Final = 50
TRIPS: Final = 500
MIB: Final = 1 << 20


def main(argv: Sequence[str]) -> int:
    """Return the exit status."""
    parser = argparse.ArgumentParser("python -m bench peers", description=(__doc__ or "").split("\n\n")[1])
    parser.add_argument(INSIDE, default="", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.inside:
        return _measure(options.inside)
    mapped = [] if os.geteuid() == 0 else ["--map-root-user"]
    words = [sys.executable, "-m", "bench.peers", INSIDE]
    return max(subprocess.call(["unshare", "--net", *mapped, *words, name]) for name in ENGINES)


def add_interfaces() -> None:
    """Give this network namespace interfaces: engines ignore loopback."""
    for words in (
        ["link", "add", "lan0", "type", "veth", "peer", "name", "lan1"],
        ["address", "add", "10.77.0.1/24", "dev", "lan0"],
        ["link", "set", "lan0", "up"],
        ["link", "set", "lan1", "up"],
        ["link", "set", "lo", "up"],
    ):
        subprocess.run(["ip", *words], check=True)


def _measure(name: str) -> int:
    add_interfaces()
    before, begin = _memory(), time.process_time()
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        print(f"{name}: {error}")
        return 0
    print(f"{name}:")
    _show("import", f"{1e3 * (time.process_time() - begin):.0f} CPU-ms, {_memory() - before:.1f} MiB")
    trio.run(_connections, module)
    return 0


async def _connections(module: ModuleType) -> None:
    async with module.open_engine() as engine, trio.open_nursery() as nursery:
        watch = Watch()
        nursery.start_soon(watch.run)
        before = _memory()
        pair = await _connect(engine)
        _show("first connection, both ends", f"{_memory() - before:.1f} MiB, longest step {watch.longest():.1f} ms")
        await _move_data(pair, watch)
        ways = {
            "calls over this data channel": peer_calls.over_channel(pair[1], pair[3]),
            "calls over HTTP/2, loopback": peer_calls.over_http2(),
            "calls over a channel in memory": peer_calls.over_memory(),
        }
        for name, way in ways.items():
            async with way as call:
                _show(name, await peer_calls.measure(call, watch.longest))
        _close(pair)
        before, begin = _memory(), time.process_time()
        for _ in range(PAIRS):
            _close(await _connect(engine))
        cost = 1e3 * (time.process_time() - begin) / PAIRS
        grown = _memory() - before
        _show("connections, both ends", f"{cost:.1f} CPU-ms each; {PAIRS} leave {grown:.1f} MiB")
        _show("", f"longest step {watch.longest():.1f} ms")
        nursery.cancel_scope.cancel()


async def _move_data(pair: _Pair, watch: Watch) -> None:
    source, target = pair[1], pair[3]
    times = []
    for _ in range(TRIPS):
        begin = time.perf_counter()
        await source.send(b"x")
        await target.receive()
        await target.send(b"x")
        await source.receive()
        times.append(time.perf_counter() - begin)
    _show("round trip, median", f"{1e3 * statistics.median(times):.2f} ms")
    watch.longest()
    begin, cpu = time.perf_counter(), time.process_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_send, source)
        for _ in range(SIZE // MAX_MESSAGE):
            await target.receive()
    wall, cpu = time.perf_counter() - begin, time.process_time() - cpu
    _show(
        f"{SIZE // MIB} MiB", f"{cpu:.2f} CPU-s, {SIZE / MIB / wall:.1f} MiB/s, longest step {watch.longest():.1f} ms"
    )


async def _send(channel: PeerChannel) -> None:
    for _ in range(SIZE // MAX_MESSAGE):
        await channel.send(bytes(MAX_MESSAGE))


_Pair = tuple[PeerConnection, PeerChannel, PeerConnection, PeerChannel]


async def _connect(engine: Engine) -> _Pair:
    offerer, answerer = engine.connect(PeerOptions()), engine.connect(PeerOptions())
    pair = offerer, offerer.channel("data", 0), answerer, answerer.channel("data", 0)
    await answerer.accept(await offerer.offer())
    await offerer.accept(await answerer.answer())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_trickle, offerer, answerer)
        nursery.start_soon(_trickle, answerer, offerer)
        await pair[1].wait_open()
        await pair[3].wait_open()
    return pair


async def _trickle(source: PeerConnection, target: PeerConnection) -> None:
    while (candidate := await source.next_candidate()) is not None:
        await target.add_candidate(candidate)


def _close(pair: _Pair) -> None:
    pair[0].close()
    pair[2].close()


class Watch:
    """A task that wakes up every millisecond and keeps the longest delay."""

    def __init__(self) -> None:
        self._longest = 0.0

    async def run(self) -> None:
        last = time.perf_counter()
        while True:
            await trio.sleep(0.001)
            now = time.perf_counter()
            self._longest = max(self._longest, now - last - 0.001)
            last = now

    def longest(self) -> float:
        """Return the longest step since the last call, in milliseconds."""
        longest, self._longest = self._longest, 0.0
        return 1e3 * longest


def _memory() -> float:
    return float(psutil.Process().memory_info().rss / MIB)


def _show(subject: str, figures: str) -> None:
    print(f"  {subject:30} {figures}")


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
