"""The check of paths: it misses nothing that dense sampling sees, and says what touches where."""

from __future__ import annotations

import itertools
import math
import random

import msgspec
import pytest

from models.planner.follow import check
from models.planner.scene import FAR, Scene
from tests.unit.models.planner.scenes import TABLE, ball, box, generated, problem, turned

THIN = box("wire", (2, 2, 400), (-560, -300, 300))


def test_a_free_path_is_free() -> None:
    whole = problem()
    clearance, blocked = check(Scene.of(whole), [turned(0.0), turned(0.9)])
    assert blocked is None
    assert 5 < clearance < 100


def test_a_wire_is_not_jumped_over() -> None:
    scene = Scene.of(problem(THIN))
    assert scene.touching(turned(0.0)) is None
    assert scene.touching(turned(1.2)) is None
    _, blocked = check(scene, [turned(0.0), turned(1.2)])
    assert blocked is not None
    assert "wire" in str(blocked)
    assert "arm:" in str(blocked)
    assert 0.1 < blocked.after < 0.9


def test_pairs_that_may_touch_do_not_block() -> None:
    scene = Scene.of(problem(THIN, allowed=[("arm", "wire")]))
    assert check(scene, [turned(0.0), turned(1.2)])[1] is None
    by_label = Scene.of(problem(THIN, allowed=[("arm:wrist_3_link", "wire")]))
    assert check(by_label, [turned(0.0), turned(1.2)])[1] is not None


def test_the_margin_is_kept() -> None:
    near = ball("ball", 50, (-560, -300, 150))
    for margin, free in ((1.0, True), (200.0, False)):
        scene = Scene.of(problem(near, margin=margin))
        assert (check(scene, [turned(0.0), turned(0.05)])[1] is None) is free


def test_a_pair_that_is_near_at_the_start_keeps_most_of_its_distance() -> None:
    whole = problem(margin=100.0)
    scene = Scene.of(whole)
    assert check(scene, [turned(0.0), turned(0.5)])[1] is not None  # the base of the arm is above the table
    scene.relax(turned(0.0))
    assert check(scene, [turned(0.0), turned(0.5)])[1] is None


def test_obstacles_out_of_reach_are_not_checked() -> None:
    far = [ball(f"ball {i}", 10, (5000 + i, 0, 0)) for i in range(100)]
    assert len(Scene.of(problem(*far)).pairs) == len(Scene.of(problem()).pairs)


def test_an_arm_without_shapes_is_always_free() -> None:
    whole = msgspec.structs.replace(problem(), solids=[TABLE])
    assert check(Scene.of(whole), [turned(0.0), turned(3.0)]) == (FAR, None)


def test_time_that_is_over_ends_the_check() -> None:
    _, blocked = check(Scene.of(problem()), [turned(0.0), turned(3.0)], lambda: True)
    assert blocked is not None
    assert blocked.near is None


@pytest.mark.parametrize("seed", range(25))
def test_nothing_that_dense_sampling_sees_is_missed(seed: int) -> None:
    whole = generated(seed)
    assert whole.goal_values is not None
    scene = Scene.of(msgspec.structs.replace(whole, margin=0.5))
    scene.relax(whole.start, whole.goal_values)
    rng = random.Random(seed)
    middle = [a + rng.uniform(0.2, 0.8) * (b - a) for a, b in zip(whole.start, whole.goal_values, strict=True)]
    points = [whole.start, middle, whole.goal_values]
    _, blocked = check(scene, points)
    touching = None
    for a, b in itertools.pairwise(points):
        for number in range(400):
            values = [x + (y - x) * number / 400 for x, y in zip(a, b, strict=True)]
            touching = touching or scene.touching(values)
    if touching is not None:
        assert blocked is not None
    if blocked is None:
        assert touching is None


@pytest.mark.parametrize("seed", range(10))
def test_no_point_moves_further_than_the_bound(seed: int) -> None:
    whole = generated(seed)
    scene = Scene.of(whole)
    rng = random.Random(seed)
    a = whole.start
    b = [x + rng.uniform(-0.2, 0.2) for x in a]
    bound = scene.way(a, b)
    for before, after in zip(scene.place(a), scene.place(b), strict=True):
        corners = [(before.x, before.y, before.z)], [(after.x, after.y, after.z)]
        for places, shape in zip(corners, (before, after), strict=True):
            for edge in shape.edges:
                places.append(tuple(places[0][i] + edge[i] for i in range(3)))  # type: ignore[arg-type]
        for x, y in zip(*corners, strict=True):
            assert sum((p - q) ** 2 for p, q in zip(x, y, strict=True)) ** 0.5 <= bound + 1e-6


def test_the_bound_is_that_of_the_longest_lever() -> None:
    upright, bent = [0.0] * 6, [0.0, 0.01, 0.0, 0.0, 0.0, 0.0]
    scene = Scene.of(problem(name="six_axis", start=upright))
    number = next(number for number, solid in enumerate(scene.solids) if solid.label == "arm:hand")
    before, after = scene.place(upright)[number], scene.place(bent)[number]
    tops = [(shape.x + shape.edges[0][0], shape.z + shape.edges[0][2]) for shape in (before, after)]
    moved = math.dist(*tops)  # the center of the upper end; the surface is 30 mm further away from the shoulder
    assert 0.9 * scene.way(upright, bent) < moved < scene.way(upright, bent)
