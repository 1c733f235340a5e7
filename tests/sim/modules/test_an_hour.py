"""Simulate an hour of modules that die, stop, start slowly, hang or use too much memory, from a seed in virtual time.

At every moment, other resources answer every call, no module has two processes, and every call to a module's
resource returns. Once the faults end, every module becomes ready again, and no process is left when the machine stops.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import pytest
import trio

from rpc.api.client import ApiClient
from runtime.parts.modules.memory import Behaviour, MemoryProcesses
from runtime.server.memory import MemoryMachine
from schema.errors import ErrorKind, MachineError
from tests.unit.runtime.parts.modules.support import SENSOR, entry, machine, ready, sensor, until

HOUR = 3600.0
MODULES = ("m0", "m1", "m2")
PLAIN = ("plain0", "plain1")
ALLOWED = {ErrorKind.UNAVAILABLE, ErrorKind.NOT_FOUND}  # NOT_FOUND while a module rebuilds its resources


def document() -> dict[str, object]:
    return {
        "modules": [entry(name, watchdog="20s", limits={"memory_mb": 100}) for name in MODULES],
        "components": [
            *(sensor(name, "fake") for name in PLAIN),
            *(sensor(f"{name}{part}", f"acme:{name}:sensor") for name in MODULES for part in "ab"),
        ],
    }


class Trouble:
    """Random behavior of module processes and random faults, from one seed."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.over = False
        self.done: Counter[str] = Counter()

    def behave(self, name: str) -> Behaviour:
        normal = Behaviour(models=(f"acme:{name}:sensor",))
        kind = (
            "normal" if self.over else self.random.choice(["normal"] * 4 + ["slow", "never", "builds", "dies", "fat"])
        )
        self.done[kind] += 1
        if kind == "slow":
            normal.start_after = self.random.uniform(0, 60)
        elif kind == "never":
            normal.ready = False
        elif kind == "builds":
            normal.add_takes = self.random.uniform(0, 150)
        elif kind == "dies":
            normal.exit_after = self.random.expovariate(1 / 30)
        elif kind == "fat":
            normal.memory = 200 * 1024 * 1024
        return normal

    async def make(self, processes: MemoryProcesses) -> None:
        while not self.over:
            await trio.sleep(self.random.expovariate(1 / 15))
            if not processes.running:
                continue
            process = self.random.choice(list(processes.running.values()))
            what = self.random.choice(["kill", "exit", "stop", "go on", "go on"])
            self.done[what] += 1
            if what == "kill":
                process.end(-9)
            elif what == "exit":
                process.end(self.random.randrange(3))
            elif what == "stop":
                process.freeze()
            else:
                process.thaw()


async def watch_plain(client: ApiClient, name: str, calls: Counter[str]) -> None:
    while True:
        with trio.fail_after(1):
            assert await client.call(SENSOR, name, "get_readings") == {"a": 1, "b": 2, "c": 3}
        calls[name] += 1
        await trio.sleep(1)


async def watch_modular(client: ApiClient, name: str, calls: Counter[str]) -> None:
    while True:
        with trio.fail_after(20 + 120 + 60):  # seconds: watchdog, building, terminating the process
            try:
                await client.call(SENSOR, name, "get_readings")
                calls["answers"] += 1
            except MachineError as error:
                if error.kind not in ALLOWED:
                    raise
                calls["refusals"] += 1
        await trio.sleep(3)


async def watch_processes(processes: MemoryProcesses) -> None:
    while True:
        owners = Counter(address.rpartition("-")[0] for address in processes.running)
        assert all(count == 1 for count in owners.values()), owners
        assert all(process.connections <= 2 for process in processes.running.values())
        await trio.sleep(0.7)


def nothing_is_stuck(memory: MemoryMachine) -> bool:
    names = [f"{name}{part}" for name in MODULES for part in "ab"]
    return ready(memory, *PLAIN, *names)


@pytest.mark.parametrize("seed", [0])
async def test_an_hour(autojump_clock: object, tmp_path: Path, seed: int) -> None:
    trouble, calls = Trouble(seed), Counter[str]()
    home = {"MACHINE_HOME": str(tmp_path), "VIAM_MODULE_STARTUP_TIMEOUT": "90s"}
    async with machine(document(), trouble.behave, home) as (memory, processes):
        await until(lambda: ready(memory, *PLAIN))
        client = memory.client()
        async with trio.open_nursery() as nursery:
            for name in PLAIN:
                nursery.start_soon(watch_plain, client, name, calls)
            for name in MODULES:
                nursery.start_soon(watch_modular, client, f"{name}a", calls)
            nursery.start_soon(watch_processes, processes)
            nursery.start_soon(trouble.make, processes)
            await trio.sleep(HOUR)
            trouble.over = True
            for process in list(processes.running.values()):
                process.thaw()
                process.end(0)  # the next processes behave normally
            await trio.sleep(1)
            await until(lambda: nothing_is_stuck(memory), 400)
            nursery.cancel_scope.cancel()
        assert all(calls[name] > HOUR / 2.1 for name in PLAIN), calls
        assert calls["answers"] > 200, calls
        assert calls["refusals"] > 20, calls
        assert min(trouble.done.values()) > 0
        assert processes.starts > 30
        assert all(module.state == "ready" for module in memory.machine.status().modules), (
            memory.machine.status().modules
        )
    assert not processes.running
