"""The shortest way around shapes, and within regions. Pure."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from models.driving.plane import Point
from models.driving.shapes import Shape, covered, side
from schema import ErrorKind, MachineError

MAX_SHAPES: Final = 100  # obstacles and regions
MAX_TESTS: Final = 500_000  # comparisons of a line with a shape, a few seconds
MAX_WAITING: Final = 200_000  # lines that wait for their test
PAUSE: Final = 100  # comparisons between two pauses

Way = tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class Ground:
    """Obstacles, from which a base keeps `margin` metres, and regions: without any, everywhere is allowed."""

    obstacles: Sequence[Shape] = ()
    regions: Sequence[Shape] = ()
    margin: float = 0.0

    def __post_init__(self) -> None:
        count = len(self.obstacles) + len(self.regions)
        if count > MAX_SHAPES:
            raise MachineError(
                f"{count} obstacles and regions are too many",
                kind=ErrorKind.EXHAUSTED,
                remedy=f"use at most {MAX_SHAPES}, of which one may stand for several",
            )

    def problem_at(self, point: Point) -> str:
        """Return why a base must not be at a point, such as `in the obstacle 'pond'`; empty if it may be there."""
        for obstacle in self.obstacles:
            if not obstacle.distance(point):
                return f"in the obstacle {obstacle.label!r}"
        if self.regions and not any(not region.distance(point) for region in self.regions):
            return "outside the bounding regions"
        return ""


def plan_way(ground: Ground, start: Point, goal: Point) -> Generator[None, None, Way]:
    """Return the shortest way; it pauses regularly, so that other tasks can run.

    A base that is nearer to an obstacle than the margin may leave it, and reach a goal that is. Raises PRECONDITION if
    there is no way, or the start or the goal is where the base must not be.
    """
    for point, what in ((start, "the base"), (goal, "the destination")):
        if problem := ground.problem_at(point):
            raise MachineError(
                f"{what} is {problem}", kind=ErrorKind.PRECONDITION, remedy="change the place, or the shape"
            )
    search = _Search(ground, start, goal)
    way = yield from search.run()
    return way


class _Corner(NamedTuple):
    """A point where a way may bend, and its neighbours in the outline around an obstacle; none elsewhere."""

    point: Point
    before: Point | None = None
    after: Point | None = None

    def touches(self, other: Point) -> bool:
        """Return whether the line from `other` passes the obstacle here: a shortest way bends nowhere else."""
        if self.before is None or self.after is None:
            return True
        return side(other, self.point, self.before) * side(other, self.point, self.after) >= 0


class _Search:
    def __init__(self, ground: Ground, start: Point, goal: Point) -> None:
        self._regions = [region.polygon() for region in ground.regions]
        self._walls = []
        self._corners = [_Corner(start), _Corner(goal)]
        for obstacle in ground.obstacles:
            near = min(obstacle.distance(start), obstacle.distance(goal))
            margin = min(ground.margin, near * 0.999)
            self._walls.append((obstacle.box(margin), obstacle, margin))
            outline = obstacle.around(ground.margin)
            if near <= 1.2 * ground.margin:  # no line touches an outline that it begins in
                self._corners += map(_Corner, outline)
                continue
            size = len(outline)
            self._corners += [
                _Corner(point, outline[i - 1], outline[(i + 1) % size]) for i, point in enumerate(outline)
            ]
        self._tests = 0

    def run(self) -> Generator[None, None, Way]:
        """Search with A*; a line is tested only when the search gets to its end."""
        for first, second in itertools.combinations(self._regions, 2):
            self._tests += 10  # it is as much work as that many comparisons
            if not self._tests % PAUSE:
                yield
            if (meeting := _meeting(first, second)) is not None:
                self._corners.append(_Corner(meeting))
        corners, goal = self._corners, self._corners[1].point
        order = itertools.count()
        queue = [(0.0, next(order), 0, 0, 0.0)]  # estimated length, number, corner, the one before, length so far
        before: dict[int, int] = {}
        while queue:
            _, _, number, origin, length = heapq.heappop(queue)
            here = corners[number].point
            if number in before or (number and not (yield from self._free(corners[origin].point, here))):
                continue
            before[number] = origin
            if number == 1:
                return self._way(before)
            for other, corner in enumerate(corners):
                if not other % MAX_SHAPES:
                    yield
                if other in before or not corner.touches(here) or not corners[number].touches(corner.point):
                    continue
                so_far = length + here.distance(corner.point)
                heapq.heappush(queue, (so_far + corner.point.distance(goal), next(order), other, number, so_far))
            self._check(len(queue))
            yield
        raise MachineError(
            "there is no way to the destination around the obstacles and within the bounding regions",
            kind=ErrorKind.PRECONDITION,
            remedy="move the destination, or change the shapes",
        )

    def _check(self, waiting: int) -> None:
        if self._tests > MAX_TESTS or waiting > MAX_WAITING:
            raise MachineError(
                "the search for a way has become too large",
                kind=ErrorKind.EXHAUSTED,
                remedy="use fewer obstacles, or drive in several parts",
            )

    def _way(self, before: dict[int, int]) -> Way:
        number, way = 1, [self._corners[1].point]
        while number:
            number = before[number]
            way.append(self._corners[number].point)
        return tuple(reversed(way))

    def _free(self, start: Point, end: Point) -> Generator[None, None, bool]:
        low_x, high_x = sorted((start.x, end.x))
        low_y, high_y = sorted((start.y, end.y))
        for (left, bottom, right, top), obstacle, margin in self._walls:
            if high_x < left or low_x > right or high_y < bottom or low_y > top:
                continue
            self._tests += 1
            if not self._tests % PAUSE:
                self._check(0)
                yield
            distance = obstacle.distance_of_segment(start, end)
            if not distance or distance < margin:
                return False
        if not self._regions:
            return True
        self._tests += len(self._regions)
        self._check(0)
        yield
        return covered(self._regions, start, end)


def _meeting(first: Shape, second: Shape) -> Point | None:
    """Return a point in both of two convex shapes; None if they do not overlap."""
    middles = [
        Point(
            sum(corner.x for corner in shape.corners) / len(shape.corners),
            sum(corner.y for corner in shape.corners) / len(shape.corners),
        )
        for shape in (first, second)
    ]
    parts = [shape.inside(*middles) for shape in (first, second)]
    if parts[0] is None or parts[1] is None:
        return None
    low, high = max(parts[0][0], parts[1][0]), min(parts[0][1], parts[1][1])
    if low > high:
        return None
    share = (low + high) / 2
    start, end = middles
    return Point(start.x + share * (end.x - start.x), start.y + share * (end.y - start.y))
