"""Reconfiguration over real sockets: untouched resources answer every call, and the process does not grow."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import trio

from schema.errors import ErrorKind, MachineError
from tests.e2e.server.process import Server, server

MOTOR = "rdk:component:motor"
ROBOT = "viam.robot.v1.RobotService"
CHANGES = 60
GROWTH = 12 * 2**20  # bytes; allocator noise is some MiB, a leaked driver per change would be seen by its descriptors


def entry(name: str, model: str = "fake") -> dict[str, Any]:
    return {"name": name, "api": MOTOR, "model": model}


def document(names: list[str], revision: int) -> dict[str, Any]:
    broken = [entry("broken", "nothing")] if revision % 2 else []
    entries = [entry("fixed"), *(entry(name) for name in names), *broken]
    return {"network": {"bind_address": "localhost:0"}, "components": entries, "revision": str(revision)}


async def in_force(client: Any, revision: int) -> None:
    while (await client.call(ROBOT, "", "get_machine_status"))["config"]["revision"] != str(revision):  # noqa: ASYNC110
        await trio.sleep(0.01)  # the other process tells of no event


async def call_fixed(running: Server, answered: list[int]) -> None:
    async with running.client() as client:
        while True:
            await client.call(MOTOR, "fixed", "is_moving")
            answered[0] += 1


async def call_others(running: Server) -> None:
    rng = random.Random(3)
    async with running.client() as client:
        while True:
            try:
                await client.call(MOTOR, f"m{rng.randrange(6)}", "get_properties")
            except MachineError as error:
                if error.kind not in (ErrorKind.NOT_FOUND, ErrorKind.UNAVAILABLE):
                    raise


async def test_changes_while_clients_call(tmp_path: Path) -> None:
    rng = random.Random(5)
    answered = [0]
    async with server(tmp_path, document([], 0)) as running, running.client() as client:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(call_fixed, running, answered)
            nursery.start_soon(call_others, running)
            with trio.fail_after(60):
                for revision in range(1, CHANGES + 1):
                    running.write(document(rng.sample([f"m{n}" for n in range(6)], k=rng.randrange(6)), revision))
                    await in_force(client, revision)
                    if revision == CHANGES // 3:
                        descriptors, memory = running.descriptors(), running.memory()
            assert running.descriptors() == descriptors
            assert running.memory() < memory + GROWTH
            nursery.cancel_scope.cancel()
        assert answered[0] > CHANGES
        assert await running.stop() == 0
        assert "Traceback" not in running.log()
