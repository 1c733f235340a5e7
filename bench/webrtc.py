"""Compare the ways to a machine: `python -m bench webrtc`.

The official Python SDK calls a machine directly over TCP, over WebRTC, and over WebRTC with a relay (coturn), in turn
and in the same run: each time by its default dial, whose native helper makes the connection. WebRTC is encrypted, TCP
is not.

Client, machine and cloud have a network namespace each, joined by virtual cables. Needs root, or user namespaces, and
turnserver (Debian package coturn) for the relay.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import trio

from tests.e2e.harness import in_namespace
from tests.netns.internet import TURN, turnserver
from tests.netns.webrtc.world import World, world

INSIDE: Final = "--inside"
CALLS: Final = 500
AT_ONCE: Final = 16
SIZE: Final = 1 << 20  # bytes of a large message
MIB: Final = 1 << 20
NETWORK: Final = {"bind_address": "0.0.0.0:8080"}
HEADS: Final = ("connected", "p50", "p99", f"calls/s, {AT_ONCE} at once", "MiB/s", "p50 against direct")


def main(argv: Sequence[str]) -> int:
    """Return the exit status."""
    parser = argparse.ArgumentParser("python -m bench webrtc", description=(__doc__ or "").split("\n\n")[1])
    parser.add_argument("--rounds", type=int, default=3, help="rounds; medians are printed")
    parser.add_argument(INSIDE, action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.inside:
        trio.run(_measure, options.rounds)
        return 0
    words = [sys.executable, "-m", "bench.webrtc", INSIDE, f"--rounds={options.rounds}"]
    return subprocess.call(in_namespace(["unshare", "--mount", *words]))


async def _measure(rounds: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        servers = [TURN] if turnserver is not None else []
        async with world(Path(folder), *servers, cabled=True, relay=bool(servers), network=NETWORK) as made:
            ways: dict[str, dict[str, Any]] = {
                "direct, TCP": {"host": made.machine_address},
                "WebRTC": {},
            }
            if turnserver is not None:
                ways["WebRTC, relayed"] = {"force_relay": True}
            figures: dict[str, list[list[float]]] = {name: [] for name in ways}
            for _ in range(rounds):
                for name, options in ways.items():
                    figures[name].append(await _way(made, options))
    medians = {
        name: [statistics.median(column) for column in zip(*rows, strict=True)] for name, rows in figures.items()
    }
    print(f"{'':18}", *(f"{head:>20}" for head in HEADS), sep="")
    for name, (connected, p50, p99, rate, large) in medians.items():
        ratio = p50 / medians["direct, TCP"][1]
        cells = (f"{1e3 * connected:.0f} ms", f"{1e3 * p50:.2f} ms", f"{1e3 * p99:.2f} ms", f"{rate:.0f}")
        print(f"{name:18}", *(f"{cell:>20}" for cell in (*cells, f"{large / MIB:.1f}", f"{ratio:.2f}")), sep="")


async def _way(made: World, options: dict[str, Any]) -> list[float]:
    async with made.sdk() as client:
        connected = await made.dial(client, **options)
        await client("read", count=CALLS // 5)
        each = await client("read", count=CALLS)
        together = await client("read", count=4 * CALLS, at_once=AT_ONCE)
        large = await client("echo", size=SIZE, count=10)
        await client("close")
    return [connected["seconds"], each["p50"], each["p99"], together["rate"], large["rate"]]


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
