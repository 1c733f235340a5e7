"""The goal of a navigation service, and the task that drives to it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final

import trio

from engine import (
    Base,
    GeoGeometry,
    NavError,
    NavErrorCode,
    NavGeoPose,
    NavGoal,
    NavGoalState,
    NavMode,
    NavPosition,
    NavProgress,
    NavRouteProgress,
    NavWaypoint,
    Resource,
)
from models.driving.drive import Blocked, Destination, Driver, DriveSettings, Lost, stepwise
from models.driving.globe import shapes_of
from models.driving.locating import GlobeLocator
from models.driving.plane import Plane, Point
from models.driving.planning import Ground, Way, plan_way
from models.driving.shapes import Shape
from models.navigation.attributes import NavigationConfig
from models.navigation.store import NavigationStore, check_position
from models.navigation.zones import KEEPOUT, anchor, shape_of_zone
from schema import ErrorKind, GeoPoint, MachineError

MAX_MESSAGE: Final = 1000  # characters of the error of a goal


@dataclass(slots=True, eq=False)
class Goal:
    """What the base is to do. It has ended when `ended` is set; the base then stands still."""

    mode: NavMode
    stops: Sequence[NavWaypoint]
    speed: float = math.inf
    route: str | None = None
    loop: bool = False
    index: int = 0
    lap: int = 0
    state: NavGoalState = NavGoalState.ACTIVE
    suspend_reason: str | None = None
    error: NavError | None = None
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    finished_at: datetime | None = None
    scope: trio.CancelScope = field(default_factory=trio.CancelScope)  # of the drive
    resting: trio.Event = field(default_factory=trio.Event)  # set while the base does not drive
    changed: trio.Event = field(default_factory=trio.Event)
    ended: trio.Event = field(default_factory=trio.Event)

    @property
    def over(self) -> bool:
        """Whether the state is final."""
        return self.state not in (NavGoalState.ACTIVE, NavGoalState.SUSPENDED)

    def finish(self, state: NavGoalState, error: NavError | None = None) -> None:
        """Set the final state, once."""
        if not self.over:
            self.state, self.error, self.finished_at = state, error, datetime.now(UTC)
            self.interrupt()

    def interrupt(self) -> None:
        """End the drive in progress; the state decides what follows."""
        self.scope.cancel()
        self.changed.set()

    def message(self, progress: NavProgress | None, target: NavPosition | None) -> NavGoal:
        """Return the message of the API."""
        stop = self.stops[min(self.index, len(self.stops) - 1)]
        route = None
        if self.mode is NavMode.ROUTE:
            route = NavRouteProgress(self.route or "", tuple(self.stops), self.index, self.loop, self.lap)
        return NavGoal(
            self.state,
            self.mode,
            target,
            stop.location or None,
            progress if self.state is NavGoalState.ACTIVE else None,
            route,
            self.suspend_reason if self.state is NavGoalState.SUSPENDED else None,
            self.error,
            self.started_at,
            self.finished_at,
        )


class Pilot:
    """Drives a base to goals, around the zones in `store` and what the configuration forbids."""

    def __init__(
        self, service: Resource, base: Base, locator: GlobeLocator, store: NavigationStore, margin: float
    ) -> None:
        config: NavigationConfig = service.attributes
        self._service, self._base, self.locator, self._store = service, base, locator, store
        self._margin = margin
        self.settings = DriveSettings(
            config.meters_per_sec, config.degs_per_sec, config.position_polling_frequency_hz, config.plan_deviation_m
        )
        self._obstacles, self._regions = (
            [GeoGeometry(*each.shapes()) for each in group] for group in (config.obstacles, config.bounding_regions)
        )
        self.driver: Driver | None = None  # while it drives
        self.plane: Plane | None = None  # of `driver`
        self._grounds: tuple[object, Ground, list[tuple[Shape, float]]] | None = None

    # ---- the ground

    def ground(self, plane: Plane, *, direct: bool = False) -> Ground:
        """Return what must be driven around, and what must not be left; a direct drive only knows the latter."""
        ground = self._ground_and_limits(plane)[0]
        return replace(ground, obstacles=()) if direct else ground

    def _ground_and_limits(self, plane: Plane) -> tuple[Ground, list[tuple[Shape, float]]]:
        key = (plane, self._store.zones.version)
        if self._grounds is None or self._grounds[0] != key:
            near = [zone for zone in self._store.zones.all() if _is_near(plane, anchor(zone.geometry))]
            keepouts = [shape_of_zone(zone, plane) for zone in near if zone.type == KEEPOUT]
            limits = [(shape_of_zone(zone, plane), zone.max_speed or 0.0) for zone in near if zone.type != KEEPOUT]
            obstacles = [each for each in self._obstacles if _is_near(plane, each.location)]
            ground = Ground(
                [*shapes_of(plane, obstacles, "obstacles"), *keepouts],
                shapes_of(plane, self._regions, "bounding_regions"),
                self._margin,
            )
            self._grounds = (key, ground, limits)
        return self._grounds[1], self._grounds[2]

    def _speed_at(self, plane: Plane, point: Point) -> float:
        return min(
            (speed for shape, speed in self._ground_and_limits(plane)[1] if not shape.distance(point)), default=math.inf
        )

    # ---- ways and goals

    async def way(self, start: GeoPoint, destination: GeoPoint) -> tuple[Plane, Way]:
        """Return the plane and the way between two points. Blocked if there is none."""
        plane = Plane(start)
        steps = plan_way(self.ground(plane), Point(0.0, 0.0), plane.point(destination, "the destination"))
        return plane, await stepwise(steps)

    async def run(self, goal: Goal, *, task_status: trio.TaskStatus[None]) -> None:
        """Drive until the goal has ended; `task_status` is started with the first plan. Raises errors until then."""
        begun = False

        def begin() -> None:
            nonlocal begun
            if not begun:
                begun = True
                task_status.started()

        def planned(way: Way, reason: str) -> None:
            begin()
            if reason:
                self._service.log.info("a new plan", reason=reason)

        try:
            with self._service.reserve(f"the drive of {self._base.name.short}"):
                while not goal.over:
                    goal.changed = trio.Event()
                    if goal.state is NavGoalState.SUSPENDED:
                        begin()
                        goal.resting.set()
                        await goal.changed.wait()
                        continue
                    goal.resting = trio.Event()
                    with trio.CancelScope() as goal.scope:
                        await self._drive(goal, planned)
                        goal.finish(NavGoalState.SUCCEEDED)
            begin()
        except Exception as error:
            goal.finish(NavGoalState.FAILED, NavError(_code(error), str(error)[:MAX_MESSAGE]))
            if not begun:
                raise
            write = self._service.log.warning if isinstance(error, MachineError) else self._service.log.exception
            write("the goal has failed", error=str(error))
        finally:
            goal.finish(NavGoalState.CANCELED)
            self.driver = self.plane = None
            goal.resting.set()
            goal.ended.set()

    async def _drive(self, goal: Goal, planned: Callable[[Way, str], None]) -> None:
        plane = Plane(await self.locator.position())
        direct = goal.mode is NavMode.DIRECT
        driver = Driver(
            self._base,
            self.locator,
            plane,
            replace(self.settings, speed=min(self.settings.speed, goal.speed)),
            ground=lambda: self.ground(plane, direct=direct),
            planned=planned,
            log=self._service.log,
            speed_at=lambda point: self._speed_at(plane, point),
        )
        await driver.locate()
        self.driver, self.plane = driver, plane
        while True:
            position = self._store.position_of(goal.stops[goal.index])
            point = plane.point(check_position(position, "the destination"), "the destination")
            heading = position.geo_pose.heading if position.geo_pose is not None else None
            destination = Destination(point, heading)
            await driver.plan(destination)
            await driver.drive(destination)
            if goal.index + 1 < len(goal.stops):
                goal.index += 1
            elif goal.loop:
                goal.index, goal.lap = 0, goal.lap + 1
            else:
                return

    def progress(self) -> NavProgress | None:
        """Return what is left of the way; None while nothing is driven."""
        if self.driver is None or self.driver.follower is None or self.plane is None:
            return None
        follower = self.driver.follower
        return NavProgress(follower.left, positions(self.plane, follower.way), follower.length)


def positions(plane: Plane, way: Sequence[Point]) -> list[NavPosition]:
    """Return a way as places on the globe."""
    return [NavPosition(geo_pose=NavGeoPose(plane.geo(point))) for point in way]


def _is_near(plane: Plane, point: GeoPoint) -> bool:
    try:
        plane.point(point)
    except MachineError:
        return False
    return True


def _code(error: Exception) -> NavErrorCode:
    if isinstance(error, Lost):
        return NavErrorCode.LOCALIZATION_LOST
    if isinstance(error, Blocked):
        return NavErrorCode.NO_PATH
    kind = error.kind if isinstance(error, MachineError) else None
    if kind is ErrorKind.TIMEOUT:
        return NavErrorCode.TIMEOUT
    return NavErrorCode.BASE_ERROR if kind in (ErrorKind.UNAVAILABLE, ErrorKind.UNSUPPORTED) else NavErrorCode.OTHER
