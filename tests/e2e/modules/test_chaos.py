"""Real modules that are killed, stopped, slow to start, print garbage, leak memory and exit at random.

MACHINE_CHAOS_SECONDS is the duration (20 by default), MACHINE_CHAOS_SEED the seed.
"""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import psutil
import pytest
import trio

from rpc.api.client import ApiClient
from schema.errors import ErrorKind, MachineError
from tests.e2e.modules.support import PLAIN, SENSOR, component, machine, program, readings, until, until_ready
from tests.e2e.server.process import Server

SECONDS = float(os.environ.get("MACHINE_CHAOS_SECONDS", "20"))
SEED = int(os.environ.get("MACHINE_CHAOS_SEED", "1"))
MODULES: dict[str, dict[str, Any]] = {
    "calm": {},
    "killed": {},
    "stopped": {"watchdog": "3s"},
    "slow": {"env": {"SLOW_START": "2"}},
    "noisy": {"env": {"GARBAGE": "1"}},
    "leaking": {"limits": {"memory_mb": 200}},
    "exiting": {"env": {"EXIT_WITHIN": "2 12"}},
}
STEADY = ("calm", "noisy")
ANSWER_LIMIT = 30.0  # seconds; the slowest answer is printed


def document(folder: Path) -> dict[str, Any]:
    return {
        "modules": [
            {
                "name": name,
                "executable_path": program(folder, name),
                **entry,
                "env": {"FAMILY": name, **entry.get("env", {})},
            }
            for name, entry in MODULES.items()
        ],
        "components": [
            component("plain", SENSOR, "fake"),
            *(component(name, SENSOR, f"acme:{name}:thermometer") for name in MODULES),
        ],
    }


class Watch:
    """Observations of the run."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.slowest = 0.0
        self.most_descriptors = 0

    async def steady(self, client: ApiClient, name: str) -> None:
        """Check that a resource without faults answers every call."""
        while True:
            began = trio.current_time()
            with trio.fail_after(ANSWER_LIMIT):
                answer = await readings(client, name)
            assert answer == PLAIN or answer["temperature_c"]
            self.slowest = max(self.slowest, trio.current_time() - began)
            self.calls[name] += 1
            await trio.sleep(0.02)

    async def troubled(self, client: ApiClient, name: str) -> None:
        """Check that a resource of a faulty module answers or reports an error."""
        while True:
            with trio.fail_after(60):
                try:
                    await readings(client, name)
                    if name == "leaking":
                        await client.call(SENSOR, name, "do_command", command={"do": "leak", "mb": 4})
                    self.calls[name] += 1
                except MachineError as error:
                    if error.kind is not ErrorKind.UNAVAILABLE and error.kind is not ErrorKind.NOT_FOUND:
                        raise
                    self.refused[name] += 1
            await trio.sleep(0.05)

    async def processes(self, server: Server) -> None:
        """Check that no module has two processes, and that the server's descriptors stay few."""
        while True:
            before = processes_of_modules(server)
            self.most_descriptors = max(self.most_descriptors, server.descriptors())
            await trio.sleep(0.3)
            still = processes_of_modules(server)  # without processes that ended since
            assert not {name for name in still if len(still[name] & before[name]) > 1}, (before, still)


def children(server: Server) -> list[psutil.Process]:
    return psutil.Process(server.process.pid).children()


def module_of(process: psutil.Process) -> str:
    """Return the name of the module that a process runs; empty if it has just ended."""
    try:
        return process.environ().get("VIAM_MODULE_NAME", "")
    except psutil.Error:
        return ""


def processes_of_modules(server: Server) -> dict[str, set[int]]:
    """Return the ids of the processes of each module."""
    values: dict[str, set[int]] = {name: set() for name in MODULES}
    for process in children(server):
        if (name := module_of(process)) in values:
            values[name].add(process.pid)
    return values


async def make_trouble(server: Server, random: Random) -> None:
    while True:
        await trio.sleep(random.uniform(0.3, 1.5))
        name = random.choice(("killed", "killed", "stopped", "slow", "leaking"))
        for process in (child for child in children(server) if module_of(child) == name):
            with suppress(psutil.NoSuchProcess):  # it has just ended on its own
                if name == "stopped":
                    process.send_signal(signal.SIGSTOP)
                    if random.random() < 0.5:
                        await trio.sleep(random.uniform(0.1, 1.0))
                        process.send_signal(signal.SIGCONT)
                else:
                    process.kill()


@pytest.mark.limit(300 + 2 * SECONDS)
async def test_other_resources_answer_every_call_and_nothing_is_orphaned(tmp_path: Path) -> None:
    watch, environment = Watch(), {"TMPDIR": str(tmp_path)}
    async with machine(tmp_path, document(tmp_path), **environment) as (server, client):
        await until_ready(client, "plain", *STEADY, "killed", "stopped", "leaking")
        before, mine = server.descriptors(), set(tmp_path.glob("machine-module-*/*.sock"))
        assert len(mine) <= len(MODULES) + 1
        async with trio.open_nursery() as nursery:
            for name in ("plain", *STEADY):
                nursery.start_soon(watch.steady, client, name)
            for name in MODULES.keys() - set(STEADY):
                nursery.start_soon(watch.troubled, client, name)
            nursery.start_soon(watch.processes, server)
            nursery.start_soon(make_trouble, server, Random(SEED))
            await trio.sleep(SECONDS)
            nursery.cancel_scope.cancel()
        await until_ready(client, "plain", *(MODULES.keys() - {"exiting"}), seconds=60)
        await until(lambda: _few(server, before + 12), message=f"{server.descriptors()} descriptors, {before} before")
        assert len(set(tmp_path.glob("machine-module-*/*.sock"))) <= len(MODULES) + 1
        last = [child.pid for child in psutil.Process(server.process.pid).children(recursive=True)]
        server.process.terminate()
        with trio.fail_after(60):
            assert await server.process.wait() == 0
    assert not [pid for pid in last if psutil.pid_exists(pid)]
    assert not list(tmp_path.glob("machine-module-*"))
    assert all(watch.calls[name] > SECONDS for name in ("plain", *STEADY)), watch.calls
    assert watch.refused["killed"]
    figures = {
        "seconds": SECONDS,
        "answered": dict(watch.calls),
        "refused": dict(watch.refused),
        "slowest_ms": round(watch.slowest * 1000),
        "descriptors": [before, watch.most_descriptors],
        "starts": server.log().count("module started"),
    }
    print(json.dumps(figures))


async def _few(server: Server, most: int) -> bool:
    return server.descriptors() <= most
