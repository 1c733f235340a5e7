"""Positions of shafts depend only on commands and time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hal.sim.mechanics.motion import Glide, Lag, Spin
from hal.sim.mechanics.shaft import NEAR, SETTLE_TIME, Shaft


@given(st.floats(0.01, 1), st.lists(st.floats(0.001, 2), min_size=1, max_size=10))
def test_position_is_monotone_under_constant_power(power: float, waits: list[float]) -> None:
    shaft = Shaft(100.0, 0.0)
    shaft.drive(power, 0.0)
    now, last = 0.0, 0.0
    for wait in waits:
        now += wait
        assert shaft.position(now) > last
        last = shaft.position(now)


@given(
    st.lists(st.tuples(st.floats(-1, 1), st.floats(0.01, 3)), min_size=1, max_size=6),
    st.lists(st.floats(0, 20), max_size=20),
)
def test_reading_changes_nothing(drives: list[tuple[float, float]], reads: list[float]) -> None:
    watched, alone = Shaft(100.0, 0.0), Shaft(100.0, 0.0)
    now = 0.0
    for power, span in drives:
        watched.drive(power, now)
        alone.drive(power, now)
        for read in reads:
            watched.position(now + read % span)
            watched.speed(now + read % span)
        now += span
    assert watched.position(now) == alone.position(now)


@given(st.floats(-1, 1), st.floats(0.01, 1), st.floats(-20, 20), st.floats(0.05, 1))
def test_it_comes_to_rest_exactly_where_it_was_sent(before: float, wait: float, goal: float, power: float) -> None:
    shaft = Shaft(100.0, 0.0)
    shaft.drive(before, 0.0)
    heading = shaft.heading(goal, wait)
    shaft.drive(heading * power, wait)
    rest = shaft.stop_at(goal, wait)
    assert rest is not None
    assert shaft.position(rest) == goal
    assert shaft.speed(rest) == 0
    assert not shaft.moving(rest)
    assert shaft.position(rest - 1e-6) == pytest.approx(goal, abs=2 * NEAR)
    assert shaft.position(rest + 1000) == goal


def test_a_place_on_another_course_is_refused() -> None:
    shaft = Shaft(100.0, 0.0)
    shaft.drive(1.0, 0.0)
    assert shaft.stop_at(-1.0, 0.5) is None
    assert shaft.moving(10.0)


def test_driving_again_forgets_the_plan() -> None:
    shaft = Shaft(60.0, 0.0)
    shaft.drive(1.0, 0.0)
    assert shaft.stop_at(5.0, 0.0) is not None
    shaft.drive(1.0, 1.0)
    assert shaft.position(20.0) > 18


def test_it_reaches_the_speed_of_its_power_and_gets_warm() -> None:
    shaft = Shaft(120.0, 0.0)
    shaft.drive(0.5, 0.0)
    assert shaft.speed(1.0) == pytest.approx(1.0)
    assert shaft.heat(600) > shaft.heat(60) > 0
    shaft.drive(0.0, 600.0)
    assert shaft.heat(1200) < shaft.heat(600)
    assert shaft.speed(600 + SETTLE_TIME) == pytest.approx(0, abs=1e-3)


@given(st.floats(-5, 5), st.floats(-5, 5), st.floats(0.001, 3))
def test_position_is_the_integral_of_speed(speed: float, target: float, span: float) -> None:
    spin = Spin(0.0, 0.0, speed, target, 0.05)
    steps = 2000
    total = sum(spin.speed_at((n + 0.5) * span / steps) for n in range(steps)) * span / steps
    assert spin.at(span) == pytest.approx(total, abs=1e-3)


def test_a_reversing_shaft_turns_where_its_speed_is_zero() -> None:
    spin = Spin(1.0, 0.0, 2.0, -1.0, 0.05)
    turn = spin.turn()
    assert turn is not None
    assert spin.speed_at(turn) == pytest.approx(0, abs=1e-12)
    assert Spin(0.0, 0.0, 1.0, 2.0, 0.05).turn() is None


def test_a_lag_in_two_steps_is_a_lag_in_one() -> None:
    lag = Lag(0.0, 0.0, 10.0, 2.0)
    assert lag.towards(1.0, 10.0).at(3.0) == pytest.approx(lag.at(3.0))


@given(st.floats(-100, 100), st.floats(-100, 100), st.floats(0.1, 50))
def test_a_glide_arrives_when_it_says(start: float, end: float, speed: float) -> None:
    glide = Glide(2.0, start, end, speed)
    assert glide.at(2.0) == pytest.approx(start)
    assert glide.at(glide.arrival) == pytest.approx(end)
    assert glide.at(glide.arrival + 100) == end
    middle = glide.at((2.0 + glide.arrival) / 2)
    assert min(start, end) - 1e-9 <= middle <= max(start, end) + 1e-9


def test_a_shaft_is_driven_until_its_power_is_cut() -> None:
    shaft = Shaft(100.0, 0.0)
    assert not shaft.driven(0.0)
    shaft.drive(0.5, 0.0)
    assert shaft.driven(1.0)
    shaft.drive(0.0, 1.0)
    assert (shaft.driven(1.0), shaft.moving(1.0)) == (False, True)


def test_the_motions_within_a_time_follow_each_other() -> None:
    shaft = Shaft(100.0, 0.0)
    shaft.drive(0.5, 0.0)
    rest = shaft.stop_at(2.0, 0.1)
    assert rest is not None
    spans = [(start, end) for start, end, _ in shaft.spins(-1.0, rest + 1.0)]
    assert [start for start, _ in spans[1:]] == [end for _, end in spans[:-1]]
    assert (spans[0][0], spans[-1][1]) == (-1.0, rest + 1.0)
