"""What a cloud bears: machines that hold their push channel and poll, log lines and readings, on SQLite and PostgreSQL.

`python -m bench cloud [--machines 1 10 100 1000] [--seconds 4]`

One machine-cloud and one process that plays the machines, on the same computer. Cost is the processor time of the cloud
(and of PostgreSQL's processes), not of the machines. PostgreSQL is left out where it is not installed.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import psutil
import trio

from bench.propagation import new_part, process
from rpc.api.client import ApiClient
from rpc.client import Channel
from rpc.credentials import ApiKey

EVERY = 4.0  # seconds between two polls of a machine
ROW = "{:12}{:>9}{:>11}{:>10}{:>9}{:>10}{:>11}{:>14}{:>6}"


class Load:
    """The process that plays machines."""

    def __init__(self, child: trio.Process) -> None:
        self._child = child
        self._read = b""

    async def __call__(self, do: str, **more: Any) -> dict[str, Any]:
        """One command and its answer."""
        assert self._child.stdin is not None
        await self._child.stdin.send_all(json.dumps({"do": do, **more}).encode() + b"\n")
        return await self.answer()

    async def answer(self) -> dict[str, Any]:
        """What it says next."""
        assert self._child.stdout is not None
        while b"\n" not in self._read:
            data = await self._child.stdout.receive_some()
            if not data:
                raise RuntimeError("the process that plays machines has ended")
            self._read += data
        line, _, self._read = self._read.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        return answer


@asynccontextmanager
async def load(address: str) -> AsyncIterator[Load]:
    """Machines of the cloud at `address`, as long as the context."""
    child = await trio.lowlevel.open_process(
        [sys.executable, "-m", "bench.cloud_load", f"http://{address}"], stdin=-1, stdout=-1
    )
    try:
        yield Load(child)
    finally:
        with trio.CancelScope(shield=True):
            child.kill()
            await child.wait()


class Cost:
    """Processor time of processes, and memory of the first."""

    def __init__(self, cloud: psutil.Process, others: list[psutil.Process]) -> None:
        self._cloud = cloud
        self._others = others
        self._begin = self._used(), time.monotonic()

    def _used(self) -> float:
        seconds = 0.0
        for one in [self._cloud, *self._others, *(child for other in self._others for child in other.children())]:
            try:
                times = one.cpu_times()
            except psutil.NoSuchProcess:
                continue
            seconds += times.user + times.system
        return seconds

    def percent(self) -> float:
        """Of one core, since this was made."""
        return 100 * (self._used() - self._begin[0]) / (time.monotonic() - self._begin[1])

    @property
    def memory(self) -> float:
        """MiB resident of the cloud."""
        return float(self._cloud.memory_info().rss) / 2**20


async def _parts(client: ApiClient, location: str, numbers: range) -> list[list[str]]:
    """Id and secret of each of so many new machines."""
    made: list[list[str]] = []

    async def some(mine: range) -> None:
        for number in mine:
            part = await new_part(client, location, f"m{number}")
            made.append([part["id"], part["secret"]])

    async with trio.open_nursery() as nursery:
        for first in range(8):
            nursery.start_soon(some, numbers[first::8])
    return made


def _cloud_process(folder: Path) -> psutil.Process:
    (found,) = [
        child
        for child in psutil.Process().children(recursive=True)
        if str(folder / "data") in child.cmdline() and "cloud.cli" in child.cmdline()
    ]
    return found


async def measure(name: str, url: str, others: list[psutil.Process], machines: list[int], seconds: float) -> None:
    """Print a line for each number of machines, and the rates."""
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        words = ["cloud.cli", "--data", str(folder / "data"), "--listen", "localhost:0"]
        if url:
            words += ["--database", url]
        async with process(*words, log=folder / "log") as address, load(address) as told:
            lines = [line for line in (folder / "log").read_text().splitlines() if line.startswith("  ")]
            facts = {key.strip(): value for key, value in (line.strip().rsplit("  ", 1) for line in lines)}
            running, connected_ = _cloud_process(folder), 0
            async with Channel(address, credentials=ApiKey(facts["key id"], facts["key"])) as channel:
                client = ApiClient(channel)
                for wanted in machines:
                    parts = await _parts(client, facts["location"], range(connected_, wanted))
                    joined = await told("connect", parts=parts)
                    rate = len(parts) / joined["seconds"]
                    connected_ = wanted
                    holding = Cost(running, others)
                    await trio.sleep(seconds)
                    held = holding.percent()
                    await told("poll", every=EVERY, seconds=2 * EVERY)  # its first answer: all have connected
                    polling = Cost(running, others)
                    polled = await told.answer()
                    cost, answered = polling.percent(), polled["calls"] / (2 * EVERY)
                    times = f"{1e3 * polled['p50']:.0f}/{1e3 * polled['p99']:.0f}"
                    each = f"{10 * cost / answered:.2f} ms" if answered else "-"
                    cells = (f"{held:.1f} %", f"{answered:.1f}", f"{cost:.1f} %", each, times, f"{holding.memory:.0f}")
                    print(ROW.format(name, wanted, f"{rate:.0f}", *cells), flush=True)
            for what, each, unit in (("config", 1, "polls"), ("log", 100, "log lines"), ("upload", 100, "readings")):
                cost_of = Cost(running, others)
                found = await told("flat", what=what, seconds=seconds)
                print(
                    f"{name:12}{found['calls'] * each:9.0f} {unit}/s, {cost_of.percent():.0f} % of a core", flush=True
                )


def main(argv: list[str]) -> int:
    """Measure and print the tables."""
    parser = argparse.ArgumentParser(
        prog="python -m bench cloud", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--machines", type=int, nargs="+", default=[1, 10, 100, 1000])
    parser.add_argument("--seconds", type=float, default=4.0, help="for each figure")
    parser.add_argument("--only", choices=("sqlite", "postgresql"), help="one of both")
    options = parser.parse_args(argv)
    heads = ("database", "machines", "connect/s", "holding", "polls/s", "polling", "a poll", "p50/p99 ms", "MiB")
    print(f"holding: push channels; polling: besides, every {EVERY:g} s each; % of one core")
    print(ROW.format(*heads))
    if options.only != "postgresql":
        trio.run(measure, "SQLite", "", [], options.machines, options.seconds)
    if options.only == "sqlite":
        return 0
    with ExitStack() as stack:
        from tests.postgresql import cluster, programs

        if programs() is None:
            print("PostgreSQL is not installed here")
            return 0
        server = stack.enter_context(cluster())
        trio.run(measure, "PostgreSQL", server.url(), [server.process()], options.machines, options.seconds)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
