"""Distances of shapes: exact where a formula is known, and never too large."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.geometry.spatial import Transform, about
from engine.kinematics.mechanism import IDENTITY, flat
from models.planner.problem import Solid
from models.planner.solids import distance, placed, reach_of
from tests.unit.models.planner.scenes import ball, bar, box, sampled_distance

numbers = st.floats(-300, 300)
sizes = st.floats(0, 200)


@st.composite
def solids(draw: st.DrawFn) -> Solid:
    at = Transform(
        about((draw(st.floats(-1, 1)), draw(st.floats(-1, 1)), 1.0), draw(st.floats(-3, 3))),
        (draw(numbers), draw(numbers), draw(numbers)),
    )
    kind = draw(st.sampled_from(["box", "ball", "bar"]))
    half = {
        "box": (draw(sizes), draw(sizes), draw(sizes)),
        "ball": (0.0, 0.0, 0.0),
        "bar": (0.0, 0.0, draw(sizes)),
    }[kind]
    radius = 0.0 if kind == "box" else draw(st.floats(1, 100))
    return Solid("a", "a", 0, flat(at), half, radius)


def between(a: Solid, b: Solid) -> float:
    return distance(placed(a, IDENTITY), placed(b, IDENTITY))


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (ball("a", 10, (0, 0, 0)), ball("b", 20, (100, 0, 0)), 70),
        (ball("a", 10, (0, 0, 0)), ball("b", 20, (25, 0, 0)), -5),
        (ball("a", 10, (0, 0, 100)), box("b", (100, 100, 100), (0, 0, 0)), 40),
        (ball("a", 10, (90, 90, 0)), box("b", (100, 100, 100), (0, 0, 0)), math.hypot(40, 40) - 10),
        (ball("a", 10, (90, 90, 90)), box("b", (100, 100, 100), (0, 0, 0)), math.sqrt(3) * 40 - 10),
        (bar("a", 10, 200, (0, 0, 0)), bar("b", 10, 200, (0, 50, 0)), 30),
        (bar("a", 10, 220, (0, 0, 0)), bar("b", 10, 220, (0, 50, 0), math.pi / 2), -20),
        (bar("a", 10, 220, (0, 0, 0)), bar("b", 10, 220, (60, 0, 0), math.pi / 2), 40),
        (box("a", (100, 100, 100), (0, 0, 0)), box("b", (100, 100, 100), (130, 0, 0)), 30),
        (
            box("a", (100, 100, 100), (0, 0, 0)),
            box("b", (100, 100, 100), (130, 0, 0), math.pi / 4),
            80 - 50 * math.sqrt(2),
        ),
        (box("a", (100, 100, 100), (0, 0, 0)), box("b", (10, 10, 10), (0, 0, 0)), 0),
        (box("a", (0, 0, 0), (0, 0, 0)), box("b", (0, 0, 0), (3, 4, 0)), 5),
    ],
)
def test_distances_with_a_formula(a: Solid, b: Solid, expected: float) -> None:
    assert between(a, b) == pytest.approx(expected, abs=0.03)
    assert between(b, a) == pytest.approx(expected, abs=0.03)


@settings(max_examples=150, deadline=None)
@given(solids(), solids())
def test_a_distance_is_never_too_large(a: Solid, b: Solid) -> None:
    assert between(a, b) <= sampled_distance(placed(a, IDENTITY), placed(b, IDENTITY), 4) + 1e-6


@settings(max_examples=100, deadline=None)
@given(solids(), solids())
def test_a_distance_is_hardly_too_small(a: Solid, b: Solid) -> None:
    exact = between(a, b)
    first, second = placed(a, IDENTITY), placed(b, IDENTITY)
    sampled = sampled_distance(first, second, 5)
    widest = max((math.hypot(*edge) for shape in (first, second) for edge in shape.edges), default=0.0)
    assert exact >= sampled - 6 * widest / 4 - 0.1  # the nearest points are between samples


@given(solids())
def test_every_point_is_within_reach(solid: Solid) -> None:
    shape = placed(solid, IDENTITY)
    corner = [sum(edge[i] for edge in shape.edges) for i in range(3)]
    assert math.hypot(*corner) + shape.radius <= reach_of(solid) + 1e-6


def test_a_bound_that_is_enough_may_be_rough() -> None:
    a, b = box("a", (100, 100, 100), (0, 0, 0)), box("b", (100, 100, 100), (1000, 0, 0))
    rough = distance(placed(a, IDENTITY), placed(b, IDENTITY), 10.0)
    assert 10 < rough <= 900
