"""What a motion moves: an arm or a gantry, with its kinematics and current positions."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from engine import Arm, Gantry, Gripper, MoveOptions, Resource
from engine.geometry import Chain
from engine.kinematics import chain_of
from models.common.motion import halt_on_failure
from schema import ErrorKind, MachineError

STEP_DEGREES: Final = 5.0  # between the positions that an arm passes through
MAX_POSITIONS: Final = 2000


@dataclass(frozen=True, slots=True)
class Joints:
    """Kinematics of a component, and the current positions of its joints (degrees, mm)."""

    chain: Chain
    positions: Sequence[float]


async def joints_of(driver: Resource, name: str) -> Joints:
    """Read kinematics and positions; MachineError if the driver has none."""
    if isinstance(driver, Arm):
        chain = chain_of(await driver.get_kinematics(), name)
        positions = await driver.get_joint_positions()
    elif isinstance(driver, Gantry):
        chain = chain_of(await driver.get_kinematics(), name)
        positions = await driver.get_position()
    elif isinstance(driver, Gripper):
        chain = chain_of(await driver.get_kinematics(), name)
        positions = await driver.get_current_inputs() if chain.joints else ()
    else:
        raise MachineError(f"{name} has no joints", kind=ErrorKind.UNSUPPORTED)
    if len(positions) != len(chain.joints):
        raise MachineError(
            f"{name} reports {len(positions)} joint positions, but its kinematics have {len(chain.joints)} joints",
            kind=ErrorKind.PRECONDITION,
            remedy="correct the kinematics of the driver",
        )
    return Joints(chain, positions)


async def execute(driver: Resource, positions: Sequence[Sequence[float]], speed: float | None) -> None:
    """Move through positions (degrees, mm); returns at the last. An error or cancellation stops the component."""
    assert isinstance(driver, Arm | Gantry)
    async with halt_on_failure(driver.stop):
        if isinstance(driver, Gantry):
            for target in positions[1:]:
                await driver.move_to_position(target)
            return
        try:
            dense = interpolated(positions)
            options = MoveOptions(max_vel_degs_per_sec=speed) if speed is not None else None
            await driver.move_through_joint_positions(dense[1:], options)
        except NotImplementedError:
            await _one_by_one(driver, positions)
        except MachineError as error:
            if error.kind is not ErrorKind.UNSUPPORTED or speed is not None:
                raise
            await _one_by_one(driver, positions)


async def _one_by_one(arm: Arm, positions: Sequence[Sequence[float]]) -> None:
    for target in positions[1:]:
        await arm.move_to_joint_positions(target)


def interpolated(positions: Sequence[Sequence[float]]) -> list[list[float]]:
    """Return positions that are at most STEP_DEGREES (or mm) apart, so that arms keep to the path between them."""
    dense = [list(positions[0])]
    for a, b in itertools.pairwise(positions):
        largest = max((abs(x - y) for x, y in zip(a, b, strict=True)), default=0.0)
        pieces = max(1, min(MAX_POSITIONS // len(positions), int(largest / STEP_DEGREES)))
        dense += [[x + (y - x) * piece / pieces for x, y in zip(a, b, strict=True)] for piece in range(1, pieces + 1)]
    return dense
