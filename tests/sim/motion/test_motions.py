"""Random motions of two arms, with stops, callers that leave and arms that fail: nothing keeps moving."""

from __future__ import annotations

import random
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from engine.services.motion import PlanState
from hal.errors import Fault
from hal.sim.faults import FaultPlan
from schema.errors import MachineError
from tests.scope import some_of
from tests.unit.models.motion.support import ARM, GRIPPER, START, TABLE, Rig, at, opened

FAR_ARM: dict[str, Any] = {**ARM, "name": "arm2", "frame": {"parent": "world", "translation": {"x": 2500}}}
DOCUMENT: dict[str, Any] = {"components": [ARM, GRIPPER, TABLE, FAR_ARM]}
STEPS = 12


async def step(rig: Rig, rng: random.Random, results: list[str]) -> None:
    """Begin a motion, and end it in one of several ways."""
    name = rng.choice(["grip", "arm1", "arm2"])
    x = rng.uniform(-650, -250) + (2500 if name == "arm2" else 0)
    destination = at(x, rng.uniform(-450, 450), rng.uniform(150, 500))
    extra = {"max_vel_degs_per_sec": rng.choice([10, 90])}
    way = rng.choice(["arrive", "leave", "stop", "stop all", "fail", "replace"])
    async with trio.open_nursery() as nursery:

        async def move(patience: float = 1e9) -> None:
            try:
                with trio.move_on_after(patience) as scope:
                    await rig.call("move", component_name=name, destination=destination, extra=extra)
                results.append("left" if scope.cancelled_caught else "arrived")
            except MachineError as error:
                results.append(error.message)

        nursery.start_soon(move, rng.uniform(0.05, 2) if way == "leave" else 1e9)
        await trio.sleep(rng.uniform(0, 1.5))
        if way == "stop":
            try:
                await rig.call("stop_plan", component_name=name)
            except MachineError:
                pass  # it has arrived, or was refused
        elif way == "stop all":
            await rig.client.call("viam.robot.v1.RobotService", "", "stop_all")
        elif way == "fail":
            rig.memory.machine.bench.world.faults.inject("arm2" if name == "arm2" else "arm1", FaultPlan(Fault.GONE))
        elif way == "replace":
            nursery.start_soon(move)
    for arm in ("arm1", "arm2"):
        rig.memory.machine.bench.world.faults.clear(arm)


@pytest.mark.parametrize("seed", some_of(3, range(30), 1))
async def test_nothing_keeps_moving(seed: int, autojump_clock: MockClock) -> None:
    rng = random.Random(seed)
    results: list[str] = []
    async with opened(DOCUMENT) as rig:
        await rig.arm("move_to_joint_positions", "arm2", positions=START)
        for _ in range(STEPS):
            await step(rig, rng, results)
            assert not await rig.service.is_moving()
            for name in ("arm1", "arm2"):
                assert not await rig.arm("is_moving", name)
        states = [each["status"]["state"] for each in await rig.call("list_plan_statuses")]
        assert PlanState.IN_PROGRESS.name not in states
        assert len(states) <= len(results)
        assert states.count("SUCCEEDED") == results.count("arrived")
    assert len(results) >= STEPS
