"""The search agrees with the checks in plain Python, and every path that a plan returns is free."""

from __future__ import annotations

import itertools
import random
import time

import msgspec
import pytest

from engine.kinematics import arms
from engine.kinematics.mechanism import mechanism_of
from models.planner.scene import Scene
from models.planner.solids import distance
from models.planner.solve import plan
from schema.errors import MachineError
from tests.scope import some_of
from tests.unit.models.planner.scenes import box, generated, problem, turned

coal = pytest.importorskip("coal", reason="needs the extra `motion`")
numpy = pytest.importorskip("numpy")
pin = pytest.importorskip("pinocchio")
pytest.importorskip("ompl")

from models.planner.native import Checker, NativeSearch  # noqa: E402

LOW = box("wall", (500, 40, 350), (-560, -300, 175))


def checker(scene: Scene) -> Checker:
    return Checker(pin, coal, numpy, scene)


@pytest.mark.parametrize("name", arms.NAMES)
def test_forward_kinematics_are_those_of_pinocchio(name: str) -> None:
    mechanism = mechanism_of(arms.named(name))
    whole = problem(name=name, start=[0.0] * len(mechanism.axes))
    native = checker(Scene.of(whole))
    rng = random.Random(name)
    for _ in range(200):
        values = [rng.uniform(-3, 3) for _ in mechanism.axes]
        assert native.output(values) == pytest.approx(mechanism.bodies(values)[-1], abs=1e-6)


@pytest.mark.parametrize("seed", range(20))
def test_distances_are_those_of_coal(seed: int) -> None:
    whole = generated(seed)
    scene = Scene.of(whole)
    native = checker(scene)
    rng = random.Random(seed)
    for _ in range(5):
        values = [a + rng.uniform(-0.5, 0.5) for a in whole.start]
        shapes = scene.place(values)
        for pair, other in zip(scene.pairs, native.distance(values, scene.pairs), strict=True):
            own = distance(shapes[pair.a], shapes[pair.b])
            if min(own, other) > 0.1:  # of shapes that overlap, depths have several meanings
                assert own == pytest.approx(other, abs=0.1)
            else:
                assert max(own, other) < 0.2


def searched(seconds: float) -> NativeSearch:
    end = time.monotonic() + seconds
    return NativeSearch(lambda: end - time.monotonic())


def test_a_way_around_a_wall() -> None:
    trajectory = plan(problem(LOW, goal_values=turned(1.2)), searched(10))
    assert trajectory.method == "search"
    assert trajectory.points[0] == turned(0.0)
    assert trajectory.points[-1] == turned(1.2)


@pytest.mark.slow
@pytest.mark.parametrize("seed", some_of(6, range(240), 3))
def test_every_path_is_free(seed: int) -> None:
    whole = generated(1000 + seed)
    try:
        trajectory = plan(whole, searched(whole.seconds))
    except MachineError as error:
        if not error.remedy:
            raise
        return
    assert trajectory.points[-1] == pytest.approx(whole.goal_values)
    assert trajectory.times == sorted(trajectory.times)
    scene = Scene.of(msgspec.structs.replace(whole, margin=0.01))
    for axis, values in zip(whole.mechanism.axes, zip(*trajectory.points, strict=True), strict=True):
        assert axis.low <= min(values) <= max(values) <= axis.high
    native = checker(scene)
    for a, b in itertools.pairwise(trajectory.points):  # every millimetre, and by another library
        count = max(1, int(scene.way(a, b)))
        for number in range(count + 1):
            values = [x + (y - x) * number / count for x, y in zip(a, b, strict=True)]
            assert native.free(values)
