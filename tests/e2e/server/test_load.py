"""Reconfiguration over real sockets: unchanged resources answer every call, no ended driver is used, no memory leaks.

`MACHINE_LOAD_CHANGES=1000 pytest tests/e2e/server/test_load.py` makes more changes; 1,000 take about a minute.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import trio

from schema.errors import ErrorKind, MachineError
from tests.e2e.server.process import Server, server

MOTOR = "rdk:component:motor"
ROBOT = "viam.robot.v1.RobotService"
MODEL = "test:server:linked"
CHANGES = int(os.environ.get("MACHINE_LOAD_CHANGES", "100"))
WARM = CHANGES // 4  # changes before the first measurement: by then allocators have seen every kind of change
GROWTH = 12 * 2**20  # bytes; allocator noise is some MiB, and descriptors would reveal a driver leaked per change

Entries = dict[str, dict[str, Any]]


def entry(name: str, **attributes: Any) -> dict[str, Any]:
    return {"name": name, "api": MOTOR, "model": MODEL, "attributes": attributes}


class Changes:
    """A document that changes at random: its entries by name, some of which depend on others."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.entries: Entries = {}
        self.done: Counter[str] = Counter()
        self.made = 0

    def step(self) -> None:
        names = sorted(self.entries)
        kinds = ["add"] if len(names) < 3 else ["add", "remove", "change", "rename", "break", "mend"]
        kind = self.rng.choice(kinds if len(names) < 9 else kinds[1:])
        name = self.rng.choice(names) if names else ""
        if kind == "add":
            self.made += 1
            self.entries[f"m{self.made}"] = entry(f"m{self.made}", needs=self.rng.sample(names, k=min(2, len(names))))
        elif kind == "remove":
            del self.entries[name]
        elif kind == "change":
            self.entries[name]["attributes"]["trick"] = f"none-{self.rng.random()}"
        elif kind == "rename":
            self.made += 1
            self.entries[f"r{self.made}"] = {**self.entries.pop(name), "name": f"r{self.made}"}
        elif kind == "break":
            self.entries[name]["attributes"]["needs"] = self.rng.choice(["no list", ["nobody"], [name]])
        else:
            self.entries[name]["attributes"]["needs"] = []
        self.done[kind] += 1

    def document(self, revision: int) -> dict[str, Any]:
        entries = [entry("fixed"), entry("near", needs=["fixed"]), *self.entries.values()]
        return {"network": {"bind_address": "localhost:0"}, "components": entries, "revision": str(revision)}


async def in_force(client: Any, revision: int) -> None:
    while (await client.call(ROBOT, "", "get_machine_status"))["config"]["revision"] != str(revision):  # noqa: ASYNC110
        await trio.sleep(0.005)  # the other process sends no events


async def call_untouched(running: Server, name: str, answered: Counter[str]) -> None:
    async with running.client() as client:
        while True:
            await client.call(MOTOR, name, "is_moving")
            answered[name] += 1


async def call_others(running: Server, changes: Changes) -> None:
    rng = random.Random(3)
    async with running.client() as client:
        while True:
            try:
                await client.call(MOTOR, rng.choice([*changes.entries, "gone"]), "is_moving")
            except MachineError as error:
                if error.kind not in (ErrorKind.NOT_FOUND, ErrorKind.UNAVAILABLE):
                    raise


@pytest.mark.limit(300 + 5 * CHANGES)
async def test_changes_while_clients_call(tmp_path: Path) -> None:
    changes, answered, events = Changes(5), Counter[str](), tmp_path / "events"
    env = {"MACHINE_MODELS": "tests.e2e.server.drivers:Linked", "TEST_EVENTS": str(events)}
    async with server(tmp_path, changes.document(0), env=env) as running, running.client() as client:
        await in_force(client, 0)
        async with trio.open_nursery() as nursery:
            for name in ("fixed", "near"):
                nursery.start_soon(call_untouched, running, name, answered)
            nursery.start_soon(call_others, running, changes)
            descriptors = memory = 0
            with trio.fail_after(30 + CHANGES):
                for revision in range(1, CHANGES + 1):
                    changes.step()
                    running.write(changes.document(revision))
                    await in_force(client, revision)
                    if revision == WARM:
                        descriptors, memory = running.descriptors(), running.memory()
            assert running.descriptors() == descriptors
            assert running.memory() < memory + GROWTH
            nursery.cancel_scope.cancel()
        print(dict(changes.done), dict(answered), running.memory() - memory)
        assert len(changes.done) == 6
        assert min(answered.values()) > CHANGES
        assert await running.stop() == 0
        assert "Traceback" not in running.log()
    assert not events.exists(), "a driver was used after it, or what it needs, had ended"
