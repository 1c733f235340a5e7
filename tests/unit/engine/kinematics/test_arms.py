"""Arms by name: their poses follow from the vendors' tables, computed here independently."""

from __future__ import annotations

import math
import random

import pytest

from engine.geometry.chain import forward_kinematics
from engine.geometry.sva import dump
from engine.kinematics import arms
from engine.kinematics.formats import read_chain
from engine.kinematics.mechanism import mechanism_of

Matrix = list[list[float]]

# Standard Denavit-Hartenberg parameters (a, d in mm, alpha in radians) from the support pages of Universal Robots.
UR = {
    "ur5e": [
        (0, 162.5, math.pi / 2),
        (-425, 0, 0),
        (-392.2, 0, 0),
        (0, 133.3, math.pi / 2),
        (0, 99.7, -math.pi / 2),
        (0, 99.6, 0),
    ],
    "ur20": [
        (0, 236.3, math.pi / 2),
        (-862, 0, 0),
        (-728.7, 0, 0),
        (0, 201, math.pi / 2),
        (0, 159.3, -math.pi / 2),
        (0, 154.3, 0),
    ],
}


def product(a: Matrix, b: Matrix) -> Matrix:
    return [[sum(a[i][k] * b[k][j] for k in range(4)) for j in range(4)] for i in range(4)]


def by_table(name: str, angles: list[float]) -> Matrix:
    pose = [[float(i == j) for j in range(4)] for i in range(4)]
    for (a, d, alpha), theta in zip(UR[name], angles, strict=True):
        c, s, ca, sa = math.cos(theta), math.sin(theta), math.cos(alpha), math.sin(alpha)
        step = [[c, -s * ca, s * sa, a * c], [s, c * ca, -c * sa, a * s], [0, sa, ca, d], [0, 0, 0, 1]]
        pose = product(pose, step)
    return pose


@pytest.mark.parametrize("name", UR)
def test_arms_of_universal_robots_follow_their_table(name: str) -> None:
    chain = arms.named(name)
    rng = random.Random(1)
    for _ in range(50):
        angles = [rng.uniform(-math.pi, math.pi) for _ in range(6)]
        pose = by_table(name, angles)
        end = forward_kinematics(chain, [math.degrees(angle) for angle in angles])
        assert end.translation == pytest.approx([pose[i][3] for i in range(3)], abs=1e-6)
        for i in range(3):
            assert end.rotation[i] == pytest.approx(pose[i][:3], abs=1e-9)


# The position of the flange with all joints at zero, as the vendor's manuals show it on the teach pendant.
@pytest.mark.parametrize(
    ("name", "place"), [("xarm6", (207.0, 0.0, 112.0)), ("xarm7", (206.0, 0.0, 120.5)), ("lite6", (87.0, 0.0, 153.6))]
)
def test_arms_of_ufactory_begin_where_their_manual_says(name: str, place: tuple[float, float, float]) -> None:
    chain = arms.named(name)
    end = forward_kinematics(chain, [0.0] * len(chain.joints))
    assert end.translation == pytest.approx(place, abs=0.05)
    assert end.pose().o_z == pytest.approx(-1.0)


@pytest.mark.parametrize("name", arms.NAMES)
def test_they_survive_their_file(name: str) -> None:
    chain = arms.named(name)
    again = read_chain(dump(chain), "p")
    a, b = mechanism_of(chain), mechanism_of(again)
    values = [min(axis.high, max(axis.low, 0.4)) for axis in a.axes]
    assert a.output(values) == pytest.approx(b.output(values), abs=1e-6)
    assert [(axis.low, axis.high) for axis in a.axes] == [(axis.low, axis.high) for axis in b.axes]
    shapes = [[shape.label for part in each.parts for shape in getattr(part, "shapes", ())] for each in (chain, again)]
    assert shapes[0] == shapes[1]
    assert shapes[0]


def test_a_name_that_is_not_known_is_an_error() -> None:
    with pytest.raises(KeyError):
        arms.named("ur4")
