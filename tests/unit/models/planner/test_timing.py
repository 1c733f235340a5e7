"""Times of paths: as fast as the limits allow, and not faster."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.planner.timing import ACCELERATION, SPEED, times_of

values = st.lists(st.floats(-3, 3), min_size=2, max_size=2)


def test_a_long_way_is_a_trapezoid() -> None:
    # Half a second to 1 rad/s at 2 rad/s^2, over a quarter of a radian; the same at the end.
    assert times_of([[0.0], [2.0]], [1.0], [2.0]) == pytest.approx([0.0, 0.5 + 1.5 + 0.5])


def test_a_short_way_is_a_triangle() -> None:
    assert times_of([[0.0], [0.02]], [1.0], [2.0]) == pytest.approx([0.0, 2 * math.sqrt(0.02 / 2)])


def test_the_slowest_joint_decides() -> None:
    (_, both) = times_of([[0.0, 0.0], [1.0, 1.0]], [10.0, 0.1], [1000.0, 1000.0])
    assert both == pytest.approx(10.0, abs=0.01)


def test_points_on_a_line_do_not_slow_down() -> None:
    direct = times_of([[0.0], [3.0]], [1.0], [2.0])[-1]
    assert times_of([[i * 0.03] for i in range(101)], [1.0], [2.0])[-1] == pytest.approx(direct)


def test_a_corner_does() -> None:
    limits = [1.0, 1.0], [2.0, 2.0]
    straight = times_of([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0]], *limits)[-1]
    corner = times_of([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]], *limits)[-1]
    back = times_of([[0.0, 0.0], [1.0, 0.0], [0.0, 0.0]], *limits)[-1]
    assert straight < corner < back


def test_joints_without_limits_have_usual_ones() -> None:
    usual = times_of([[0.0], [2.0]], [SPEED], [ACCELERATION])
    assert times_of([[0.0], [2.0]], [], []) == usual
    assert times_of([[0.0], [2.0]], [math.inf], [0.0]) == usual


def test_no_way_takes_no_time() -> None:
    assert times_of([[1.0]], [], []) == [0.0]
    assert times_of([[1.0], [1.0]], [], []) == [0.0, 0.0]


@given(st.lists(values, min_size=2, max_size=8), st.lists(st.floats(0.1, 5), min_size=2, max_size=2))
def test_no_joint_is_too_fast_on_average(points: list[list[float]], speeds: list[float]) -> None:
    times = times_of(points, speeds, [3.0, 3.0])
    assert times[0] == 0
    for (a, b), (before, after) in zip(itertools.pairwise(points), itertools.pairwise(times), strict=True):
        assert after >= before
        for x, y, speed in zip(a, b, speeds, strict=True):
            assert abs(y - x) <= speed * (after - before) * (1 + 1e-9) + 1e-9
