"""Inverse kinematics: solutions lead where they should, keep limits, and the nearest is first."""

from __future__ import annotations

import itertools
import math
import random
from dataclasses import replace

import pytest

from engine.kinematics import arms
from engine.kinematics.inverse import MORE, apart, deviation, nearest, solutions, track, unwound
from engine.kinematics.mechanism import Flat, Mechanism, mechanism_of
from tests.scope import selected

POSES = 300 if selected() else 10  # of each arm


def posture(mechanism: Mechanism, rng: random.Random, share: float = 0.9) -> list[float]:
    return [share * rng.uniform(max(axis.low, -math.pi), min(axis.high, math.pi)) for axis in mechanism.axes]


@pytest.mark.parametrize("name", arms.NAMES)
def test_every_reachable_pose_is_reached(name: str) -> None:
    mechanism = mechanism_of(arms.named(name))
    rng = random.Random(name)
    home = [min(axis.high, max(axis.low, 0.3)) for axis in mechanism.axes]
    for _ in range(POSES):
        goal = mechanism.output(posture(mechanism, rng))
        every = nearest(mechanism, goal, home)
        assert every
        for values in every:
            offset, turn = deviation(mechanism.output(values), goal)
            assert offset < 0.01
            assert turn < 1e-5
            assert all(axis.low <= value <= axis.high for axis, value in zip(mechanism.axes, values, strict=True))
        distances = [apart(mechanism.axes, values, home) for values in every]
        assert distances == sorted(distances)


def test_there_are_several_solutions() -> None:
    mechanism = mechanism_of(arms.named("ur5e"))
    values = [0.3, -1.2, 1.4, -1.6, -1.5, 0.2]
    every = nearest(mechanism, mechanism.output(values), [0.0] * 6, count=4)
    assert len(every) >= 4
    for a, b in itertools.pairwise(every):
        assert apart(mechanism.axes, a, b) > 0.01


def test_the_current_posture_is_its_own_nearest_solution() -> None:
    mechanism = mechanism_of(arms.named("xarm7"))
    values = posture(mechanism, random.Random(5))
    assert nearest(mechanism, mechanism.output(values), values)[0] == pytest.approx(values)


def test_the_same_request_has_the_same_answer() -> None:
    mechanism = mechanism_of(arms.named("lite6"))
    goal = mechanism.output(posture(mechanism, random.Random(2)))
    assert nearest(mechanism, goal, [0.1] * 6) == nearest(mechanism, goal, [0.1] * 6)


def test_a_pose_that_is_too_far_away_is_refused_at_once() -> None:
    mechanism = mechanism_of(arms.named("ur5e"))
    far: Flat = (1.0, 0.0, 0.0, 9000.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0)
    assert list(solutions(mechanism, far, [0.0] * 6)) == []


def test_a_pose_out_of_reach_takes_a_bounded_number_of_steps() -> None:
    mechanism = mechanism_of(arms.named("ur5e"))
    inside: Flat = (1.0, 0.0, 0.0, 950.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 900.0)
    steps = list(solutions(mechanism, inside, [0.0] * 6, starts=2))
    assert set(steps) == {None}
    assert 20 < len(steps) < MORE * 2 * 80


def test_limits_take_solutions_away() -> None:
    mechanism = mechanism_of(arms.named("ur5e"))
    values = [0.3, -1.2, 1.4, -1.6, -1.5, 0.2]
    goal = mechanism.output(values)
    narrow = Mechanism(
        (*mechanism.axes[:2], replace(mechanism.axes[2], low=1.0, high=1.6), *mechanism.axes[3:]), mechanism.tip
    )
    every = nearest(narrow, goal, [0.0] * 6)
    assert every
    assert all(1.0 <= solution[2] <= 1.6 for solution in every)
    closed = Mechanism(
        (*mechanism.axes[:2], replace(mechanism.axes[2], low=2.9, high=3.0), *mechanism.axes[3:]), mechanism.tip
    )
    assert nearest(closed, goal, [0.0] * 6, starts=6) == []


def test_joints_that_turn_twice_are_brought_near() -> None:
    mechanism = mechanism_of(arms.named("ur5e"))
    near = [6.0, 0.0, 0.0, 0.0, 0.0, -6.0]
    values = unwound(mechanism.axes, [0.2, 0.0, 0.0, 0.0, 0.0, 0.1], near)
    assert values[0] == pytest.approx(0.2)  # a turn more would be beyond the limit
    assert values[5] == pytest.approx(0.1 - 2 * math.pi)
    assert all(axis.low <= value <= axis.high for axis, value in zip(mechanism.axes, values, strict=True))


def test_tracking_keeps_the_posture() -> None:
    mechanism = mechanism_of(arms.named("xarm6"))
    values = [0.1, -0.4, -0.9, 0.2, 0.6, 0.0]
    x = list(mechanism.output(values))
    x[3] += 2.0
    moved = track(mechanism, tuple(x), values)
    assert moved is not None
    assert apart(mechanism.axes, moved, values) < 0.1
    x[3] += 9000.0
    assert track(mechanism, tuple(x), values) is None


@pytest.mark.parametrize("wish", [1e300, -1e300, 1e17, 7.0, -7.0])
def test_whole_turns_end_at_the_limits(wish: float) -> None:
    """A driver may report any position: counting turns down from it one by one would not end."""
    axes = mechanism_of(arms.named("ur5e")).axes
    for axis, value in zip(axes, unwound(axes, [0.1] * len(axes), [wish] * len(axes)), strict=True):
        assert axis.low <= value <= axis.high
        assert math.isclose(math.remainder(value - 0.1, 2 * math.pi), 0.0, abs_tol=1e-9)
