"""A simulated rover: its base slips and veers, its position is noisy. All of it follows from a seed."""

from __future__ import annotations

import itertools
import random
import statistics
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import trio

from engine import Attributes, Base, BaseProperties, Extra, GeoPosition, MovementProperties, MovementSensor
from hal.sim import SimBase
from models.driving.plane import Plane, Point
from models.driving.shapes import Shape
from schema import ErrorKind, GeoPoint, MachineError, Vector3
from tests.unit.models.builtin.support import Bench

HOME = GeoPoint(52.5, 13.4)
NOISE = 0.3  # m, standard deviation of each coordinate
HEADING_NOISE = 2.0  # degrees


class SlippingBase(Base):
    """Drives with 85 % of its speed, slips at random, and veers to the left."""

    Config: ClassVar[type[Attributes]] = Attributes
    inner: Base
    stuck = False
    hangs = False

    def __init__(self, context: Any) -> None:
        super().__init__(context)
        self.random = random.Random(7)
        self.stops = 0

    async def set_velocity(self, linear: Vector3, angular: Vector3, *, extra: Extra = None) -> None:
        if self.hangs:
            await trio.sleep_forever()
        grip = 0.0 if self.stuck else 0.85 + self.random.gauss(0.0, 0.1)
        turn = grip * angular.z + linear.y / 100 + self.random.gauss(0.0, 2.0)
        await self.inner.set_velocity(
            Vector3(0.0, grip * linear.y, 0.0), Vector3(0.0, 0.0, 0.0 if self.stuck else turn)
        )

    async def stop(self, *, extra: Extra = None) -> None:
        self.stops += 1
        await self.inner.stop()

    async def is_moving(self) -> bool:
        return await self.inner.is_moving()

    async def get_properties(self, *, extra: Extra = None) -> BaseProperties:
        return await self.inner.get_properties()


class NoisySensor(MovementSensor):
    """Measures position and heading of the simulated base with noise. `fault` replaces a measured position."""

    Config: ClassVar[type[Attributes]] = Attributes
    fault: Callable[[GeoPoint], GeoPoint] | None = None
    hangs = False

    def __init__(self, context: Any) -> None:
        super().__init__(context)
        self.random, self.compass = random.Random(11), random.Random(13)
        self.plane = Plane(HOME)

    async def get_properties(self, *, extra: Extra = None) -> MovementProperties:
        return MovementProperties(position_supported=True, compass_heading_supported=True)

    def _device(self) -> SimBase:
        device = self.world.find(SimBase, "inner")
        assert device is not None
        return device

    async def get_position(self, *, extra: Extra = None) -> GeoPosition:
        await trio.lowlevel.checkpoint()
        if self.hangs:
            await trio.sleep_forever()
        place = self._device().place(self.world.now())
        x, y = place.x / 1000 + self.random.gauss(0.0, NOISE), place.y / 1000 + self.random.gauss(0.0, NOISE)
        point = self.plane.geo(Point(x, y))
        return GeoPosition(self.fault(point) if self.fault is not None else point, 0.0)

    async def get_compass_heading(self, *, extra: Extra = None) -> float:
        await trio.lowlevel.checkpoint()
        return (-self._device().place(self.world.now()).heading + self.compass.gauss(0.0, HEADING_NOISE)) % 360.0


class Rover:
    """The rover on a bench, and where it really is."""

    def __init__(self, bench: Bench, base: SlippingBase, sensor: NoisySensor) -> None:
        self.bench, self.base, self.sensor = bench, base, sensor
        self.track: list[Point] = []
        self.plane = Plane(HOME)

    @property
    def place(self) -> Point:
        device = self.bench.world.find(SimBase, "inner")
        assert device is not None
        place = device.place(self.bench.world.now())
        return Point(place.x / 1000, place.y / 1000)

    @property
    def heading(self) -> float:
        device = self.bench.world.find(SimBase, "inner")
        assert device is not None
        return -device.place(self.bench.world.now()).heading % 360.0

    async def record(self) -> None:
        """Record the track until cancelled."""
        while True:
            self.track.append(self.place)
            await trio.sleep(0.5)

    def errors(self, way: Sequence[Point]) -> list[float]:
        """Return the cross-track error of each recorded point in m, in ascending order."""
        legs = [Shape((first, second), 0.0, "") for first, second in itertools.pairwise(way)]
        return sorted(min(leg.distance(point) for leg in legs) for point in self.track)


def figures(errors: Sequence[float]) -> tuple[float, float, float]:
    """Return the median, the 95th percentile and the maximum."""
    return statistics.median(errors), errors[int(0.95 * (len(errors) - 1))], errors[-1]


async def rover_of(nursery: trio.Nursery) -> Rover:
    """Return a rover with the resources `base` and `gps`."""
    bench = Bench(nursery)
    inner = await bench.add("base", "inner", {"width_mm": 500, "wheel_circumference_mm": 600})
    base = await bench.add("base", "base", cls=SlippingBase)
    base.inner = inner
    sensor = await bench.add("movement_sensor", "gps", cls=NoisySensor)
    return Rover(bench, base, sensor)


def no_fix(point: GeoPoint) -> GeoPoint:
    """Fail like a receiver without a fix."""
    raise MachineError("no fix", kind=ErrorKind.UNAVAILABLE)
