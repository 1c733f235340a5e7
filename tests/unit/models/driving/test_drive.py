"""The drive of a simulated rover that slips, veers, and has a noisy position."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import structlog
import trio
from trio.testing import MockClock

from models.driving.drive import Blocked, Destination, Driver, DriveSettings, Lost
from models.driving.locating import locator_of
from models.driving.plane import Plane, Point
from models.driving.planning import Ground
from models.driving.shapes import Shape
from schema import ErrorKind, GeoPoint, MachineError
from tests.unit.models.driving.rover import HOME, Rover, figures, no_fix, rover_of

TOUR = [Point(0.0, 10.0), Point(10.0, 10.0), Point(10.0, 0.0), Point(0.0, 0.0)]
SETTINGS = DriveSettings(speed=0.5, turn=40.0, position_hz=2.0)


@pytest.fixture
async def rover(nursery: trio.Nursery) -> Rover:
    return await rover_of(nursery)


async def driver_of(
    rover: Rover, ground: Callable[[], Ground] = Ground, settings: DriveSettings = SETTINGS, **more: Any
) -> tuple[Driver, list[tuple[Sequence[Point], str]]]:
    plans: list[tuple[Sequence[Point], str]] = []

    def planned(way: Sequence[Point], reason: str) -> None:
        plans.append((way, reason))

    locator = await locator_of(rover.sensor)
    log = structlog.get_logger("test")
    driver = Driver(rover.base, locator, Plane(HOME), settings, ground=ground, planned=planned, log=log, **more)
    await driver.locate()
    return driver, plans


async def go(driver: Driver, point: Point, heading: float | None = None) -> None:
    destination = Destination(point, heading)
    await driver.plan(destination)
    await driver.drive(destination)


async def test_cross_track_error_of_a_tour(
    autojump_clock: MockClock, rover: Rover, capsys: pytest.CaptureFixture[str]
) -> None:
    driver, _ = await driver_of(rover)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(rover.record)
        for point in TOUR:
            await go(driver, point)
            assert rover.place.distance(point) < 0.8
            assert not await rover.base.is_moving()
        nursery.cancel_scope.cancel()
    median, most, worst = figures(rover.errors([Point(0.0, 0.0), *TOUR]))
    with capsys.disabled():
        print(f"\ncross-track error: median {median:.2f} m, 95 % {most:.2f} m, maximum {worst:.2f} m")
    assert median < 0.3
    assert most < 0.8
    assert worst < 1.2


async def test_the_heading_at_the_end(autojump_clock: MockClock, rover: Rover) -> None:
    driver, _ = await driver_of(rover)
    await go(driver, Point(3.0, 0.0), 180.0)
    assert abs(math.remainder(rover.heading - 180.0, 360.0)) < 8.0


async def test_around_an_obstacle(autojump_clock: MockClock, rover: Rover) -> None:
    pond = Shape((Point(0.0, 6.0),), 2.0, "pond")
    driver, plans = await driver_of(rover, lambda: Ground([pond], margin=0.8))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(rover.record)
        await go(driver, Point(0.0, 12.0))
        nursery.cancel_scope.cancel()
    assert len(plans[0][0]) > 2
    assert min(pond.distance(point) for point in rover.track) > 0.1
    assert rover.place.distance(Point(0.0, 12.0)) < 0.8


async def test_a_deviation_plans_again(autojump_clock: MockClock, rover: Rover) -> None:
    settings = DriveSettings(speed=0.5, turn=40.0, position_hz=2.0, deviation=0.8)
    driver, plans = await driver_of(rover, settings=settings)
    destination = Destination(Point(0.0, 20.0))
    await driver.plan(destination)

    async def push() -> None:
        await trio.sleep(10)
        rover.sensor.fault = lambda point: GeoPoint(point.latitude, point.longitude + 3e-5)  # 2 m to the east

    async with trio.open_nursery() as nursery:
        nursery.start_soon(push)
        await driver.drive(destination)
    assert len(plans) > 1
    assert "off the plan" in plans[1][1]


@pytest.mark.parametrize(
    "fault",
    [
        no_fix,
        lambda point: GeoPoint(0.0, 0.0),
        lambda point: GeoPoint(math.nan, 1.0),
        lambda point: GeoPoint(point.latitude + 1e-3, point.longitude),
    ],
)
async def test_without_a_position_the_base_stops_and_continues_with_one(
    autojump_clock: MockClock, rover: Rover, fault: Any
) -> None:
    driver, _ = await driver_of(rover)
    destination = Destination(Point(0.0, 10.0))
    await driver.plan(destination)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(driver.drive, destination)
        await trio.sleep(6)
        assert await rover.base.is_moving()
        rover.sensor.fault = fault
        await trio.sleep(4)
        assert not await rover.base.is_moving()
        assert not driver.localized
        place = rover.place
        await trio.sleep(4)
        assert rover.place == place
        rover.sensor.fault = None
    assert driver.localized
    assert rover.place.distance(Point(0.0, 10.0)) < 0.8


async def test_a_position_that_does_not_come_back_is_a_failure(autojump_clock: MockClock, rover: Rover) -> None:
    driver, _ = await driver_of(rover)
    destination = Destination(Point(0.0, 10.0))
    await driver.plan(destination)
    rover.sensor.hangs = True
    with pytest.raises(Lost, match="no position for"):
        await driver.drive(destination)
    assert not await rover.base.is_moving()
    assert trio.current_time() < 60


async def test_a_base_that_does_not_move_is_a_failure(autojump_clock: MockClock, rover: Rover) -> None:
    driver, _ = await driver_of(rover)
    rover.base.stuck = True
    with pytest.raises(MachineError, match="are left after") as caught:
        await go(driver, Point(0.0, 5.0))
    assert caught.value.kind is ErrorKind.TIMEOUT


async def test_a_base_that_hangs_is_a_failure(autojump_clock: MockClock, rover: Rover) -> None:
    driver, _ = await driver_of(rover)
    rover.base.hangs = True
    with pytest.raises(MachineError, match="within 2 s"):
        await go(driver, Point(0.0, 5.0))
    assert rover.base.stops == 1


async def test_a_region_that_appears_stops_the_base_outside_of_it(autojump_clock: MockClock, rover: Rover) -> None:
    region = [Shape((Point(0.0, 0.0),), 5.0, "yard")]
    driver, _ = await driver_of(rover, lambda: Ground(regions=region))
    destination = Destination(Point(0.0, 4.0))
    await driver.plan(destination)
    region[0] = Shape((Point(20.0, 0.0),), 5.0, "elsewhere")
    with pytest.raises(Blocked, match="outside the bounding regions"):
        await driver.drive(destination)
    assert not await rover.base.is_moving()


async def test_a_cancelled_drive_stops(autojump_clock: MockClock, rover: Rover) -> None:
    driver, _ = await driver_of(rover)
    with trio.move_on_after(5):
        await go(driver, Point(0.0, 10.0))
    assert not await rover.base.is_moving()


async def test_a_limit_of_the_speed(autojump_clock: MockClock, rover: Rover) -> None:
    driver, _ = await driver_of(rover, speed_at=lambda point: 0.1)
    with trio.move_on_after(20):
        await go(driver, Point(0.0, 10.0))
    assert 1.0 < rover.place.y < 2.4
