"""Plans a motion: joint positions for the goal, the direct way, and else a search; every path is checked. Pure.

The search is a function, because it needs packages that are an extra.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

import msgspec

from engine.kinematics import Flat, Mechanism, apart, nearest
from models.planner.follow import Blocked, check
from models.planner.lines import StraightWay, along, deviation_of
from models.planner.problem import INSTALL, PlanningProblem, Trajectory
from models.planner.scene import Scene
from models.planner.timing import times_of
from schema import ErrorKind, MachineError

Search: TypeAlias = Callable[
    [PlanningProblem, Scene, Sequence[float], "StraightWay | None"], Iterator[list[list[float]]]
]
"""Yields paths around obstacles from the start to joint positions; each is checked, and the first free one is used."""

SLACK: Final = math.radians(0.5)  # beyond a limit at the start: encoders are not exact
SLACK_MM: Final = 0.5


@dataclass(slots=True)
class _Attempt:
    """A problem on its way to a trajectory, and why it failed so far."""

    problem: PlanningProblem
    scene: Scene
    ended: Callable[[], bool]
    reasons: list[str] = field(default_factory=list)

    def accept(self, points: list[list[float]], method: str, line: StraightWay | None) -> Trajectory | None:
        """Return the trajectory of a path that is free and keeps the constraints; else note the reason."""
        problem = self.problem
        if line is not None:
            deviation = deviation_of(problem.mechanism, line, points, problem.constraints)
            if deviation is not None:
                self.reasons.append(f"the way is {deviation}")
                return None
        clearance, blocked = check(self.scene, points, self.ended)
        if blocked is not None:
            self.note(blocked)
            return None
        return Trajectory(points, times_of(points, problem.speeds, problem.accelerations), method, clearance)

    def note(self, blocked: Blocked) -> None:
        self.reasons.append(str(blocked))


def plan(problem: PlanningProblem, search: Search | None, ended: Callable[[], bool] = lambda: False) -> Trajectory:
    """Return a trajectory; MachineError with the reason if there is none. `ended` says that the time is over."""
    mechanism = problem.mechanism
    scene = Scene.of(problem)
    start = _started(problem)
    problem = msgspec.structs.replace(problem, start=start)
    if (near := scene.touching(start)) is not None:
        raise MachineError(
            f"the arm cannot move from here: {near}",
            kind=ErrorKind.PRECONDITION,
            remedy=f"move the arm by hand, correct the shapes, or allow {near.a.label} and {near.b.label} to touch",
        )
    goals = _goals(problem, scene, start)
    constrained = problem.constraints.straight or problem.constraints.rotation is not None
    line = None
    if constrained:
        line = StraightWay(mechanism.output(start), problem.goal or mechanism.output(goals[0]))
    attempt = _Attempt(problem, scene, ended)
    margins = [pair.margin for pair in scene.pairs]
    if line is not None:
        scene.relax(start)
        points = along(mechanism, line, start)
        if isinstance(points, float):
            attempt.reasons.append(f"the arm cannot follow the line beyond {points:.0%} of it")
        else:
            scene.relax(points[-1])
            if (trajectory := attempt.accept(points, "line", line)) is not None:
                return trajectory
    for goal in goals:
        _restore(scene, margins, start, goal)
        if (trajectory := attempt.accept([start, goal], "straight", line)) is not None:
            return trajectory
        if ended():
            break
    if search is None or not problem.search:
        raise _no_search(attempt, installed=search is not None)
    for goal in goals:
        _restore(scene, margins, start, goal)
        for points in search(problem, scene, goal, line):
            if (trajectory := attempt.accept(points, "search", line)) is not None:
                return trajectory
        if ended():
            break
    raise MachineError(
        f"no way to the goal was discovered in {problem.seconds:g} s; the direct way is blocked: {attempt.reasons[0]}",
        kind=ErrorKind.PRECONDITION,
        remedy="move the obstacle or the goal, use a smaller margin, or allow more time",
    )


def _started(problem: PlanningProblem) -> list[float]:
    start = []
    for axis, value in zip(problem.mechanism.axes, problem.start, strict=True):
        slack = SLACK_MM if axis.slides else SLACK
        if not axis.low - slack <= value <= axis.high + slack:
            raise MachineError(
                f"joint {axis.name} is at {_shown(axis.slides, value)}, outside its limits "
                f"{_shown(axis.slides, axis.low)} to {_shown(axis.slides, axis.high)}",
                kind=ErrorKind.PRECONDITION,
                remedy="move the joint back by hand, or correct the limits in the kinematics",
            )
        start.append(min(axis.high, max(axis.low, value)))
    return start


def _shown(slides: bool, value: float) -> str:
    return f"{value:g} mm" if slides else f"{math.degrees(value):.1f}°"


def _goals(problem: PlanningProblem, scene: Scene, start: Sequence[float]) -> list[list[float]]:
    """Return the postures for the goal that touch nothing, the nearest first."""
    mechanism = problem.mechanism
    if problem.goal_values is not None:
        for axis, value in zip(mechanism.axes, problem.goal_values, strict=True):
            if not axis.low <= value <= axis.high:
                raise MachineError(
                    f"joint {axis.name} cannot go to {_shown(axis.slides, value)}",
                    kind=ErrorKind.INVALID,
                    remedy=f"use {_shown(axis.slides, axis.low)} to {_shown(axis.slides, axis.high)}",
                )
        goals = [list(problem.goal_values)]
    elif problem.goal is not None:
        goals = nearest(mechanism, problem.goal, start)
        if not goals:
            raise _out_of_reach(mechanism, problem.goal, start)
    else:
        raise MachineError("the problem has no goal", kind=ErrorKind.INVALID)
    free, first = [], None
    for goal in goals:
        near = scene.touching(goal)
        first = first or near
        if near is None:
            free.append(goal)
    if not free:
        raise MachineError(
            f"the goal is not free: there, {first}",
            kind=ErrorKind.PRECONDITION,
            remedy="choose another goal, correct the shapes, or allow the two to touch",
        )
    return sorted(free, key=lambda goal: apart(mechanism.axes, goal, start))


def _out_of_reach(mechanism: Mechanism, goal: Flat, start: Sequence[float]) -> MachineError:
    """Return the error for a pose without joint positions, which names the limits that are in the way."""
    place = f"({goal[3]:.1f}, {goal[7]:.1f}, {goal[11]:.1f}) mm"
    free = tuple(replace(axis, low=-math.inf, high=math.inf) for axis in mechanism.axes)
    beyond = nearest(Mechanism(free, mechanism.tip), goal, start, starts=8, count=1)
    if not beyond:
        return MachineError(
            f"the pose at {place} from the base of the arm is out of reach, whatever the limits of the joints",
            kind=ErrorKind.INVALID,
            remedy="choose a pose nearer to the arm, or another orientation",
        )
    limits = [
        f"{axis.name} would be at {_shown(axis.slides, value)}, beyond "
        f"{_shown(axis.slides, axis.low)} to {_shown(axis.slides, axis.high)}"
        for axis, value in zip(mechanism.axes, beyond[0], strict=True)
        if not axis.low <= value <= axis.high
    ]
    return MachineError(
        f"the pose at {place} from the base of the arm is not within the limits of the joints"
        + (f": {'; '.join(limits)}" if limits else ""),
        kind=ErrorKind.INVALID,
        remedy="choose another pose or orientation",
    )


def _restore(scene: Scene, margins: Sequence[float], *postures: Sequence[float]) -> None:
    for pair, margin in zip(scene.pairs, margins, strict=True):
        pair.margin = margin
    scene.relax(*postures)


def _no_search(attempt: _Attempt, *, installed: bool) -> MachineError:
    reason = attempt.reasons[0] if attempt.reasons else "time is over"
    if installed:
        return MachineError(
            f"the direct way is blocked: {reason}",
            kind=ErrorKind.PRECONDITION,
            remedy="allow a search for a way around, or choose another goal",
        )
    return MachineError(
        f"the direct way is blocked: {reason}; searching a way around needs packages that are not installed",
        kind=ErrorKind.UNSUPPORTED,
        remedy=f"install them: {INSTALL}, or move through postures in between",
    )
