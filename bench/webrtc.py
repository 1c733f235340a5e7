"""Compare the ways to a machine: `python -m bench webrtc`.

The official Python SDK calls a machine over TCP, over WebRTC, over WebRTC with a relay (coturn) and through the
cloud, in turn and in the same run: each time by its default dial, whose native helper makes the connection. Only WebRTC
is encrypted here.

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

from rpc.api.client import ApiClient
from rpc.client.channel import Channel
from rpc.client.credentials import ApiKey
from schema.errors import ErrorKind, MachineError
from tests.e2e.cloud.test_machine import until
from tests.e2e.harness import in_namespace
from tests.netns.internet import TURN, turnserver
from tests.netns.webrtc.world import World, world

INSIDE: Final = "--inside"
CALLS: Final = 500
AT_ONCE: Final = 16
SIZE: Final = 1 << 20  # bytes of a large message
MIB: Final = 1 << 20
NETWORK: Final = {"bind_address": "0.0.0.0:8080"}
SIGNALING: Final = "proto.rpc.webrtc.v1.SignalingService"
THROUGH_CLOUD: Final = "through the cloud"
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
            figures: dict[str, list[list[float]]] = {name: [] for name in (*ways, THROUGH_CLOUD)}
            await made.machine.stop()
            for _ in range(rounds):
                async with made.run_machine() as made.machine:
                    await until(lambda: _answers(made), "the machine answers offers")
                    for name, options in ways.items():
                        figures[name].append(await _way(made, options))
                    await made.machine.stop()
                async with made.run_machine("-webrtc=false") as made.machine:
                    await until(lambda: _answers(made, expected=False), "the cloud knows that it does not")
                    figures[THROUGH_CLOUD].append(await _way(made, {}))
                    await made.machine.stop()
    medians = {
        name: [statistics.median(column) for column in zip(*rows, strict=True)] for name, rows in figures.items()
    }
    print(f"{'':18}", *(f"{head:>20}" for head in HEADS), sep="")
    for name, (connected, p50, p99, rate, large) in medians.items():
        ratio = p50 / medians["direct, TCP"][1]
        cells = (f"{1e3 * connected:.0f} ms", f"{1e3 * p50:.2f} ms", f"{1e3 * p99:.2f} ms", f"{rate:.0f}")
        print(f"{name:18}", *(f"{cell:>20}" for cell in (*cells, f"{large / MIB:.1f}", f"{ratio:.2f}")), sep="")


async def _answers(made: World, *, expected: bool = True) -> bool:
    """Return whether the machine uses WebRTC, according to the cloud, as `expected`."""
    async with Channel(made.cloud.address, credentials=ApiKey(*made.cloud.key)) as channel:
        try:
            await ApiClient(channel, metadata={"rpc-host": made.host}).call(SIGNALING, "", "optional_web_rtc_config")
        except MachineError as error:
            return not expected and error.kind is ErrorKind.INVALID
        return expected


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
