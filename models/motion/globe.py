"""Drives of bases to points on the globe. Loaded with the first one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import trio

from engine import (
    Base,
    ComponentState,
    GeoGeometry,
    MotionConfiguration,
    MovementSensor,
    PlanStep,
    Resource,
    Unsupported,
)
from models.driving.drive import Destination, Driver, DriveSettings
from models.driving.globe import find_door, margin_of, shapes_of
from models.driving.locating import locator_of
from models.driving.plane import Plane, bearing, check_geo
from models.driving.planning import MAX_SHAPES, Ground, Way
from models.motion.executions import Executions
from schema import ErrorKind, GeoPoint, MachineError, Pose


@dataclass(frozen=True, slots=True)
class GlobeRequest:
    """A drive of a base to a point on the globe."""

    base: str
    sensor: str
    destination: GeoPoint
    heading: float | None
    obstacles: Sequence[GeoGeometry]
    regions: Sequence[GeoGeometry]
    settings: DriveSettings


def request_of(
    base: str,
    sensor: str,
    destination: GeoPoint | None,
    heading: float | None,
    obstacles: Sequence[GeoGeometry],
    regions: Sequence[GeoGeometry],
    configuration: MotionConfiguration | None,
) -> GlobeRequest:
    """Return a checked request. INVALID for a value that is missing or out of range, Unsupported for detectors."""
    for value, field in ((base, "component_name"), (sensor, "movement_sensor_name")):
        if not value:
            raise MachineError(f"{field} is empty", kind=ErrorKind.INVALID, remedy=f"set {field}")
    if destination is None:
        raise MachineError("there is no destination", kind=ErrorKind.INVALID, remedy="set destination")
    check_geo(destination, "the destination")
    if heading is not None and not math.isfinite(heading):
        raise MachineError(f"heading is {heading}", kind=ErrorKind.INVALID, remedy="use 0 to 360 degrees")
    check_count(obstacles, regions)
    settings = settings_of(configuration or MotionConfiguration())
    return GlobeRequest(base, sensor, destination, heading, obstacles, regions, settings)


def check_count(*groups: Sequence[GeoGeometry]) -> None:
    """Raise EXHAUSTED for too many shapes."""
    count = sum(len(each.geometries) for group in groups for each in group)
    if count > MAX_SHAPES:
        raise MachineError(
            f"{count} obstacles and regions are too many", kind=ErrorKind.EXHAUSTED, remedy=f"use at most {MAX_SHAPES}"
        )


def settings_of(configuration: MotionConfiguration) -> DriveSettings:
    """Return the settings of a drive; a value that is not set, or 0, is the default."""
    if configuration.obstacle_detectors:
        raise Unsupported("obstacle detectors are not built", remedy="name the obstacles in the request")
    defaults = DriveSettings()

    def value(field: str, default: float, low: float, high: float) -> float:
        number: float | None = getattr(configuration, field)
        if not number:
            return default
        if not low <= number <= high:
            raise MachineError(
                f"motion_configuration.{field} is {number:g}",
                kind=ErrorKind.INVALID,
                remedy=f"use {low:g} to {high:g}",
            )
        return number

    return DriveSettings(
        speed=value("linear_m_per_sec", defaults.speed, 0.05, 10.0),
        turn=value("angular_degs_per_sec", defaults.turn, 1.0, 360.0),
        position_hz=value("position_polling_frequency_hz", defaults.position_hz, 0.1, 10.0),
        deviation=value("plan_deviation_m", defaults.deviation, 0.3, 1000.0),
    )


async def drive(
    service: Resource, executions: Executions, request: GlobeRequest, *, task_status: trio.TaskStatus[str]
) -> None:
    """Drive; `task_status` gets the id of the execution when the first plan is made. Raises errors until then."""
    await executions.replace(request.base)
    begun = False
    try:
        with executions.running(request.base, request.base) as execution:
            base_door, sensor_door = (
                find_door(service, cls, name) for cls, name in ((Base, request.base), (MovementSensor, request.sensor))
            )
            async with base_door.use() as base, sensor_door.use() as sensor:
                assert isinstance(base, Base)
                assert isinstance(sensor, MovementSensor)
                with service.reserve(f"the drive of {base.name.short}"):
                    locator = await locator_of(sensor)
                    plane = Plane(await locator.position())
                    margin = await margin_of(base)
                    ground = Ground(
                        shapes_of(plane, request.obstacles, "obstacles"),
                        shapes_of(plane, request.regions, "bounding_regions"),
                        margin,
                    )

                    def planned(way: Way, reason: str) -> None:
                        steps = _steps(request.base, way)
                        if reason:
                            execution.replan(steps, reason)
                        else:
                            execution.steps = steps

                    driver = Driver(
                        base, locator, plane, request.settings, ground=lambda: ground, planned=planned, log=service.log
                    )
                    await driver.locate()
                    destination = Destination(plane.point(request.destination, "the destination"), request.heading)
                    await driver.plan(destination)
                    task_status.started(execution.id)
                    begun = True
                    await driver.drive(destination)
    except Exception as error:
        if not begun:
            raise
        write = service.log.warning if isinstance(error, MachineError) else service.log.exception
        write("a drive has ended before its destination", base=request.base, error=str(error))


def _steps(base: str, way: Way) -> list[PlanStep]:
    steps, before = [], way[0]
    direction = bearing(way[0], way[1]) if len(way) > 1 else 0.0
    for point in way:
        direction = bearing(before, point) if point != before else direction
        before = point
        pose = Pose(point.x * 1000, point.y * 1000, 0.0, theta=-direction)
        steps.append(PlanStep({base: ComponentState(pose)}))
    return steps
