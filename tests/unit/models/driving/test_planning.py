"""Points, shapes and ways on the ground."""

from __future__ import annotations

import itertools
import math
import random
import time

import pytest

from models.driving.plane import Plane, Point, bearing, turn_between
from models.driving.planning import MAX_SHAPES, Ground, Way, plan_way
from models.driving.shapes import Shape, covered, hull, shape_of
from schema import Capsule, ErrorKind, Geometry, GeoPoint, MachineError, Pose, RectangularPrism, Sphere, Vector3

START, GOAL = Point(0.0, 0.0), Point(0.0, 20.0)


def square(x: float, y: float, half: float, label: str = "square") -> Shape:
    corners = ((x - half, y - half), (x + half, y - half), (x + half, y + half), (x - half, y + half))
    return Shape(tuple(Point(*corner) for corner in corners), 0.0, label)


def way_of(ground: Ground, start: Point = START, goal: Point = GOAL) -> Way:
    steps = plan_way(ground, start, goal)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            way: Way = end.value
            return way


def length_of(way: Way) -> float:
    return sum(first.distance(second) for first, second in itertools.pairwise(way))


def test_distances_on_the_globe() -> None:
    plane = Plane(GeoPoint(52.0, 179.9999))
    east = plane.point(GeoPoint(52.0, -179.9999))  # across the date line
    assert east.x == pytest.approx(13.7, abs=0.1)
    north = plane.point(GeoPoint(52.001, 179.9999))
    assert north == (0.0, pytest.approx(111.27, abs=0.05))
    back = plane.geo(Point(30.0, -40.0))
    assert plane.point(back) == pytest.approx((30.0, -40.0))


@pytest.mark.parametrize(
    "point",
    [
        GeoPoint(math.nan, 0.0),
        GeoPoint(0.0, math.inf),
        GeoPoint(91.0, 0.0),
        GeoPoint(0.0, 1e300),
        GeoPoint(53.0, 13.0),
    ],
)
def test_points_that_are_refused(point: GeoPoint) -> None:
    with pytest.raises(MachineError) as caught:
        Plane(GeoPoint(52.0, 13.0)).point(point)
    assert caught.value.kind is ErrorKind.INVALID


def test_directions() -> None:
    assert bearing(START, Point(1.0, 0.0)) == 90.0
    assert turn_between(350.0, 10.0) == 20.0
    assert turn_between(10.0, 350.0) == -20.0


@pytest.mark.parametrize(
    ("geometry", "near", "far"),
    [
        (Geometry(sphere=Sphere(2000.0)), Point(1.9, 0.0), Point(2.1, 0.0)),
        (Geometry(box=RectangularPrism(Vector3(4000.0, 2000.0, 1.0))), Point(1.9, 0.9), Point(1.9, 1.1)),
        (
            Geometry(Pose(theta=90.0), box=RectangularPrism(Vector3(4000.0, 2000.0, 1.0))),
            Point(0.9, 1.9),
            Point(1.9, 0.9),
        ),
        (Geometry(Pose(x=5000.0), capsule=Capsule(1000.0, 3000.0)), Point(5.9, 0.0), Point(3.9, 0.0)),
    ],
)
def test_shapes(geometry: Geometry, near: Point, far: Point) -> None:
    shape = shape_of(geometry, START, "it")
    assert shape.distance(near) == 0
    assert shape.distance(far) > 0.05


@pytest.mark.parametrize(
    "geometry",
    [
        Geometry(sphere=Sphere(math.inf)),
        Geometry(sphere=Sphere(-1.0)),
        Geometry(Pose(x=math.nan), sphere=Sphere(1.0)),
        Geometry(Pose(x=1e300), sphere=Sphere(1.0)),
        Geometry(Pose(o_x=1.0, o_z=0.0), box=RectangularPrism(Vector3(1.0, 1.0, 1.0))),
        Geometry(box=RectangularPrism(Vector3(1e12, 1.0, 1.0))),
    ],
)
def test_shapes_that_are_refused(geometry: Geometry) -> None:
    with pytest.raises(MachineError, match=r"^fence\.0") as caught:
        shape_of(geometry, START, "fence.0")
    assert caught.value.kind is ErrorKind.INVALID


def test_a_free_way_is_straight() -> None:
    assert way_of(Ground([square(5.0, 10.0, 2.0)], margin=1.0)) == (START, GOAL)


def test_around_an_obstacle_with_its_margin() -> None:
    wall = square(0.0, 10.0, 4.0)
    way = way_of(Ground([wall], margin=1.0))
    assert 20.0 < length_of(way) < 25.0
    assert all(wall.distance_of_segment(*leg) >= 1.0 for leg in itertools.pairwise(way))


def test_a_base_near_an_obstacle_may_leave_it() -> None:
    way = way_of(Ground([square(0.0, 3.0, 2.5)], margin=1.0))
    assert way[-1] == GOAL
    assert len(way) > 2


@pytest.mark.parametrize("seed", range(30))
def test_ways_around_many_obstacles_touch_none(seed: int) -> None:
    rng = random.Random(seed)
    shapes = [
        square(rng.uniform(-8, 8), rng.uniform(3, 17), rng.uniform(0.2, 1.0))
        if rng.random() < 0.5
        else Shape((Point(rng.uniform(-8, 8), rng.uniform(3, 17)),), rng.uniform(0.2, 1.0), "pillar")
        for _ in range(20)
    ]
    way = way_of(Ground(shapes, margin=0.3))
    for leg in itertools.pairwise(way):
        assert all(shape.distance_of_segment(*leg) >= 0.3 for shape in shapes)


def test_errors_name_what_is_in_the_way() -> None:
    around = [square(x, y, 3.1) for x, y in ((6.0, 0.0), (-6.0, 0.0), (0.0, 6.0), (0.0, -6.0))]
    with pytest.raises(MachineError, match="no way"):
        way_of(Ground([*around, square(4.0, 4.0, 2.0), square(-4.0, 4.0, 2.0)], margin=0.5))
    with pytest.raises(MachineError, match=r"the destination is in the obstacle 'pond'"):
        way_of(Ground([square(0.0, 20.0, 1.0, "pond")]))
    with pytest.raises(MachineError, match="the base is outside the bounding regions"):
        way_of(Ground(regions=[square(0.0, 20.0, 5.0)]))
    with pytest.raises(MachineError, match="too many"):
        Ground([square(0.0, 9.0, 1.0)] * (MAX_SHAPES + 1))


def test_ways_stay_within_regions_that_overlap() -> None:
    regions = [square(0.0, 0.0, 5.0), square(8.0, 4.0, 5.0), square(8.0, 12.0, 5.0), square(1.0, 18.0, 4.0)]
    way = way_of(Ground(regions=regions))
    assert len(way) > 2
    assert all(covered(regions, *leg) for leg in itertools.pairwise(way))
    assert not covered(regions, START, GOAL)
    with pytest.raises(MachineError, match="no way"):
        way_of(Ground(regions=[regions[0], regions[3]]))


def test_the_most_obstacles_end_in_bounded_time_and_steps() -> None:
    rng = random.Random(3)
    shapes = [Shape((Point(rng.uniform(-40, 40), rng.uniform(4, 90)),), 1.0, "") for _ in range(MAX_SHAPES)]
    ground, goal = Ground(shapes, margin=0.3), Point(0.0, 94.0)
    steps, longest, way = plan_way(ground, START, goal), 0.0, ()
    while not way:
        begin = time.perf_counter()
        try:
            next(steps)
        except StopIteration as end:
            way = end.value
        longest = max(longest, time.perf_counter() - begin)
    assert length_of(way) < 110
    assert longest < 0.5


def test_the_most_regions_end_in_bounded_time_and_steps() -> None:
    regions = [Shape((Point(0.5 * number, 2.0 * number),), 2.0, "") for number in range(MAX_SHAPES)]
    steps, longest = plan_way(Ground(regions=regions), START, Point(49.0, 197.0)), 0.0
    begin = time.perf_counter()
    for _ in steps:
        longest, begin = max(longest, time.perf_counter() - begin), time.perf_counter()
    assert longest < 0.5


def test_the_polygon_of_a_region_is_within_it() -> None:
    region = Shape((Point(0.0, 0.0),), 10.0, "yard")
    assert max(point.distance(START) for point in region.polygon().corners) <= 10.0 + 1e-9


def test_hull_of_a_square_with_points_inside() -> None:
    points = [Point(0, 0), Point(2, 0), Point(2, 2), Point(0, 2), Point(1, 1), Point(1, 0)]
    assert set(hull(points)) == set(points[:4])
