"""Trajectories never exceed their limits and end exactly at their targets."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from hal.control.trajectory import MotionState, approach, at_speed, braking_speed, to_place

STEP = 1e-6  # permitted relative rounding error

places = st.floats(-50, 50)
speeds = st.floats(0.05, 20)
accelerations = st.floats(0.1, 200) | st.just(math.inf)
beats = st.floats(0.001, 0.1)


def beats_to(place: float, speed: float, acceleration: float, dt: float, begin: MotionState) -> list[MotionState]:
    motions = [begin]
    enough = 100 + 3 * (abs(place - begin.position) + begin.velocity**2 / acceleration) / speed / dt
    if math.isfinite(acceleration):
        enough += 10 * (speed + abs(begin.velocity)) / acceleration / dt
    while motions[-1] != MotionState(place):
        assert len(motions) < enough, "does not arrive"
        motions.append(to_place(motions[-1], place, speed, acceleration, dt))
    return motions


@given(places, places, speeds, accelerations, beats)
@example(0.0, 1.0, 1.0, 1.0, 0.05)
@example(0.0, 30.0, 3.0, 0.25, 0.001)
def test_from_rest_it_arrives_exactly_within_speed_and_acceleration(
    start: float, place: float, speed: float, acceleration: float, dt: float
) -> None:
    assume(abs(place - start) / speed / dt < 20_000)
    motions = beats_to(place, speed, acceleration, dt, MotionState(start))
    assert all(abs(motion.velocity) <= speed * (1 + STEP) for motion in motions)
    for before, after in itertools.pairwise(motions):
        assert abs(after.velocity - before.velocity) <= acceleration * dt * (1 + STEP) + 1e-9 * speed
        assert after.position == pytest.approx(
            before.position + after.velocity * dt, abs=1e-9 * (1 + abs(place - start))
        )
    rounding = 1e-9 * (1 + abs(place - start))
    low, high = min(start, place) - rounding, max(start, place) + rounding
    assert all(low <= motion.position <= high for motion in motions)


@given(places, speeds, accelerations, beats, st.floats(-20, 20))
def test_from_any_speed_it_arrives_within_the_acceleration(
    place: float, speed: float, acceleration: float, dt: float, velocity: float
) -> None:
    assume((abs(place) + velocity**2 / acceleration) / speed / dt < 20_000)
    motions = beats_to(place, speed, acceleration, dt, MotionState(0.0, velocity))
    for before, after in itertools.pairwise(motions):
        assert abs(after.velocity - before.velocity) <= acceleration * dt * (1 + STEP) + 1e-9 * speed


@given(st.floats(0.001, 100), speeds, st.floats(0.1, 200), beats)
def test_it_takes_as_long_as_a_trapezoid(way: float, speed: float, acceleration: float, dt: float) -> None:
    assume(way / speed / dt < 20_000)
    peak = min(speed, math.sqrt(way * acceleration))
    ideal = way / peak + peak / acceleration if peak < speed else way / speed + speed / acceleration
    took = (len(beats_to(way, speed, acceleration, dt, MotionState(0.0))) - 1) * dt
    assert ideal - 2 * dt <= took <= ideal + 4 * dt


@given(st.floats(0, 100), st.floats(0.1, 200), beats)
def test_braking_speed_is_the_greatest_from_which_one_can_stop(way: float, acceleration: float, dt: float) -> None:
    def stops_within(speed: float) -> float:
        total = 0.0
        while speed > 0:
            total += speed * dt
            speed -= acceleration * dt
        return total

    speed = braking_speed(way, acceleration, dt)
    assert stops_within(speed) == pytest.approx(way, rel=1e-6, abs=1e-9)
    assert stops_within(speed * 1.001 + 1e-6) > way


@given(st.floats(-20, 20), st.floats(-20, 20), accelerations, beats)
def test_a_speed_is_reached_within_the_acceleration(
    before: float, after: float, acceleration: float, dt: float
) -> None:
    motion = MotionState(0.0, before)
    for _ in range(math.ceil(abs(after - before) / (acceleration * dt)) + 1):
        new = at_speed(motion, after, acceleration, dt)
        assert abs(new.velocity - motion.velocity) <= acceleration * dt * (1 + STEP)
        assert new.position == motion.position + new.velocity * dt
        motion = new
    assert motion.velocity == after


def test_approach_goes_no_farther_than_allowed() -> None:
    assert approach(1.0, 5.0, 2.0) == 3.0
    assert approach(1.0, -5.0, 2.0) == -1.0
    assert approach(1.0, 1.5, 2.0) == 1.5


@given(st.lists(st.tuples(st.integers(-400, 400), st.integers(1, 60)), min_size=1, max_size=8))
def test_a_new_goal_at_any_moment_needs_no_new_beginning(goals: list[tuple[int, int]]) -> None:
    motion, dt = MotionState(0.0), 0.01
    for place, count in goals:
        for _ in range(count):
            new = to_place(motion, place, 100.0, 500.0, dt)
            assert abs(new.velocity) <= 100.0 * (1 + STEP)
            assert abs(new.velocity - motion.velocity) <= 5.0 * (1 + STEP)
            motion = new
    assert beats_to(goals[-1][0], 100.0, 500.0, dt, motion)[-1] == MotionState(goals[-1][0])
