"""Measure the cost of statistics: calls with and without counters, the time and size of a sample of all statistics.

The machine is `examples/bench.json` in memory, so that rounds differ only in the code under test.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import trio

from engine.apis import BASES
from rpc.api.client import ApiClient
from rpc.api.memory import MemoryChannel
from rpc.api.server.router import ApiRouter
from runtime.server.memory import MemoryMachine, open_machine
from telemetry.metrics.ftdc import FtdcEncoder
from telemetry.metrics.spans import Span

ROOT = Path(__file__).parent.parent
CALLS = 2000
SAMPLES = 300


async def seconds_of_calls(client: ApiClient, api: str, name: str) -> float:
    begin = time.perf_counter()
    for _ in range(CALLS):
        await client.call(api, name, "get_readings")
    return (time.perf_counter() - begin) / CALLS


def seconds_of_samples(sample: Callable[[], dict[str, float]], encoder: FtdcEncoder) -> tuple[float, int]:
    """Return processor time and bytes of one sample."""
    begin, size = time.process_time(), 0
    for number in range(SAMPLES):
        size += len(encoder.encode(number + 1, sample()))
    return (time.process_time() - begin) / SAMPLES, size // SAMPLES


async def measure(memory: MemoryMachine, rounds: int) -> dict[str, float]:
    machine = memory.machine
    await machine.lifecycle.running.wait()
    sensor = next(name for name in machine.roster.hosts if name.startswith("rdk:component:sensor/"))
    api, _, name = sensor.partition("/")
    plain = ApiClient(MemoryChannel(ApiRouter(memory.serving.dispatch, bases=BASES)))
    counted = memory.client()
    for client in (plain, counted):
        await seconds_of_calls(client, api, name)
    times: dict[str, list[float]] = {"plain": [], "counted": [], "traced": []}
    spans: list[Span] = []
    for _ in range(rounds):
        times["plain"].append(await seconds_of_calls(plain, api, name))
        times["counted"].append(await seconds_of_calls(counted, api, name))
        machine.traffic.calls.tracer.start(spans.append)
        times["traced"].append(await seconds_of_calls(counted, api, name))
        machine.traffic.calls.tracer.stop()
        spans.clear()
    sample, encoder = machine.sample, FtdcEncoder()
    seconds_of_samples(sample, encoder)
    samples_taken = [seconds_of_samples(sample, encoder) for _ in range(rounds)]
    medians = {key: statistics.median(values) for key, values in times.items()}
    return {
        "call us": medians["plain"] * 1e6,
        "counted call, times a call that is not": medians["counted"] / medians["plain"],
        "counted and traced call, times that": medians["traced"] / medians["plain"],
        "quantities": len(sample()),
        "sample us of processor time": statistics.median(seconds for seconds, _ in samples_taken) * 1e6,
        "idle sample bytes": statistics.median(size for _, size in samples_taken),
        "% of a core at one sample a second": statistics.median(seconds for seconds, _ in samples_taken) * 100,
    }


async def run(document: dict[str, Any], rounds: int) -> dict[str, float]:
    async with open_machine(document) as memory:
        return await measure(memory, rounds)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench ftdc", description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args(argv)
    figures = trio.run(run, json.loads((ROOT / "examples" / "bench.json").read_text()), options.rounds)
    print(f"medians of {options.rounds} interleaved rounds on bench.json, in memory")
    for key, value in figures.items():
        print(f"  {key:42} {value:10.3f}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
