"""Positions of simulated bases, computed from their wheels."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hal.sim.bench.base import BasePlace, SimBase, advance
from hal.sim.bench.motor import SimMotor


def rover() -> tuple[SimMotor, SimMotor, SimBase]:
    left, right = SimMotor("l", 60.0, 0.0), SimMotor("r", 60.0, 0.0)
    base = SimBase("base", [left], [right], circumference_mm=1000.0, width_mm=500.0)
    base.open(0.0)
    return left, right, base


powers = st.floats(-1, 1)


@given(
    st.lists(st.tuples(powers, powers, st.floats(0.01, 2)), min_size=1, max_size=4),
    st.lists(st.floats(0, 10), max_size=10),
)
def test_no_drift_however_often_it_is_read(drives: list[tuple[float, float, float]], reads: list[float]) -> None:
    _, _, alone = bases = rover()
    watched = rover()
    now = 0.0
    for left, right, span in drives:
        for item in (bases, watched):
            item[0].shaft.drive(left, now)
            item[1].shaft.drive(right, now)
        for read in reads:
            watched[2].place(now + read % span)
        now += span
    assert watched[2].place(now) == alone.place(now)


def test_equal_wheels_go_straight_ahead() -> None:
    left, right, base = rover()
    for motor in (left, right):
        motor.shaft.drive(1.0, 0.0)
        motor.shaft.stop_at(3.0, 0.0)
    place = base.place(100.0)
    assert (place.x, place.y, place.heading) == pytest.approx((0, 3000, 0), abs=1e-6)


def test_opposite_wheels_turn_on_the_spot_to_the_left() -> None:
    left, right, base = rover()
    left.shaft.drive(-1.0, 0.0)
    right.shaft.drive(1.0, 0.0)
    quarter = math.pi / 2 * 250 / 1000
    left.shaft.stop_at(-quarter, 0.0)
    right.shaft.stop_at(quarter, 0.0)
    place = base.place(50.0)
    assert (place.x, place.y, place.heading) == pytest.approx((0, 0, 90), abs=1e-6)


def test_a_full_circle_comes_back() -> None:
    place = BasePlace()
    for _ in range(4):
        place = advance(place, 100.0, 200.0, 100.0 / (math.pi / 2))
    assert (place.x, place.y) == pytest.approx((0, 0), abs=1e-9)
    assert place.heading == pytest.approx(360)


@given(powers, powers, st.lists(st.floats(0.01, 1), min_size=1, max_size=5))
def test_the_same_command_again_changes_nothing(left: float, right: float, waits: list[float]) -> None:
    once, again = rover(), rover()
    now = 0.0
    for item in (once, again):
        item[0].shaft.drive(left, 0.0)
        item[1].shaft.drive(right, 0.0)
    for wait in waits:
        now += wait
        again[0].shaft.drive(left, now)
        again[1].shaft.drive(right, now)
    (x, y, heading), (x2, y2, heading2) = ((p.x, p.y, p.heading) for p in (once[2].place(now), again[2].place(now)))
    assert (x2, y2) == pytest.approx((x, y), abs=0.05)
    assert heading2 == pytest.approx(heading, abs=1e-6)


def test_a_changing_curvature_is_followed() -> None:
    left, right, base = rover()
    for motor, power in ((left, 1.0), (right, -0.5)):
        motor.shaft.drive(power, 0.0)
    for motor, power in ((left, -0.5), (right, 1.0)):
        motor.shaft.drive(power, 1.0)
    steps, end = 20_000, 1.5
    place, at = BasePlace(), (0.0, 0.0)
    fine = rover()
    fine[0].shaft.drive(1.0, 0.0)
    fine[1].shaft.drive(-0.5, 0.0)
    for n in range(1, steps + 1):
        now = n * end / steps
        if n * 3 == steps * 2 + 3 - (steps * 2) % 3:  # the first step after one second
            fine[0].shaft.drive(-0.5, 1.0)
            fine[1].shaft.drive(1.0, 1.0)
        to = (fine[0].travel(now) * 1000, fine[1].travel(now) * 1000)
        place, at = advance(place, to[0] - at[0], to[1] - at[1], 500.0), to
    got = base.place(end)
    assert (got.x, got.y) == pytest.approx((place.x, place.y), abs=0.1)
    assert got.heading == pytest.approx(place.heading, abs=1e-6)


def test_an_hour_of_driving_is_read_at_once() -> None:
    left, right, base = rover()
    left.shaft.drive(0.5, 0.0)
    right.shaft.drive(0.6, 0.0)
    assert len(base._moments(0.0, 3600.0)) < 1000
    linear, angular = base.speeds(3600.0)
    assert linear == pytest.approx(550)
    assert angular == pytest.approx(math.degrees(100 / 500))


def test_a_stopped_base_lets_go_of_its_wheels() -> None:
    left, right, base = rover()
    base.close(1.0)
    assert left.shaft.watchers == right.shaft.watchers == []
