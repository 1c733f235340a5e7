"""Limits of the sizes and poses of a problem."""

from __future__ import annotations

import math

import pytest

from models.planner.build import MAX_SIZE, check_pose, check_sizes
from schema.errors import MachineError
from schema.space.geometry import Pose


def test_sizes_from_nothing_to_the_largest() -> None:
    check_sizes("a box", 0.0, MAX_SIZE)
    for size in (-0.1, MAX_SIZE * 1.01, math.inf, math.nan):
        with pytest.raises(MachineError, match="a box: a size of"):
            check_sizes("a box", 1.0, size)


def test_poses_to_the_largest() -> None:
    check_pose(Pose(x=-MAX_SIZE, y=MAX_SIZE), "the goal")
    for x in (MAX_SIZE * 1.01, math.inf, math.nan):
        with pytest.raises(MachineError, match="the goal: x is"):
            check_pose(Pose(x=x), "the goal")
