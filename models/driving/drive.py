"""Drives a base along ways to destinations, by where it is measured to be."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import structlog
import trio

from engine import Base
from models.common.motion import run_shielded
from models.driving.estimating import Estimate
from models.driving.following import Follower, Place, Velocity
from models.driving.locating import GlobeLocator
from models.driving.plane import Plane, Point
from models.driving.planning import Ground, Way, plan_way
from schema import ErrorKind, MachineError, Vector3

CONTROL_HZ: Final = 5.0
COMMAND_LIMIT: Final = 2.0  # seconds in which the base must take a command
LOST_AFTER: Final = 2.0  # seconds, or three positions, without which the base stops and waits
GIVE_UP_AFTER: Final = 30.0  # seconds without a position, after which a drive fails
PATIENCE: Final = 4.0  # times the time that a way needs, after which it has failed
SPARE: Final = 60.0  # seconds more
MAX_REPLANS: Final = 50


@dataclass(frozen=True, slots=True)
class DriveSettings:
    """How a base drives: its speeds (m/s, degrees/s), how often it looks where it is, and when it plans again."""

    speed: float = 0.3
    turn: float = 20.0
    position_hz: float = 1.0
    deviation: float = 2.6  # m

    @property
    def lost_after(self) -> float:
        """Seconds without a position, after which the base stops."""
        return max(LOST_AFTER, 3 / self.position_hz)


@dataclass(frozen=True, slots=True)
class Destination:
    """A point, and the heading there in degrees clockwise from north; None for any."""

    point: Point
    heading: float | None = None


class Blocked(MachineError):
    """There is no way, or the base is where it must not be."""

    kind = ErrorKind.PRECONDITION


class Lost(MachineError):
    """Nothing says where the base is."""

    kind = ErrorKind.UNAVAILABLE


class Driver:
    """Drives `base` on the ground that `ground()` describes now. One drive at a time.

    `planned(way, reason)` is called with each plan, and why it replaces the one before, empty for the first.
    `speed_at(point)` limits the speed (m/s) at a place.
    """

    def __init__(
        self,
        base: Base,
        locator: GlobeLocator,
        plane: Plane,
        settings: DriveSettings,
        *,
        ground: Callable[[], Ground],
        planned: Callable[[Way, str], None],
        log: structlog.stdlib.BoundLogger,
        speed_at: Callable[[Point], float] = lambda point: math.inf,
    ) -> None:
        self._base, self._locator, self._plane, self._settings = base, locator, plane, settings
        self._ground, self._planned, self._log, self._speed_at = ground, planned, log, speed_at
        self.estimate: Estimate | None = None
        self.velocity = Velocity(0.0, 0.0)
        self.follower: Follower | None = None
        self.localized = False
        self._fixed = trio.current_time()  # when the last position was believed
        self._problem = ""

    async def locate(self) -> Place:
        """Measure where the base is, without the estimate so far. Lost without a position."""
        try:
            place = await self._locator.place(self._plane)
        except (MachineError, NotImplementedError) as error:
            raise Lost(f"there is no position: {error}", remedy="wait for a fix, and try again") from error
        self.estimate, self._fixed, self.localized = Estimate(place), trio.current_time(), True
        return place

    async def plan(self, destination: Destination, reason: str = "") -> Follower:
        """Plan a way from the estimated place. Blocked if there is none."""
        assert self.estimate is not None
        start = self.estimate.place.point
        way = await stepwise(plan_way(self._ground(), start, destination.point))
        self.follower = Follower(way, self._settings.speed, self._settings.turn, destination.heading)
        self._planned(way, reason)
        return self.follower

    async def drive(self, destination: Destination) -> None:
        """Drive to a destination along the plan made before, or again if the base gets off it.

        Stops the base in any case. Raises Blocked, Lost, or MachineError: TIMEOUT, and errors of the base.
        """
        replans = 0
        follower = self.follower or await self.plan(destination)
        deadline = trio.current_time() + PATIENCE * follower.seconds + SPARE
        next_position = trio.current_time() + 1 / self._settings.position_hz
        last = trio.current_time()
        try:
            while True:
                await trio.sleep_until(last + 1 / CONTROL_HZ)
                now = trio.current_time()
                if now > deadline:
                    raise MachineError(
                        f"{follower.left:.1f} m are left after {PATIENCE:g} times the time that the way needs",
                        kind=ErrorKind.TIMEOUT,
                        remedy="check whether the base moves, and whether the sensor measures it",
                    )
                measured = await self._measure(now - last, position=now >= next_position)
                last = now
                if now >= next_position:
                    next_position = now + 1 / self._settings.position_hz
                if not measured:
                    continue
                assert self.estimate is not None
                place = self.estimate.place
                if problem := self._ground().problem_at(place.point):
                    raise Blocked(f"the base is {problem}", remedy="drive it out by hand")
                velocity = follower.step(place)
                if velocity is None:
                    return
                if follower.off > self._settings.deviation:
                    await self._rest()
                    replans += 1
                    if replans > MAX_REPLANS:
                        raise Blocked(f"the base has left {MAX_REPLANS} plans")
                    follower = await self.plan(destination, f"{follower.off:.1f} m off the plan")
                    deadline = max(deadline, trio.current_time() + PATIENCE * follower.seconds + SPARE)
                    continue
                limit = self._speed_at(place.point)
                if velocity.forward > limit:
                    velocity = Velocity(limit, velocity.turn * limit / velocity.forward)
                await self._command(velocity)
        finally:
            await run_shielded(self._stop)

    async def _measure(self, seconds: float, *, position: bool) -> bool:
        """Update the estimate; return whether it is recent. Lost if it has not been for too long."""
        assert self.estimate is not None
        try:
            if position:
                before = trio.current_time()
                place = await self._locator.place(self._plane)
                self.estimate.drive(place.heading, self.velocity.forward, seconds)
                self._correct(place.point, before)
            else:
                self.estimate.drive(await self._locator.heading(), self.velocity.forward, seconds)
        except (MachineError, NotImplementedError) as error:
            self._problem = str(error) or "not supported"
            if not position:
                return await self._without_position()
        if trio.current_time() - self._fixed <= self._settings.lost_after:
            return True
        return await self._without_position()

    def _correct(self, point: Point, now: float) -> None:
        assert self.estimate is not None
        since = now - self._fixed
        if self.estimate.correct(point, since, self._settings.speed):
            if not self.localized:
                self._log.info("there is a position again", seconds=round(since, 1))
            self._fixed, self.localized = now, True
        else:
            self._problem = f"the position has jumped by {self.estimate.place.point.distance(point):.0f} m"

    async def _without_position(self) -> bool:
        since = trio.current_time() - self._fixed
        if since > GIVE_UP_AFTER:
            raise Lost(f"there has been no position for {since:.0f} s: {self._problem}", remedy="check the sensor")
        if self.localized:
            self._log.warning("the base stops until there is a position", reason=self._problem)
            self.localized = False
        await self._rest()
        return False

    async def _rest(self) -> None:
        if self.velocity != Velocity(0.0, 0.0):
            await self._within(self._base.stop)
            self.velocity = Velocity(0.0, 0.0)

    async def _command(self, velocity: Velocity) -> None:
        self.velocity = velocity
        linear, angular = Vector3(0.0, velocity.forward * 1000, 0.0), Vector3(0.0, 0.0, velocity.turn)
        await self._within(partial(self._base.set_velocity, linear, angular))

    async def _within(self, call: Callable[[], Awaitable[Any]]) -> None:
        with trio.move_on_after(COMMAND_LIMIT) as limit:
            await call()
        if limit.cancelled_caught:
            raise MachineError(
                f"{self._base.name.short} has not taken a command within {COMMAND_LIMIT:g} s",
                kind=ErrorKind.TIMEOUT,
                remedy="check what drives it",
            )

    async def _stop(self) -> None:
        self.velocity = Velocity(0.0, 0.0)
        await self._base.stop()


async def stepwise(steps: Generator[None, None, Way]) -> Way:
    """Return the way; other tasks run at each pause of the computation. Blocked if there is none."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: Way = end.value
            return result
        except MachineError as error:
            raise Blocked(error.message, remedy=error.remedy) from None
        await trio.lowlevel.checkpoint()
