"""How positions are passed to arms: the calls that a driver has, and stopping it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import pytest
import structlog
import trio
from trio.testing import MockClock

from engine.components.motion.arm import Arm, MoveOptions
from engine.components.motion.kinematics import Kinematics
from engine.components.motion.motor import Motor
from engine.geometry.chain import SIX_AXIS
from engine.geometry.sva import kinematics
from engine.resource import Context, Extra, Resource, Unsupported
from hal.sim import World
from hal.sim.hardware import SimHardware
from models.motion.mover import MAX_POSITIONS, execute, interpolated, joints_of
from schema.errors import ErrorKind, MachineError
from schema.names import ResourceName

POSITIONS = [[0.0] * 6, [20.0, 0, 0, 0, 0, 0], [20.0, 7.0, 0, 0, 0, 0]]


class BareArm(Arm):
    """An arm that moves one posture at a time, and does not stop by itself."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.calls: list[Any] = []
        self.takes = 0.1

    async def move_to_joint_positions(self, positions: Sequence[float], *, extra: Extra = None) -> None:
        self.calls.append(list(positions))
        await trio.sleep(self.takes)

    async def stop(self, *, extra: Extra = None) -> None:
        self.calls.append("stop")


class WaypointArm(BareArm):
    """An arm that moves through positions, unless `refusal` says why not."""

    refusal: MachineError | None = None

    async def move_through_joint_positions(
        self, positions: Sequence[Sequence[float]], options: MoveOptions | None = None, *, extra: Extra = None
    ) -> None:
        if self.refusal is not None:
            raise self.refusal
        self.calls.append((len(positions), options))
        await trio.sleep(self.takes)

    async def get_kinematics(
        self, include_collision_meshes: bool = False, include_visual_meshes: bool = False, *, extra: Extra = None
    ) -> Kinematics:
        return kinematics(SIX_AXIS)

    async def get_joint_positions(self, *, extra: Extra = None) -> Sequence[float]:
        return [0.0] * 5


def made(cls: type[Resource]) -> Any:
    world = World()
    name = ResourceName(cls.API, "it")
    return cls(Context(name, None, {}, world, SimHardware(world), structlog.get_logger("test")))


async def test_an_arm_without_waypoints_moves_from_one_to_the_next(autojump_clock: MockClock) -> None:
    arm = made(BareArm)
    await execute(arm, POSITIONS, None)
    assert arm.calls == POSITIONS[1:]


async def test_waypoints_are_close_together(autojump_clock: MockClock) -> None:
    arm = made(WaypointArm)
    await execute(arm, POSITIONS, None)
    assert arm.calls == [(5, None)]
    await execute(arm, POSITIONS, 10.0)
    assert arm.calls[1] == (5, MoveOptions(10.0))


async def test_an_arm_that_refuses_waypoints_moves_from_one_to_the_next(autojump_clock: MockClock) -> None:
    arm = made(WaypointArm)
    arm.refusal = Unsupported("no waypoints")
    await execute(arm, POSITIONS, None)
    assert arm.calls == POSITIONS[1:]
    with pytest.raises(Unsupported):  # it would be faster than the caller allows
        await execute(arm, POSITIONS, 10.0)
    arm.refusal = MachineError("protective stop", kind=ErrorKind.PRECONDITION)
    with pytest.raises(MachineError, match="protective"):
        await execute(arm, POSITIONS, None)
    assert arm.calls[-1] == "stop"


@pytest.mark.parametrize("cls", [BareArm, WaypointArm])
async def test_an_arm_is_stopped_when_its_motion_is_cancelled(autojump_clock: MockClock, cls: type[BareArm]) -> None:
    arm = made(cls)
    arm.takes = 100.0
    with trio.move_on_after(1):
        await execute(arm, POSITIONS, None)
    assert arm.calls[-1] == "stop"


def test_positions_in_between_are_on_the_way() -> None:
    dense = interpolated(POSITIONS)
    assert dense[0] == POSITIONS[0]
    assert dense[-1] == POSITIONS[-1]
    assert POSITIONS[1] in dense
    assert max(abs(a - b) for x, y in itertools.pairwise(dense) for a, b in zip(x, y, strict=True)) < 10
    assert len(interpolated([[0.0], [1e9]])) <= MAX_POSITIONS + 1
    assert interpolated([[0.0]]) == [[0.0]]


async def test_a_driver_whose_joints_do_not_fit_its_kinematics_is_refused(autojump_clock: MockClock) -> None:
    with pytest.raises(MachineError, match="reports 5 joint positions, but its kinematics have 6"):
        await joints_of(made(WaypointArm), "arm1")
    with pytest.raises(MachineError, match="has no joints"):
        await joints_of(made(Motor), "motor1")
