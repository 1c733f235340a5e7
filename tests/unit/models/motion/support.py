"""A machine in memory with an arm, a gripper and a table, whose motion service plans in this process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import trio

from models.motion.model import BuiltinMotion
from models.motion.motions import Motions
from models.planner.problem import PlanningProblem, Trajectory
from models.planner.solve import plan
from rpc.api.client import ApiClient
from runtime.server.memory import MemoryMachine, open_machine

MOTION = "rdk:service:motion"
START = [0.0, -70.0, 85.0, -100.0, -90.0, 0.0]
TABLE: dict[str, Any] = {
    "name": "table",
    "api": "rdk:component:generic",
    "model": "fake",
    "frame": {"parent": "world", "translation": {"z": -40}, "geometry": {"type": "box", "x": 1600, "y": 1600, "z": 40}},
}
ARM: dict[str, Any] = {
    "name": "arm1",
    "api": "rdk:component:arm",
    "model": "fake",
    "attributes": {"arm-model": "ur5e"},
    "frame": {"parent": "world"},
}
GRIPPER: dict[str, Any] = {
    "name": "grip",
    "api": "rdk:component:gripper",
    "model": "fake",
    "frame": {"parent": "arm1", "translation": {"z": 10}},
}
DOCUMENT: dict[str, Any] = {"components": [ARM, GRIPPER, TABLE]}
DOWN = {"o_z": -1.0, "o_x": 0.0, "o_y": 0.0, "theta": 0.0}


def at(x: float, y: float, z: float, frame: str = "world", **more: Any) -> dict[str, Any]:
    """Return a destination, with the tool down unless `more` says otherwise."""
    return {"reference_frame": frame, "pose": {"x": x, "y": y, "z": z, **DOWN, **more}}


class PlanningHere:
    """A planner without a process; it records its problems, and waits for `gate` first, if that is set."""

    def __init__(self) -> None:
        self.problems: list[PlanningProblem] = []
        self.gate: trio.Event | None = None
        self.asked = trio.Event()

    async def __call__(self, problem: PlanningProblem) -> Trajectory:
        self.problems.append(problem)
        self.asked.set()
        if self.gate is not None:
            await self.gate.wait()
        await trio.lowlevel.checkpoint()
        return plan(problem, None)


class Rig:
    """A machine, a client, and the planner of its motion service."""

    def __init__(self, memory: MemoryMachine) -> None:
        self.memory = memory
        self.client: ApiClient = memory.client()
        host = memory.machine.roster.hosts["rdk:service:motion/builtin"]
        assert isinstance(host.resource, BuiltinMotion)
        self.service = host.resource
        self.service.motions = Motions(self.service)
        self.planner = self.service.motions.planner = PlanningHere()

    async def call(self, method: str, **arguments: Any) -> Any:
        return await self.client.call(MOTION, "builtin", method, **arguments)

    async def arm(self, method: str, name: str = "arm1", **arguments: Any) -> Any:
        return await self.client.call("rdk:component:arm", name, method, **arguments)

    async def pose(self, component: str = "grip", frame: str = "world") -> Any:
        return (await self.call("get_pose", component_name=component, destination_frame=frame))["pose"]


@asynccontextmanager
async def opened(document: dict[str, Any] = DOCUMENT, start: list[float] | None = START) -> AsyncIterator[Rig]:
    """Run a machine in memory, with the arm at `start`."""
    async with open_machine(document) as memory:
        await memory.machine.lifecycle.running.wait()
        rig = Rig(memory)
        if start is not None:
            await rig.arm("move_to_joint_positions", positions=start)
        yield rig
