"""Measure the capacity of a cloud: push channels, polls, logs, readings and triggers, on both databases.

`python -m bench cloud [--database sqlite|postgresql] [--machines 1 10 100 1000] [--seconds 3] [--only PART]`

One machine-cloud and one process that simulates the machines run on the same computer. `cost` is the processor time of
the cloud and of PostgreSQL, in percent of one core; `load` is that of the simulating process: near 100 %, it was the
bottleneck, not the cloud. Logs and readings are compared with a bare loop of INSERTs (see bench.cloud_bare). Both
databases wait for the disk on every commit. PostgreSQL is skipped if it is not installed.
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
class Given:
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

    def __init__(self, given: Given, database: Database, folder: Path) -> None:
        self.given = given
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
            async with load(self.port) as told:
                async with cloud(self.folder, self.database, self.port, self.given.source) as running:
                    self.key = (running.facts["key id"], running.facts["key"])
                    self.location = running.facts["location"]
                    async with Channel(running.address, credentials=ApiKey(*self.key)) as channel:
                        client = ApiClient(channel)
                        if self.given.wants("triggers"):
                            await self.triggers(running, client, told, hooks)
                        await self.fleet(running, client, told)
                        if self.given.wants("save"):
                            await self.save(running, client, told)
                        if self.given.wants("page"):
                            await self.page(running)
                    if self.given.wants("storm"):
                        await told.tell("storm")
                if self.given.wants("storm"):
                    await self.storm(told)
            nursery.cancel_scope.cancel()

    # ---- machines

    async def fleet(self, running: Running, client: ApiClient, told: Load) -> None:
        """Measure machines that connect, hold their channel, poll, and call as fast as they are answered."""
        heads = ("machines", "connect/s", "holding", "polls/s", "cost", "a poll", "p50/p99 ms", "load", "MiB")
        print(ROW.format(self.database.name, *heads))
        rates: list[str] = []
        for wanted in self.given.machines:
            new = await self._new_parts(client, range(len(self.parts), wanted))
            self.parts += new
            joined = await told("connect", parts=new)
            holding = Cost(running, self.database)
            await trio.sleep(self.given.seconds / 2)
            held = holding.percent()
            cells = [f"{len(new) / joined['seconds']:.0f}", f"{held:.1f} %"]
            if self.given.wants("poll"):
                cells += await self._poll(running, told)
            memory = Cost(running, self.database).memory
            print(ROW.format("", wanted, *cells, *("-" * (7 - len(cells))), f"{memory:.0f}"), flush=True)
            rates += [await self._flat(running, told, what, wanted) for what in UNITS if self.given.wants(what)]
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
                "against the bare loop",
            )
            print(RATE.format(self.database.name, *heads))
            print("\n".join(rates), flush=True)

    async def _poll(self, running: Running, told: Load) -> list[str]:
        await told("poll", every=EVERY, seconds=EVERY)  # the first answer: all machines have signed in
        cost = Cost(running, self.database)
        polled = await told.answer()
        used, count = cost.seconds(), polled["calls"]
        if polled["refused"] or not count:
            raise RuntimeError(f"polls were refused: {polled['refused']}")
        return [
            f"{count / (EVERY + polled['late']):.1f}",
            f"{cost.percent():.1f} %",
            f"{1e3 * used / count:.2f} ms",
            _times(polled),
            f"{100 * polled['busy']:.0f} %",
        ]

    async def _flat(self, running: Running, told: Load, what: str, callers: int) -> str:
        each, unit = UNITS[what]
        seconds = self.given.seconds
        cost = Cost(running, self.database)
        found = await told("flat", what=what, callers=callers, seconds=seconds)
        used, percent = cost.seconds(), cost.percent()
        if found["refused"]:
            raise RuntimeError(f"calls were refused: {found['refused']}")
        rate = found["calls"] * each / found["seconds"]
        beside = ""
        if what != "config":
            alone = bare(self.database.url, self.folder, what, each, min(1.0, seconds / 2))
            beside = f"{rate / alone:.2f} of {alone:,.0f}/s"
        spread = f"{found['least']}..{found['most']}"  # fewest and most calls of a machine
        call = f"{1e3 * used / found['calls']:.2f} ms" if found["calls"] else "-"
        cells = (
            f"{rate:,.0f}",
            _times(found),
            spread,
            f"{percent:.0f} %",
            call,
            f"{100 * found['busy']:.0f} %",
            beside,
        )
        return RATE.format("", callers, unit, *cells)

    # ---- other measurements

    async def triggers(self, running: Running, client: ApiClient, told: Load, hooks: Hooks) -> None:
        """Measure uploads of ten readings for conditional triggers of which one fires, and uploads that all fire."""
        print(f"{self.database.name}: triggers; {UPLOADS} uploads of 10 readings from {self.given.callers} machines")
        for count in (1, 10, 100):
            url = f"http://127.0.0.1:{hooks.port}/"
            parts = await self._configured(client, triggers_of(count, url, cooldown=3600), f"t{count}-")
            before = hooks.count
            seconds, used = await self._evaluated(running, told, parts)
            print(
                f"{count:>5} conditions for each part: {UPLOADS / seconds:7.0f} uploads/s, "
                f"{10 * UPLOADS * count / seconds:10,.0f} conditions looked at with a reading/s, "
                f"{1e3 * used / UPLOADS:6.2f} ms for an upload; {hooks.count - before} webhooks, the others within "
                "the cooldown",
                flush=True,
            )
        parts = await self._configured(client, triggers_of(1, url, cooldown=0), "every-")
        before = hooks.count
        begin = time.perf_counter()
        cost = Cost(running, self.database)
        await self._evaluated(running, told, parts)
        with trio.fail_after(120):
            await hooks.until(before + UPLOADS)
        seconds = time.perf_counter() - begin
        print(
            f"      every upload fires: {UPLOADS / seconds:7.0f} webhooks/s received, "
            f"{1e3 * cost.seconds() / UPLOADS:.2f} ms for an upload with its webhook",
            flush=True,
        )

    async def _evaluated(self, running: Running, told: Load, parts: Sequence[Sequence[str]]) -> tuple[float, float]:
        """Return the seconds until all uploads were evaluated, and the processor time."""
        cost = Cost(running, self.database)
        found = await told("some", parts=parts, calls=UPLOADS, readings=10)
        while self.database.waiting(self.folder):  # noqa: ASYNC110 - it tells nobody outside
            await trio.sleep(0.01)
        return time.perf_counter() - found["begin"], cost.seconds()

    async def _configured(self, client: ApiClient, document: str, name: str) -> list[list[str]]:
        parts = await self._new_parts(client, range(self.given.callers), name)
        for part, _ in parts:
            await client.call(APP, "", "update_robot_part", id=part, name="", robot_config_json=document)
        return parts

    async def save(self, running: Running, client: ApiClient, told: Load) -> None:
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
        heard = (await told("heard"))["heard"]
        until = sorted(heard[part] - begin for part, begin in saved.items())
        if until[0] < 0:
            raise RuntimeError("a machine did not hear of its configuration")
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
                found = await pool.request("GET", f"http://{running.address}/", headers=[*headers])
                took.append(time.perf_counter() - begin)
                size = len(found.content)
                if found.status != 200:
                    raise RuntimeError(f"the page of all machines: HTTP status {found.status}")
        print(f"{self.database.name}: page of {len(self.parts)} machines, {size >> 10} KiB: p50/p99 {_ms(took)} ms")

    async def storm(self, told: Load) -> None:
        """Restart the cloud and measure how fast all machines reconnect."""
        await told.answer()  # all machines have noticed the end
        async with cloud(self.folder, self.database, self.port, self.given.source) as running:
            cost = Cost(running, self.database)
            moments = (await told.answer())["moments"]
            half, last = (moments[place] - running.ready for place in (len(moments) // 2, -1))
            print(
                f"{self.database.name}: after a restart {len(moments)} machines have connected again within "
                f"{last:.1f} s, half of them within {half:.1f} s ({len(moments) / last:.0f}/s), {cost.percent():.0f} % "
                f"of a core, {cost.memory:.0f} MiB",
                flush=True,
            )

    async def _new_parts(self, client: ApiClient, numbers: range, name: str = "m") -> list[list[str]]:
        """Create machines; return id and secret of each."""
        made: list[list[str]] = []

        async def some(mine: range) -> None:
            for number in mine:
                part = await new_part(client, self.location, f"{name}{number}")
                made.append([part["id"], part["secret"]])

        async with trio.open_nursery() as nursery:
            for first in range(8):
                nursery.start_soon(some, numbers[first::8])
        return made


def _times(found: dict[str, Any]) -> str:
    return f"{1e3 * found['p50']:.0f}/{1e3 * found['p99']:.0f}" if "p50" in found else "-"


def _ms(took: Sequence[float]) -> str:
    ordered = sorted(took)
    return "/".join(f"{1e3 * ordered[round((len(ordered) - 1) * at)]:.0f}" for at in (0.5, 0.99))


def main(argv: list[str]) -> int:
    """Measure and print the tables."""
    parser = argparse.ArgumentParser(
        prog="python -m bench cloud", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--database", choices=("sqlite", "postgresql"), help="one of both")
    parser.add_argument("--machines", type=int, nargs="+", default=[1, 10, 100, 1000])
    parser.add_argument("--seconds", type=float, default=3.0, help="for each figure")
    parts = ("poll", *UNITS, "triggers", "save", "page", "storm")
    parser.add_argument("--only", choices=parts, nargs="+", default=(), help="some of all")
    parser.add_argument("--source", default="", help="folder of another version of the cloud, to compare with")
    options = parser.parse_args(argv)
    given = Given(options.machines, options.seconds, frozenset(options.only), options.source)
    with databases(options.database) as found:
        for database in found:
            with tempfile.TemporaryDirectory() as name:
                trio.run(partial(Bench(given, database, Path(name)).run))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
