"""Searches for ways around obstacles with OMPL, Pinocchio and Coal. Runs only in the process of the planner.

Coal computes distances independently of `models.planner.solids`, so a mistake in either shows: a path that is
free for Coal is used only if the other proves it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from engine.kinematics import Flat
from models.planner.lines import StraightWay
from models.planner.problem import PlanningProblem, Solid
from models.planner.scene import Scene, SolidPair

TRIES: Final = 6  # searches, if simplified paths turn out not to be free
WIDER: Final = 1.2  # margin of the search, as a multiple of that of the check
_WIDTH: Final = math.pi  # how far beyond start and goal a joint may turn, within its limits
_NEVER_FINER: Final = 0.005  # radians between checks of the search


class NativeSearch:
    """The search; `remaining` returns the seconds that are left."""

    def __init__(self, remaining: Callable[[], float]) -> None:
        import coal
        import numpy
        import pinocchio
        from ompl import base, geometric, util

        util.setLogLevel(util.LogLevel.LOG_NONE)
        self._coal, self._numpy, self._pin = coal, numpy, pinocchio
        self._base, self._geometric, self._util = base, geometric, util
        self._remaining = remaining

    def __call__(
        self, problem: PlanningProblem, scene: Scene, goal: Sequence[float], line: StraightWay | None
    ) -> Iterator[list[list[float]]]:
        """Search for a way around the obstacles; None if none is found in time."""
        try:
            self._util.RNG.setSeed(problem.seed)
        except Exception:  # only the first random numbers of a process can be seeded; later goals continue with them
            pass
        checker = Checker(self._pin, self._coal, self._numpy, scene)
        axes, start = scene.mechanism.axes, problem.start
        space = self._base.RealVectorStateSpace(len(axes))
        bounds = self._base.RealVectorBounds(len(axes))
        for index, (axis, a, b) in enumerate(zip(axes, start, goal, strict=True)):
            width = 100 * _WIDTH if axis.slides else _WIDTH
            bounds.setLow(index, max(axis.low, min(a, b) - width))
            bounds.setHigh(index, min(axis.high, max(a, b) + width))
        space.setBounds(bounds)

        def valid(state: Any) -> bool:
            values = [state[i] for i in range(len(axes))]
            if line is not None and line.broken_by(scene.mechanism, values, problem.constraints) is not None:
                return False
            return checker.free(values)

        step = max(_NEVER_FINER, 2 * WIDER * problem.margin / (math.hypot(*scene.lever) or 1.0))
        for _ in range(TRIES):
            if (left := self._remaining()) <= 0:
                return
            points = self._solved(space, valid, start, goal, step, left)
            if points is None:
                return
            yield points

    def _solved(
        self,
        space: Any,
        valid: Callable[[Any], bool],
        start: Sequence[float],
        goal: Sequence[float],
        step: float,
        seconds: float,
    ) -> list[list[float]] | None:
        setup = self._geometric.SimpleSetup(space)
        setup.setStateValidityChecker(valid)
        information = setup.getSpaceInformation()
        information.setStateValidityCheckingResolution(min(1.0, step / space.getMaximumExtent()))
        ends = []
        for values in (start, goal):
            state = space.allocState()
            for index, value in enumerate(values):
                state[index] = float(value)
            ends.append(state)
        setup.setStartAndGoalStates(*ends)
        setup.setPlanner(self._geometric.RRTConnect(information))
        if not setup.solve(seconds) or not setup.haveExactSolutionPath():
            return None
        setup.simplifySolution()
        path = setup.getSolutionPath()
        size = range(len(start))
        points = [[float(path.getState(i)[j]) for j in size] for i in range(path.getStateCount())]
        points[0], points[-1] = list(start), list(goal)
        return points


class Checker:
    """The shapes of a scene in Pinocchio and Coal, which compute in metres."""

    def __init__(self, pin: Any, coal: Any, numpy: Any, scene: Scene) -> None:
        self._pin, self._numpy = pin, numpy
        self._slides = [axis.slides for axis in scene.mechanism.axes]
        model = pin.Model()
        joint = 0
        for number, axis in enumerate(scene.mechanism.axes):
            kind = pin.JointModelPrismaticUnaligned if axis.slides else pin.JointModelRevoluteUnaligned
            joint = model.addJoint(joint, kind(*axis.axis), self._placement(axis.placement), f"{number}")
        geometry = pin.GeometryModel()
        for number, solid in enumerate(scene.solids):
            placement = self._placement(solid.at)
            geometry.addGeometryObject(pin.GeometryObject(f"{number}", solid.body, placement, _shape(coal, solid)))
        for pair in scene.pairs:
            geometry.addCollisionPair(pin.CollisionPair(pair.a, pair.b))
        self._model, self._data = model, model.createData()
        self._geometry, self._shapes = geometry, geometry.createData()
        requests = self._shapes.collisionRequests
        for index, pair in enumerate(scene.pairs):
            requests[index].security_margin = WIDER * pair.margin / 1000

    def free(self, values: Sequence[float]) -> bool:
        """Return whether all pairs have their margin."""
        scaled = (value / 1000 if slides else value for value, slides in zip(values, self._slides, strict=True))
        q = self._numpy.fromiter(scaled, float, len(self._slides))
        return not self._pin.computeCollisions(self._model, self._data, self._geometry, self._shapes, q, True)

    def distance(self, values: Sequence[float], pairs: Sequence[SolidPair]) -> list[float]:
        """Return the distance of each pair in mm, for comparisons in tests."""
        scaled = (value / 1000 if slides else value for value, slides in zip(values, self._slides, strict=True))
        q = self._numpy.fromiter(scaled, float, len(self._slides))
        self._pin.computeDistances(self._model, self._data, self._geometry, self._shapes, q)
        return [1000 * self._shapes.distanceResults[index].min_distance for index in range(len(pairs))]

    def output(self, values: Sequence[float]) -> list[float]:
        """Return the twelve numbers of the last body, for comparisons in tests."""
        scaled = (value / 1000 if slides else value for value, slides in zip(values, self._slides, strict=True))
        q = self._numpy.fromiter(scaled, float, len(self._slides))
        self._pin.forwardKinematics(self._model, self._data, q)
        place = self._data.oMi[len(self._slides)]
        r, t = place.rotation, place.translation
        return [float(x) for i in range(3) for x in (*r[i], 1000 * t[i])]

    def _placement(self, m: Flat) -> Any:
        rotation = self._numpy.array([m[0:3], m[4:7], m[8:11]], dtype=float)
        return self._pin.SE3(rotation, self._numpy.array([m[3], m[7], m[11]]) / 1000)


def _shape(coal: Any, solid: Solid) -> Any:
    x, y, z = (half / 1000 for half in solid.half)
    if solid.radius and z:
        return coal.Capsule(solid.radius / 1000, 2 * z)
    if solid.radius:
        return coal.Sphere(solid.radius / 1000)
    smallest = 1e-6  # metres: a point, line or plane is a thin box
    return coal.Box(*(2 * max(half, smallest) for half in (x, y, z)))
