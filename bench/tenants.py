"""Measure how a tenant of a cloud is affected by another that sends everything that is allowed, and more.

`python -m bench.tenants [--minutes 3] [--quiet 20] [--attackers 8] [--seed 1] [--rss 1024] [--ways save,draft]`

A machine-cloud on loopback has two organizations. The attacker is a separate process that sends documents, fragments,
metadata, SQL queries, uploads, archives, conditions of triggers, pages and drafts, chosen at random from
`bench.tenants_attack`, and often disconnects before the answer. The neighbor makes calls and opens pages at a constant
rate, first without, then under attack. Exits 1 if its p99 under attack is more than 5 times that without, if the cloud
uses more memory than --rss MiB, if it ends or logs an internal failure, or if the neighbor receives an error.

On a computer with few processors all processes share them. The attacker runs at the lowest priority (nice 19), so that
it uses only what the cloud leaves, and the measurement reflects the cloud. The report has the processor shares,
including those of other programs, and the delay of the neighbor's own process: if these are large, the ratio means
little. The cloud's work for the attacker remains a limit: Python runs one thread at a time, so each time a request of
the neighbor passes from one thread to another, it waits for those that work for the attacker: one in the room, one
reader, and the writer.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import psutil
import trio

from bench.cloud_process import Database, Running, cloud, free_port
from bench.propagation import APP, document, new_part
from rpc.api.client import ApiClient
from rpc.client.channel import Channel
from rpc.client.credentials import ApiKey

BUDGET: Final = 5.0  # ratio of p99 under attack to p99 without
EVERY: Final = 0.05  # seconds between requests of the neighbor
MIB: Final = 1 << 20
FAILURES: Final = ("Traceback", "a page failed", "internal error")


@dataclass
class Times:
    """Durations of the neighbor's requests in seconds, and errors."""

    by_turn: dict[str, list[float]] = field(default_factory=dict)
    late: list[float] = field(default_factory=list)  # delay of the neighbor itself before a request
    by_minute: dict[int, list[float]] = field(default_factory=dict)  # durations, by the minute of the run
    errors: list[str] = field(default_factory=list)
    begin: float = 0.0  # time of the first request

    @property
    def seconds(self) -> list[float]:
        """The durations of all turns."""
        return [duration for durations in self.by_turn.values() for duration in durations]

    def p(self, percent: int, turn: str = "") -> float:
        """Return a percentile of all durations, or of one turn, in milliseconds."""
        return statistics.quantiles(self.by_turn.get(turn, self.seconds), n=100)[percent - 1] * 1000

    def line(self, name: str) -> str:
        """Format the results as one line."""
        each = "".join(f"   {turn} {self.p(99, turn):.0f}" for turn in self.by_turn)
        count = len(self.seconds)
        late = statistics.quantiles(self.late, n=100)[98] * 1000
        begin = f"{name} p50 {self.p(50):7.1f} ms   p99 {self.p(99):7.1f} ms   {count} requests"
        return f"{begin}; p99 of{each}; own delay {late:.0f}"


class Neighbor:
    """The other tenant, which makes small calls and opens pages in turn at a constant rate."""

    def __init__(self, client: ApiClient, address: str, token: str, part: str) -> None:
        self._client = client
        host, _, port = address.rpartition(":")
        self._host, self._port, self._token, self._part = host.strip("[]"), int(port), token, part

    async def live(self, times: Times) -> None:
        """Make requests until cancelled."""
        numbers = itertools.count()
        turns: dict[str, Callable[[], Awaitable[object]]] = {
            "read": lambda: self._client.call(APP, "", "get_robot_part", id=self._part),
            "page": lambda: page(self._host, self._port, f"/machines/{self._part}/config", self._token),
            "save": lambda: self._client.call(
                APP, "", "update_robot_part", id=self._part, robot_config_json=document(f"s{next(numbers)}")
            ),
            "health": lambda: page(self._host, self._port, "/healthz", ""),
        }
        times.begin = next_at = trio.current_time()
        async with trio.open_nursery() as nursery:
            for name in itertools.cycle(turns):
                nursery.start_soon(self._repeat, name, turns[name], times)
                next_at += EVERY
                await trio.sleep_until(next_at)
                times.late.append(trio.current_time() - next_at)

    async def _repeat(self, name: str, turn: Callable[[], Awaitable[object]], times: Times) -> None:
        begin = trio.current_time()
        try:
            with trio.fail_after(60):
                await turn()
        except Exception as error:
            times.errors.append(f"{type(error).__name__}: {error}")
        seconds = trio.current_time() - begin
        times.by_turn.setdefault(name, []).append(seconds)
        times.by_minute.setdefault(int((begin - times.begin) / 60), []).append(seconds)


async def page(host: str, port: int, path: str, token: str, method: str = "GET", body: bytes = b"") -> int:
    """Request a page on a new connection and return its HTTP status."""
    head = [f"{method} {path} HTTP/1.1", f"Host: {host}:{port}", "Connection: close", "Accept: text/html"]
    head += [f"Authorization: Bearer {token}"] * bool(token)
    if method == "POST":
        kind = "application/json" if path.endswith(("/check", "/complete")) else "application/x-www-form-urlencoded"
        head += [f"Content-Length: {len(body)}", f"Content-Type: {kind}", f"Origin: http://{host}:{port}"]
    async with await trio.open_tcp_stream(host, port) as stream:
        await stream.send_all("\r\n".join([*head, "", ""]).encode())
        if body:
            await stream.send_all(body)
        answer = b""
        while piece := await stream.receive_some(1 << 18):
            answer = answer or piece[:64]
    status = int(answer.split(b" ", 2)[1]) if answer else 0
    if method == "GET" and status >= 500:
        raise RuntimeError(f"{path}: HTTP status {status}")
    return status


async def memory(process: psutil.Process, largest: list[int]) -> None:
    """Record the largest resident sizes of the cloud, and of its SQL query processes together."""
    while True:
        try:
            largest[0] = max(largest[0], process.memory_info().rss)
            largest[1] = max(largest[1], sum(child.memory_info().rss for child in process.children()))
        except psutil.Error:
            pass
        await trio.sleep(0.1)


def used(process: psutil.Process, *, children: bool = False) -> float:
    """Return the processor time of a process, or of its ended children, in seconds."""
    times = process.cpu_times()
    return float(times.children_user + times.children_system if children else times.user + times.system)


@asynccontextmanager
async def attacking(
    running: Running, options: argparse.Namespace, costs: dict[str, float]
) -> AsyncIterator[dict[str, int]]:
    """Run the attacker while the context is open. Afterwards the yielded dictionary has the counts of its answers, and
    `costs` the processor time in seconds.
    """
    facts = [running.facts[name] for name in ("organization", "location", "key id", "key")]
    words = [running.address, *facts, str(options.attackers), str(options.seed), *options.ways]
    child = await trio.lowlevel.open_process(
        ["nice", "-n", "19", sys.executable, "-m", "bench.tenants_attack", *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    report: dict[str, int] = {}
    attacker, here, begin = psutil.Process(child.pid), psutil.Process(), time.perf_counter()
    before = used(running.process), used(running.process, children=True), used(here), sum(psutil.cpu_times()[:3])
    try:
        yield report
        costs["cloud"] = used(running.process) - before[0]
        costs["its SQL queries"] = used(running.process, children=True) - before[1]
        costs["attacker"] = used(attacker)
        costs["neighbor"] = used(here) - before[2]
        costs["other programs"] = max(0.0, sum(psutil.cpu_times()[:3]) - before[3] - sum(costs.values()))
        costs["idle"] = max(0.0, (time.perf_counter() - begin) * (psutil.cpu_count() or 1) - sum(costs.values()))
        assert child.stdin is not None
        assert child.stdout is not None
        await child.stdin.aclose()
        output = b""
        with trio.move_on_after(30):
            while piece := await child.stdout.receive_some():
                output += piece
        report.update(json.loads(output or b"{}"))
    finally:
        child.kill()
        with trio.CancelScope(shield=True):
            await child.wait()


def written_by(folder: Path) -> str:
    """Return the logs of the cloud."""
    return "".join(path.read_text(errors="replace") for path in folder.glob("*.log"))


async def measure(options: argparse.Namespace) -> int:
    """Run the benchmark; return 0 if all results are within bounds."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        async with cloud(folder, Database("SQLite"), free_port()) as running:
            words = [
                sys.executable,
                "-m",
                "cloud.server.cli",
                "--data",
                str(folder / "data"),
                "organization",
                "Neighbor",
            ]
            output = (await trio.run_process(words, capture_stdout=True)).stdout.decode()
            facts = {
                key.strip(): value
                for key, value in (
                    line.strip().rsplit("  ", 1) for line in output.splitlines() if line.startswith("  ")
                )
            }
            quiet, loud, largest, costs = Times(), Times(), [0, 0], dict[str, float]()
            credentials = ApiKey(facts["key id"].strip(), facts["key"].strip())
            async with Channel(running.address, credentials=credentials) as channel, trio.open_nursery() as nursery:
                client = ApiClient(channel)
                part = await new_part(client, facts["location"].strip(), "rover")
                ((_, bearer),) = await credentials.headers(channel)
                neighbor = Neighbor(client, running.address, bearer.removeprefix("Bearer "), part["id"])
                nursery.start_soon(memory, running.process, largest)
                with trio.move_on_after(options.quiet):
                    await neighbor.live(quiet)
                async with attacking(running, options, costs) as report:
                    with trio.move_on_after(options.minutes * 60):
                        await neighbor.live(loud)
                alive = running.process.is_running() and running.process.status() != psutil.STATUS_ZOMBIE
                nursery.cancel_scope.cancel()
            begin = time.perf_counter()
        stopped = time.perf_counter() - begin
        logs = written_by(folder)
    failures = [line for line in logs.splitlines() if any(word in line for word in FAILURES)]
    ratio = loud.p(99) / quiet.p(99)
    print(quiet.line("neighbor alone       "))
    print(loud.line("neighbor under attack"))
    minutes = (
        statistics.quantiles(durations, n=100)[98]
        for _, durations in sorted(loud.by_minute.items())
        if len(durations) > 1
    )
    print("p99 of each minute, ms:", " ".join(f"{p99 * 1000:.0f}" for p99 in minutes))
    seconds = sum(costs.values())
    print("processors under attack:", ", ".join(f"{name} {share / seconds:.0%}" for name, share in costs.items()))
    print(f"ratio of p99 {ratio:.1f} (budget {BUDGET:g}); longest {max(loud.seconds) * 1000:.0f} ms")
    print(f"errors of the neighbor {len(quiet.errors) + len(loud.errors)} {(quiet.errors + loud.errors)[:3]}")
    print(f"memory at most {largest[0] / MIB:.0f} MiB (bound {options.rss}), of SQL queries {largest[1] / MIB:.0f} MiB")
    print(
        f"the cloud {'survived' if alive else 'DIED'}, stopped in {stopped:.1f} s; failures in its log {len(failures)}"
    )
    for line in failures[:5]:
        print(f"  {line[:200]}")
    print("answers to the attacker:", json.dumps(report, sort_keys=True))
    bad = ratio > BUDGET or largest[0] > options.rss * MIB or not alive or failures or quiet.errors or loud.errors
    return int(bool(bad))


def main(argv: list[str]) -> int:
    """Run the benchmark; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.tenants", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=3.0)
    parser.add_argument("--quiet", type=float, default=20.0, help="seconds without attack")
    parser.add_argument("--attackers", type=int, default=8, help="concurrent tasks of the attacker")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ways", type=lambda text: text.split(","), default=[], help="kinds of attack; default: all")
    parser.add_argument("--rss", type=int, default=1024, help="memory bound of the cloud in MiB")
    return trio.run(measure, parser.parse_args(argv))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
