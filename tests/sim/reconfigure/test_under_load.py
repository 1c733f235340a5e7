"""A thousand configuration changes during calls: unchanged resources keep answering; no dead driver is ever used."""

from __future__ import annotations

import copy
import gc
import random
from collections import Counter
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from runtime.server.memory import MemoryMachine, open_machine
from schema.errors import ErrorKind, MachineError
from tests.scope import some_of
from tests.sim.reconfigure.models import MODEL, Traced, Witness, registry

CHANGES = 1000
UNTOUCHED = ("fixed", "fixed-base")
EXPECTED = {ErrorKind.UNAVAILABLE, ErrorKind.NOT_FOUND}


def entry(name: str, kind: str = "sensor", **attributes: Any) -> dict[str, Any]:
    return {"name": name, "api": f"rdk:component:{kind}", "model": str(MODEL), "attributes": attributes}


class Bench:
    """A document with random changes; some of its entries never change."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.entries = {"fixed-base": entry("fixed-base"), "fixed": entry("fixed", "motor", needs=["fixed-base"])}
        self.born = 0
        self.done: Counter[str] = Counter()
        for _ in range(6):
            self.add()

    def document(self, revision: int) -> dict[str, Any]:
        return {"components": list(self.entries.values()), "revision": str(revision)}

    def touchable(self) -> list[str]:
        return [name for name in self.entries if name not in UNTOUCHED]

    def add(self) -> None:
        name = f"r{self.born}"
        self.born += 1
        needs = self.random.sample(list(self.entries), k=min(len(self.entries), self.random.randrange(3)))
        likes = self.random.sample(list(self.entries), k=min(len(self.entries), self.random.randrange(2)))
        self.entries[name] = entry(
            name,
            self.random.choice(["sensor", "motor"]),
            needs=needs,
            likes=[like for like in likes if like not in needs],
            start_seconds=self.random.choice([0.0, 0.005, 0.05]),
            stop_seconds=self.random.choice([0.0, 0.005, 0.05]),
        )

    def change(self) -> None:
        names = self.touchable()
        options = ["add"] if len(names) < 4 else ["add", "remove", "change", "change", "rename", "break", "rewire"]
        what = self.random.choice(options if len(names) < 12 else options[1:])
        self.done[what] += 1
        if what == "add":
            self.add()
            return
        name = self.random.choice(names)
        first = self.entries[name]
        if what == "remove":
            del self.entries[name]
        elif what == "change":
            first["model"] = str(MODEL)
            first["attributes"] = {**first["attributes"], "value": self.random.randrange(100)}
        elif what == "rename":
            del self.entries[name]
            self.entries[f"r{self.born}"] = {**first, "name": f"r{self.born}"}
            self.born += 1
        elif what == "break":
            how = self.random.choice(["model", "attribute", "cycle", "missing"])
            if how == "model":
                first["model"] = "test:traced:nothing"
            else:
                bad: dict[str, Any] = {
                    "attribute": {"value": "text"},
                    "cycle": {"needs": [name]},
                    "missing": {"needs": ["nowhere"]},
                }
                first["attributes"] = {**first["attributes"], **bad[how]}
        else:
            others = [other for other in self.entries if other != name]
            needs = self.random.sample(others, k=self.random.randrange(3))
            first["model"] = str(MODEL)
            first["attributes"] = {**first["attributes"], "needs": needs, "likes": [], "value": 0}


async def call_for_ever(memory: MemoryMachine, bench: Bench, outcomes: Counter[Any], seed: int) -> None:
    """Call random resources, including ones that are not configured."""
    rng = random.Random(seed)
    client = memory.client()
    while True:
        name = rng.choice([*bench.entries, "nobody"])
        kind, method = rng.choice([("sensor", "get_readings"), ("motor", "is_moving")])
        try:
            await client.call(f"rdk:component:{kind}", name, method)
            outcomes["answered"] += 1
        except MachineError as error:
            if error.kind not in EXPECTED:
                raise
            outcomes[error.kind] += 1
        await trio.sleep(rng.random() * 0.02)


async def call_untouched(memory: MemoryMachine, outcomes: Counter[Any]) -> None:
    """Call a resource that never changes; every call must be answered."""
    client = memory.client()
    while True:
        await client.call("rdk:component:motor", "fixed", "is_moving")
        await client.call("rdk:component:sensor", "fixed-base", "get_readings")
        names = await client.call("viam.robot.v1.RobotService", "", "resource_names")
        assert "rdk:component:motor/fixed" in names
        outcomes["untouched"] += 1
        await trio.sleep(0.005)


@pytest.mark.slow
@pytest.mark.parametrize("seed", some_of(1, [1, 2], 20))
async def test_a_thousand_changes_under_load(seed: int, autojump_clock: MockClock) -> None:
    witness, bench, outcomes = Witness(), Bench(seed), Counter[Any]()
    async with open_machine(bench.document(0), registry=registry(witness)) as memory:
        await settled(memory)
        fixed = memory.machine.roster.find("fixed").resource
        async with trio.open_nursery() as nursery:
            for number in range(5):
                nursery.start_soon(call_for_ever, memory, bench, outcomes, seed * 100 + number)
            nursery.start_soon(call_untouched, memory, outcomes)
            for revision in range(1, CHANGES + 1):
                bench.change()
                memory.write(bench.document(revision))
                await trio.sleep(bench.random.choice([0.0, 0.001, 0.02, 0.2]))
            await trio.sleep(2)
            nursery.cancel_scope.cancel()
        await settled(memory)
        assert witness.violations == []
        assert memory.machine.roster.find("fixed").resource is fixed  # never rebuilt
        assert min(bench.done[what] for what in ("add", "remove", "change", "rename", "break", "rewire")) > 50
        assert outcomes["untouched"] > 100
        assert outcomes["answered"] > 500
        assert outcomes[ErrorKind.UNAVAILABLE] > 50
        assert memory.machine.configured.status.revision == str(CHANGES)
        check_observed(memory, bench)
        del fixed
    gc.collect()
    assert witness.living == set()


def check_observed(memory: MemoryMachine, bench: Bench) -> None:
    """Check that exactly the resources of the last document run."""
    status = memory.machine.status()
    assert {item.name.partition("/")[2] for item in status.resources} == set(bench.entries)
    for resource in status.resources:
        if resource.state != "ready":
            assert resource.reason, resource


async def settled(memory: MemoryMachine) -> None:
    await wait_all_tasks_blocked()
    with trio.fail_after(600):
        await memory.graph.settled()


async def test_no_task_is_left(autojump_clock: MockClock) -> None:
    """After many changes and their reversal, there are as many tasks and drivers as at the start."""
    witness = Witness()
    bench = Bench(7)
    start = copy.deepcopy(bench.document(0))
    async with open_machine(start, registry=registry(witness)) as memory:
        await settled(memory)
        tasks = trio.lowlevel.current_statistics().tasks_living
        gc.collect()
        built, objects = len(witness.built), len(gc.get_objects())
        for revision in range(1, 201):
            bench.change()
            memory.write(bench.document(revision))
            await trio.sleep(0.05)
        memory.write({**start, "revision": "last"})
        await trio.sleep(30)
        await settled(memory)
        gc.collect()
        assert trio.lowlevel.current_statistics().tasks_living == tasks
        assert len(witness.built) == built
        assert all(isinstance(item, Traced) and item.alive for item in witness.built)
        assert len(gc.get_objects()) < objects * 1.02
    assert witness.violations == []
