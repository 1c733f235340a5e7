"""Wheel speeds, arcs and positions on the globe, compared with closed-form results."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hal.control.differential import Chassis, Sides, mix
from hal.control.odometry import EARTH_RADIUS, PlanarPose, after_arc, on_globe
from schema.space.geometry import GeoPoint

sizes = st.floats(10, 2000)
ways = st.floats(-5000, 5000)
angles = st.floats(-720, 720)


@given(sizes, sizes, st.floats(0.5, 3), ways, angles)
def test_wheels_and_motion_are_inverse(
    width: float, circumference: float, slip: float, forward: float, angle: float
) -> None:
    chassis = Chassis(width, circumference, slip)
    assert chassis.motion(chassis.arc(forward, angle)) == pytest.approx((forward, angle), abs=1e-6)


def test_a_full_turn_on_the_spot() -> None:
    chassis = Chassis(width=200, circumference=100)
    turn = chassis.turn(360)
    assert turn == pytest.approx((-math.pi * 2, math.pi * 2))  # each wheel rolls along a circle of 200 mm diameter
    assert Chassis(200, 100, slip=1.5).turn(360).right == pytest.approx(1.5 * turn.right)
    assert chassis.straight(250) == (2.5, 2.5)


@given(st.floats(-3, 3), st.floats(-3, 3))
def test_power_is_scaled_together(forward: float, turn: float) -> None:
    sides = mix(forward, turn)
    assert max(abs(sides.left), abs(sides.right)) <= 1
    assert sides.left * (forward + turn) == pytest.approx(sides.right * (forward - turn), abs=1e-9)
    if abs(forward) + abs(turn) <= 1:
        assert sides == Sides(forward - turn, forward + turn)


@given(st.floats(10, 5000), st.floats(-340, 340).filter(lambda angle: abs(angle) > 0.1), angles)
def test_an_arc_ends_on_its_circle(radius: float, angle: float, heading: float) -> None:
    """The centre lies `radius` to the left for positive angles and to the right for negative ones."""
    length = radius * math.radians(abs(angle))
    pose = after_arc(PlanarPose(0.0, 0.0, heading), length, angle)
    side = math.copysign(radius, angle)
    begin = math.radians(heading)
    centre = (-side * math.cos(begin), -side * math.sin(begin))
    end = math.radians(heading + angle)
    assert pose.x == pytest.approx(centre[0] + side * math.cos(end), abs=1e-6 * radius)
    assert pose.y == pytest.approx(centre[1] + side * math.sin(end), abs=1e-6 * radius)
    assert pose.heading == heading + angle


@given(ways, angles)
def test_straight_is_straight(way: float, heading: float) -> None:
    pose = after_arc(PlanarPose(3.0, 4.0, heading), way, 0.0)
    begin = math.radians(heading)
    assert (pose.x, pose.y) == pytest.approx((3 - way * math.sin(begin), 4 + way * math.cos(begin)))


@given(st.floats(-1e-4, 1e-4), ways)
def test_nearly_straight_is_nearly_straight(angle: float, way: float) -> None:
    straight, bent = after_arc(PlanarPose(), way, 0.0), after_arc(PlanarPose(), way, angle)
    assert (bent.x, bent.y) == pytest.approx((straight.x, straight.y), abs=0.01)


@given(st.lists(st.tuples(ways, angles), max_size=20), st.integers(2, 7))
def test_an_arc_may_be_cut_into_pieces(arcs: list[tuple[float, float]], pieces: int) -> None:
    whole = cut = PlanarPose()
    for way, angle in arcs:
        whole = after_arc(whole, way, angle)
        for _ in range(pieces):
            cut = after_arc(cut, way / pieces, angle / pieces)
    assert (cut.x, cut.y, cut.heading) == pytest.approx((whole.x, whole.y, whole.heading), abs=1e-6)


def test_a_metre_on_the_globe() -> None:
    home = GeoPoint(60.0, 10.0)
    degree = math.radians(1) * EARTH_RADIUS  # metres per degree of latitude: 111,195
    ahead = on_globe(home, 0.0, PlanarPose(0.0, 1000.0))
    assert (ahead.latitude - 60) * degree == pytest.approx(1.0)
    assert ahead.longitude == pytest.approx(10)
    right = on_globe(home, 0.0, PlanarPose(1000.0, 0.0))
    assert (right.longitude - 10) * degree / 2 == pytest.approx(1.0)  # cos 60 degrees is 0.5
    east = on_globe(home, 90.0, PlanarPose(0.0, 1000.0))
    assert (east.latitude, east.longitude) == pytest.approx((right.latitude, right.longitude))
    south = on_globe(home, 90.0, PlanarPose(1000.0, 0.0))
    assert (south.latitude - 60) * degree == pytest.approx(-1.0)
