"""Measure the capacity of a cloud: push channels, polls, logs, readings and triggers, on both databases.

`python -m bench cloud [--database sqlite|postgresql] [--machines 1 10 100 1000] [--seconds 3] [--only PART]`

One machine-cloud and one process that simulates the machines run on the same computer. `cost` is the processor time of
the cloud and of PostgreSQL, in percent of one core; `load` is that of the simulating process: near 100 %, it was the
bottleneck, not the cloud. Logs and readings are compared with a bare loop of INSERTs, readings in PostgreSQL with COPY
(see bench.cloud_bare), by rate and by processor time. Both databases wait for the disk on every commit. PostgreSQL
is skipped if it is not installed.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import httpcore
import trio

from bench.cloud_bare import bare
from bench.cloud_process import Cost, Database, Hooks, Load, Running, cloud, databases, free_port, load
from bench.cloud_requests import triggers_of
from bench.propagation import APP, new_part
from rpc.api.client import ApiClient
from rpc.client.channel import Channel
from rpc.client.credentials import ApiKey

EVERY = 4.0  # seconds between polls of a machine
UNITS = {"config": (1, "polls"), "log": (100, "log lines"), "upload": (100, "readings")}
SAVES = 100  # configurations saved while all machines are connected
UPLOADS = 400  # to measure triggers
ROW = "{:11}{:>9}{:>11}{:>10}{:>9}{:>9}{:>10}{:>13}{:>7}{:>7}"
RATE = "{:11}{:>9}  {:10}{:>9}{:>12}{:>12}{:>8}{:>11}{:>7}  {}"


@dataclass
class Parameters:
    """The parameters of a measurement."""

    machines: Sequence[int]
    seconds: float
    only: frozenset[str]
    source: str
    callers: int = 8

    def wants(self, part: str) -> bool:
        """Return whether a part of the benchmark is to run."""
        return not self.only or part in self.only


class Bench:
    """The benchmark of one cloud on one database."""

    def __init__(self, parameters: Parameters, database: Database, folder: Path) -> None:
        self.parameters = parameters
        self.database = database
        self.folder = folder
        self.port = free_port()
        self.key = ("", "")
        self.location = ""
        self.parts: list[list[str]] = []

    async def run(self) -> None:
        """Run all selected parts and print the results."""
        async with trio.open_nursery() as nursery:
            hooks = Hooks()
            await nursery.start(hooks.serve)
            async with load(self.port) as simulator:
                async with cloud(self.folder, self.database, self.port, self.parameters.source) as running:
                    self.key = (running.facts["key id"], running.facts["key"])
                    self.location = running.facts["location"]
                    async with Channel(running.address, credentials=ApiKey(*self.key)) as channel:
                        client = ApiClient(channel)
                        if self.parameters.wants("triggers"):
                            await self.triggers(running, client, simulator, hooks)
                        await self.fleet(running, client, simulator)
                        if self.parameters.wants("save"):
                            await self.save(running, client, simulator)
                        if self.parameters.wants("page"):
                            await self.page(running)
                    if self.parameters.wants("storm"):
                        await simulator.tell("storm")
                if self.parameters.wants("storm"):
                    await self.storm(simulator)
            nursery.cancel_scope.cancel()

    # ---- machines

    async def fleet(self, running: Running, client: ApiClient, simulator: Load) -> None:
        """Measure machines that connect, hold their channel, poll, and call as fast as they are answered."""
        heads = ("machines", "connect/s", "holding", "polls/s", "cost", "a poll", "p50/p99 ms", "load", "MiB")
        print(ROW.format(self.database.name, *heads))
        rates: list[str] = []
        for count in self.parameters.machines:
            new = await self._new_parts(client, range(len(self.parts), count))
            self.parts += new
            joined = await simulator("connect", parts=new)
            holding = Cost(running, self.database)
            await trio.sleep(self.parameters.seconds / 2)
            held = holding.percent()
            cells = [f"{len(new) / joined['seconds']:.0f}", f"{held:.1f} %"]
            if self.parameters.wants("poll"):
                cells += await self._poll(running, simulator)
            memory = Cost(running, self.database).memory
            print(ROW.format("", count, *cells, *("-" * (7 - len(cells))), f"{memory:.0f}"), flush=True)
            rates += [
                await self._flat(running, simulator, what, count) for what in UNITS if self.parameters.wants(what)
            ]
        if rates:
            heads = (
                "callers",
                "what",
                "a second",
                "p50/p99 ms",
                "of each",
                "cost",
                "a call",
                "load",
                "compared with the bare loop",
            )
            print(RATE.format(self.database.name, *heads))
            print("\n".join(rates), flush=True)

    async def _poll(self, running: Running, simulator: Load) -> list[str]:
        await simulator("poll", every=EVERY, seconds=EVERY)  # the first answer: all machines have logged in
        cost = Cost(running, self.database)
        result = await simulator.answer()
        used, count = cost.seconds(), result["calls"]
        if result["refused"] or not count:
            raise RuntimeError(f"polls were refused: {result['refused']}")
        return [
            f"{count / (EVERY + result['late']):.1f}",
            f"{cost.percent():.1f} %",
            f"{1e3 * used / count:.2f} ms",
            _times(result),
            f"{100 * result['busy']:.0f} %",
        ]

    async def _flat(self, running: Running, simulator: Load, kind: str, callers: int) -> str:
        each, unit = UNITS[kind]
        seconds = self.parameters.seconds
        cost = Cost(running, self.database)
        result = await simulator("flat", what=kind, callers=callers, seconds=seconds)
        used, percent = cost.seconds(), cost.percent()
        if result["refused"]:
            raise RuntimeError(f"calls were refused: {result['refused']}")
        rate = result["calls"] * each / result["seconds"]
        comparison = ""
        if kind != "config":
            server = self.database.used()
            alone = bare(self.database.url, self.folder, kind, each, max(1.0, seconds / 2))
            bare_call = (alone.used + self.database.used() - server) / alone.transactions
            comparison = (
                f"{rate / alone.rows:.2f} of {alone.rows:,.0f}/s, {bare_call * result['calls'] / used:.2f} of it by "
                f"processor time ({1e3 * bare_call:.2f} ms a call)"
            )
        spread = f"{result['least']}..{result['most']}"  # fewest and most calls of a machine
        call = f"{1e3 * used / result['calls']:.2f} ms" if result["calls"] else "-"
        cells = (
            f"{rate:,.0f}",
            _times(result),
            spread,
            f"{percent:.0f} %",
            call,
            f"{100 * result['busy']:.0f} %",
            comparison,
        )
        return RATE.format("", callers, unit, *cells)

    # ---- other measurements

    async def triggers(self, running: Running, client: ApiClient, simulator: Load, hooks: Hooks) -> None:
        """Measure uploads of ten readings for conditional triggers of which one fires, and uploads that all fire."""
        print(
            f"{self.database.name}: triggers; {UPLOADS} uploads of 10 readings from {self.parameters.callers} machines"
        )
        for count in (1, 10, 100):
            url = f"http://127.0.0.1:{hooks.port}/"
            parts = await self._configured(client, triggers_of(count, url, cooldown=3600), f"t{count}-")
            before = hooks.count
            seconds, used = await self._evaluated(running, simulator, parts)
            print(
                f"{count:>5} conditions for each part: {UPLOADS / seconds:7.0f} uploads/s, "
                f"{10 * UPLOADS * count / seconds:10,.0f} comparisons of a condition with a reading/s, "
                f"{1e3 * used / UPLOADS:6.2f} ms for an upload; {hooks.count - before} webhooks, the others within "
                "the cooldown",
                flush=True,
            )
        parts = await self._configured(client, triggers_of(1, url, cooldown=0), "every-")
        before = hooks.count
        begin = time.perf_counter()
        cost = Cost(running, self.database)
        await self._evaluated(running, simulator, parts)
        with trio.fail_after(120):
            await hooks.until(before + UPLOADS)
        seconds = time.perf_counter() - begin
        print(
            f"      every upload fires: {UPLOADS / seconds:7.0f} webhooks/s received, "
            f"{1e3 * cost.seconds() / UPLOADS:.2f} ms for an upload with its webhook",
            flush=True,
        )

    async def _evaluated(
        self, running: Running, simulator: Load, parts: Sequence[Sequence[str]]
    ) -> tuple[float, float]:
        """Return the seconds until all uploads were evaluated, and the processor time."""
        cost = Cost(running, self.database)
        result = await simulator("some", parts=parts, calls=UPLOADS, readings=10)
        while self.database.waiting(self.folder):  # noqa: ASYNC110 - the database has no event for it
            await trio.sleep(0.01)
        return time.perf_counter() - result["begin"], cost.seconds()

    async def _configured(self, client: ApiClient, document: str, name: str) -> list[list[str]]:
        parts = await self._new_parts(client, range(self.parameters.callers), name)
        for part, _ in parts:
            await client.call(APP, "", "update_robot_part", id=part, name="", robot_config_json=document)
        return parts

    async def save(self, running: Running, client: ApiClient, simulator: Load) -> None:
        """Measure saving configurations one after the other while all machines are connected."""
        took, saved = [], {}
        cost = Cost(running, self.database)
        for number in range(SAVES):
            part = self.parts[number % len(self.parts)][0]
            text = json.dumps({"components": [{"name": f"s{number}", "api": "rdk:component:sensor", "model": "fake"}]})
            saved[part] = begin = time.perf_counter()
            await client.call(APP, "", "update_robot_part", id=part, name="", robot_config_json=text)
            took.append(time.perf_counter() - begin)
        used = cost.seconds()
        await trio.sleep(0.5)  # for the last push to arrive
        received = (await simulator("heard"))["heard"]
        until = sorted(received[part] - begin for part, begin in saved.items())
        if until[0] < 0:
            raise RuntimeError("a machine did not receive its configuration")
        print(
            f"{self.database.name}: saved {SAVES} configurations with {len(self.parts)} machines connected: p50/p99 "
            f"{_ms(took)} ms until it is saved, {_ms(until)} ms until the machine has it; {1e3 * used / SAVES:.1f} ms "
            "of processor time each",
            flush=True,
        )

    async def page(self, running: Running) -> None:
        """Measure the page of all machines."""
        async with Channel(running.address) as channel:
            headers = await ApiKey(*self.key).headers(channel)
        took, size = [], 0
        async with httpcore.AsyncConnectionPool() as pool:
            for _ in range(10):
                begin = time.perf_counter()
                result = await pool.request("GET", f"http://{running.address}/", headers=[*headers])
                took.append(time.perf_counter() - begin)
                size = len(result.content)
                if result.status != 200:
                    raise RuntimeError(f"the page of all machines: HTTP status {result.status}")
        print(f"{self.database.name}: page of {len(self.parts)} machines, {size >> 10} KiB: p50/p99 {_ms(took)} ms")

    async def storm(self, simulator: Load) -> None:
        """Restart the cloud and measure how fast all machines reconnect."""
        await simulator.answer()  # all machines have noticed the end
        async with cloud(self.folder, self.database, self.port, self.parameters.source) as running:
            cost = Cost(running, self.database)
            moments = (await simulator.answer())["moments"]
            half, last = (moments[place] - running.ready for place in (len(moments) // 2, -1))
            print(
                f"{self.database.name}: after a restart {len(moments)} machines reconnected within "
                f"{last:.1f} s, half of them within {half:.1f} s ({len(moments) / last:.0f}/s), {cost.percent():.0f} % "
                f"of a core, {cost.memory:.0f} MiB",
                flush=True,
            )

    async def _new_parts(self, client: ApiClient, numbers: range, name: str = "m") -> list[list[str]]:
        """Create machines; return id and secret of each."""
        parts: list[list[str]] = []

        async def create_some(own_numbers: range) -> None:
            for number in own_numbers:
                part = await new_part(client, self.location, f"{name}{number}")
                parts.append([part["id"], part["secret"]])

        async with trio.open_nursery() as nursery:
            for first in range(8):
                nursery.start_soon(create_some, numbers[first::8])
        return parts


def _times(result: dict[str, Any]) -> str:
    return f"{1e3 * result['p50']:.0f}/{1e3 * result['p99']:.0f}" if "p50" in result else "-"


def _ms(took: Sequence[float]) -> str:
    ordered = sorted(took)
    return "/".join(f"{1e3 * ordered[round((len(ordered) - 1) * at)]:.0f}" for at in (0.5, 0.99))


def main(argv: list[str]) -> int:
    """Measure and print the tables."""
    parser = argparse.ArgumentParser(
        prog="python -m bench cloud", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--database", choices=("sqlite", "postgresql"), help="measure only this database")
    parser.add_argument("--machines", type=int, nargs="+", default=[1, 10, 100, 1000])
    parser.add_argument("--seconds", type=float, default=3.0, help="seconds for each figure")
    parts = ("poll", *UNITS, "triggers", "save", "page", "storm")
    parser.add_argument("--only", choices=parts, nargs="+", default=(), help="measure only these parts")
    parser.add_argument("--source", default="", help="folder of another version of the cloud, to compare with")
    options = parser.parse_args(argv)
    parameters = Parameters(options.machines, options.seconds, frozenset(options.only), options.source)
    with databases(options.database) as selected:
        for database in selected:
            with tempfile.TemporaryDirectory() as name:
                trio.run(partial(Bench(parameters, database, Path(name)).run))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
