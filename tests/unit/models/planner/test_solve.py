"""Planning without a search: what it returns, and what it says when it cannot."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from engine.kinematics import arms
from engine.kinematics.inverse import deviation
from models.planner.build import arm_solids, solid_of
from models.planner.lines import StraightWay, along, deviation_of
from models.planner.problem import Constraints, PlanningProblem
from models.planner.solve import plan
from schema.errors import ErrorKind, MachineError
from schema.space.geometry import Capsule, Geometry, Pose, RectangularPrism, Sphere, Vector3
from tests.unit.models.planner.scenes import HOME, ball, box, problem, turned

WALL = box("wall", (500, 40, 900), (-560, -300, 450))


def refused(whole: PlanningProblem, search: Any = None) -> MachineError:
    with pytest.raises(MachineError) as caught:
        plan(whole, search)
    assert caught.value.remedy
    return caught.value


def test_the_direct_way_is_used_if_it_is_free() -> None:
    trajectory = plan(problem(goal_values=turned(0.9), speeds=[math.pi] * 6), None)
    assert (trajectory.method, trajectory.points) == ("straight", [HOME, turned(0.9)])
    assert trajectory.times[1] > 0.9 / math.pi
    assert trajectory.clearance > 5


def test_a_pose_is_reached_with_the_nearest_posture() -> None:
    whole = problem()
    goal = whole.mechanism.output(turned(0.5))
    trajectory = plan(problem(goal=goal), None)
    assert trajectory.points[-1] == pytest.approx(turned(0.5), abs=1e-5)


def test_shapes_in_the_way_are_named() -> None:
    blocked = refused(problem(WALL, goal_values=turned(1.2)))
    assert blocked.kind is ErrorKind.UNSUPPORTED
    assert "wall" in blocked.message
    assert "arm:" in blocked.message
    assert "% of the way" in blocked.message
    assert "pip install 'machine-runtime[motion]'" in blocked.remedy


def test_the_pair_may_be_allowed_to_touch() -> None:
    assert plan(problem(WALL, goal_values=turned(1.2), allowed=[("wall", "arm")]), None).method == "straight"


def test_a_search_may_be_forbidden() -> None:
    blocked = refused(problem(WALL, goal_values=turned(1.2), search=False), lambda *_: iter(()))
    assert blocked.kind is ErrorKind.PRECONDITION
    assert "allow a search" in blocked.remedy


def test_a_start_that_touches_is_refused() -> None:
    inside = ball("ball", 130, (-500, -133, 300))
    blocked = refused(problem(inside, goal_values=turned(1.2)))
    assert blocked.kind is ErrorKind.PRECONDITION
    assert "cannot move from here" in blocked.message
    assert "ball" in blocked.message


def test_a_goal_that_touches_is_refused() -> None:
    there = problem().mechanism.output(turned(1.2))
    blocked = refused(problem(ball("ball", 60, (there[3], there[7], there[11])), goal_values=turned(1.2)))
    assert "the goal is not free" in blocked.message
    assert "ball" in blocked.message


def test_a_pose_out_of_reach_is_refused() -> None:
    goal = (1.0, 0.0, 0.0, 3000.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0)
    blocked = refused(problem(goal=goal))
    assert blocked.kind is ErrorKind.INVALID
    assert "3000.0" in blocked.message
    assert "out of reach" in blocked.message


def test_the_limit_that_is_in_the_way_is_named() -> None:
    whole = problem()
    goal = whole.mechanism.output([0.0, -1.2, 1.5, -1.8, -1.57, 0.0])
    axes = tuple(replace(axis, low=-0.1, high=0.1) if axis.name == "elbow" else axis for axis in whole.mechanism.axes)
    narrow = replace(whole.mechanism, axes=axes)
    start = [0.0, -1.2, 0.0, -1.8, -1.57, 0.0]
    blocked = refused(msgspec.structs.replace(whole, mechanism=narrow, start=start, goal=goal, goal_values=None))
    assert blocked.kind is ErrorKind.INVALID
    assert "elbow would be at" in blocked.message
    assert "-5.7° to 5.7°" in blocked.message


def test_a_start_outside_the_limits_is_refused() -> None:
    blocked = refused(problem(start=[0.0, -1.2, 3.3, -1.8, -1.57, 0.0]))
    assert "joint elbow is at 189.1°" in blocked.message
    begun = [0.0, 0.5, 0.5, 0.0, math.radians(125.3), 0.0]  # encoders are not exact
    trajectory = plan(problem(name="six_axis", start=begun, goal_values=[0.0, 0.5, 0.5, 0.0, 0.5, 0.0]), None)
    assert trajectory.points[0][4] == pytest.approx(math.radians(125))


def test_a_goal_outside_the_limits_is_refused() -> None:
    blocked = refused(problem(goal_values=[0.0, -1.2, 3.3, -1.8, -1.57, 0.0]))
    assert blocked.kind is ErrorKind.INVALID
    assert "elbow" in blocked.message


def test_a_line_is_kept() -> None:
    whole = problem()
    start = whole.mechanism.output(HOME)
    goal = list(start)
    goal[3] += 150.0
    goal[7] += 250.0
    constraints = Constraints(line=0.5, rotation=0.02)
    trajectory = plan(problem(goal=tuple(goal), constraints=constraints), None)
    assert trajectory.method == "line"
    line = StraightWay(start, tuple(goal))
    for a, b in zip(trajectory.points, trajectory.points[1:], strict=False):
        for share in (0.0, 0.3, 0.7):
            pose = whole.mechanism.output([x + (y - x) * share for x, y in zip(a, b, strict=True)])
            away, turn = line.deviation(pose, constraints)
            assert away < 0.5
            assert turn < 0.02


def test_a_line_through_an_obstacle_is_refused() -> None:
    start = problem().mechanism.output(HOME)
    goal = list(start)
    goal[7] -= 400.0
    whole = problem(box("post", (40, 40, 800), (start[3], start[7] - 200, 400)), goal=tuple(goal))
    blocked = refused(msgspec.structs.replace(whole, constraints=Constraints(line=1.0, rotation=0.05)))
    assert "post" in blocked.message


def test_a_line_that_the_arm_cannot_follow_is_refused() -> None:
    whole = problem()
    start = whole.mechanism.output(HOME)
    goal = whole.mechanism.output([math.pi, *HOME[1:]])  # through the base
    blocked = refused(problem(goal=goal, constraints=Constraints(line=1.0, rotation=4.0)))
    assert "line" in blocked.message or "touch" in blocked.message
    assert isinstance(along(whole.mechanism, StraightWay(start, goal), HOME), float | list)


def test_the_direct_rotation_is_kept() -> None:
    goal = problem().mechanism.output(turned(1.0))
    trajectory = plan(problem(goal=goal, constraints=Constraints(rotation=0.1)), None)
    mechanism = problem().mechanism
    line = StraightWay(mechanism.output(HOME), goal)
    assert deviation_of(mechanism, line, trajectory.points, Constraints(rotation=0.1)) is None
    swung = [HOME, [0.5, -1.2, 1.5, -1.0, -1.57, 0.0], turned(1.0)]
    deviation = deviation_of(mechanism, line, swung, Constraints(rotation=0.1))
    assert deviation is not None
    assert "turned by" in str(deviation)
    assert deviation_of(mechanism, line, [HOME, [*HOME[:5], 1.0], turned(1.0)], Constraints(rotation=0.1)) is not None
    rolled = Constraints(rotation=0.1, ignore_roll=True)
    assert deviation_of(mechanism, line, [HOME, [*HOME[:5], 1.0], HOME], rolled) is None


def test_a_line_goes_from_the_start_to_the_goal() -> None:
    mechanism = problem().mechanism
    start, goal = mechanism.output(HOME), mechanism.output([0.4, -1.0, 1.2, -1.5, -1.2, 0.6])
    line = StraightWay(start, goal)
    assert deviation(line.at(0.0), start) == pytest.approx((0, 0), abs=1e-6)
    assert deviation(line.at(1.0), goal) == pytest.approx((0, 0), abs=1e-6)
    assert deviation(line.at(0.5), start)[0] == pytest.approx(line.length / 2)
    assert deviation(line.at(0.5), start)[1] == pytest.approx(line.angle / 2)


def test_a_path_of_the_search_is_used_only_if_it_is_free() -> None:
    through = [HOME, turned(0.6), turned(1.2)]
    over = [HOME, [0.0, -1.9, 0.6, -1.8, -1.57, 0.0], [1.2, -1.9, 0.6, -1.8, -1.57, 0.0], turned(1.2)]
    asked = []

    def search(whole: PlanningProblem, scene: Any, goal: Sequence[float], line: Any) -> Iterator[list[list[float]]]:
        asked.append(goal)
        yield through
        yield over

    low = box("wall", (500, 40, 350), (-560, -300, 175))
    trajectory = plan(problem(low, goal_values=turned(1.2)), search)
    assert (trajectory.method, trajectory.points) == ("search", over)
    assert asked == [turned(1.2)]
    blocked = refused(problem(WALL, goal_values=turned(1.2)), lambda *_: iter([through]))
    assert "no way to the goal" in blocked.message
    assert "wall" in blocked.message


def test_time_that_is_over_ends_the_plan() -> None:
    with pytest.raises(MachineError, match=r"wall|time|long"):
        plan(problem(WALL, goal_values=turned(1.2)), lambda *_: iter(()), lambda: True)


@pytest.mark.parametrize(
    "shape",
    [
        Geometry(),
        Geometry(sphere=Sphere(-1.0)),
        Geometry(sphere=Sphere(math.nan)),
        Geometry(box=RectangularPrism(Vector3(1.0, math.inf, 1.0))),
        Geometry(capsule=Capsule(10.0, 15.0)),
        Geometry(Pose(x=math.nan), sphere=Sphere(1.0)),
        Geometry(Pose(y=1e9), sphere=Sphere(1.0)),
    ],
)
def test_wrong_shapes_are_refused(shape: Geometry) -> None:
    with pytest.raises(MachineError, match="thing") as caught:
        solid_of(shape, "thing", "thing", 0, (1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0))
    assert caught.value.kind is ErrorKind.INVALID


def test_the_shapes_of_an_arm_follow_its_joints() -> None:
    solids = arm_solids(arms.named("xarm6"), "a", offset=2)
    assert solids[0].label == "a:base"
    assert [solid.body for solid in solids] == [2, 3, 4, 5, 5, 6, 7, 7]
