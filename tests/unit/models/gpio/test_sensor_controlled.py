"""The base `sensor-controlled`, on a simulated base that moves differently from what is commanded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import pytest
import trio
import trio.testing

from engine import Attributes, Base, BaseProperties, Extra, MovementProperties, MovementSensor
from hal.sim import SimBase
from models.wheels.sensor_controlled.model import SensorControlledBase
from schema import ErrorKind, MachineError, Vector3
from tests.unit.models.builtin.support import Bench

MODEL = "rdk:builtin:sensor-controlled"


class SkewedBase(Base):
    """Drives a simulated base with 70 % of the speed, and to the left while it drives."""

    Config: ClassVar[type[Attributes]] = Attributes
    inner: Base
    stuck = False

    async def set_velocity(self, linear: Vector3, angular: Vector3, *, extra: Extra = None) -> None:
        forward = 0.0 if self.stuck else 0.7 * linear.y
        turn = 0.0 if self.stuck else 0.7 * angular.z + linear.y / 40
        await self.inner.set_velocity(Vector3(0.0, forward, 0.0), Vector3(0.0, 0.0, turn))

    async def set_power(self, linear: Vector3, angular: Vector3, *, extra: Extra = None) -> None:
        await self.inner.set_power(linear, angular)

    async def stop(self, *, extra: Extra = None) -> None:
        await self.inner.stop()

    async def is_moving(self) -> bool:
        return await self.inner.is_moving()

    async def get_properties(self, *, extra: Extra = None) -> BaseProperties:
        return await self.inner.get_properties()


class Gyroscope(MovementSensor):
    """Measures only the turn."""

    Config: ClassVar[type[Attributes]] = Attributes

    async def get_properties(self, *, extra: Extra = None) -> MovementProperties:
        return MovementProperties(angular_velocity_supported=True)


class Rover:
    """The rover: what it is commanded, and where it is in the simulated world."""

    def __init__(self, bench: Bench, base: SensorControlledBase, skewed: SkewedBase) -> None:
        self.bench, self.base, self.skewed = bench, base, skewed
        self.device = bench.world.find(SimBase, "inner")
        assert self.device is not None

    @property
    def place(self) -> tuple[float, float, float]:
        assert self.device is not None
        place = self.device.place(self.bench.world.now())
        return place.x, place.y, place.heading

    @property
    def speeds(self) -> tuple[float, float]:
        assert self.device is not None
        return self.device.speeds(self.bench.world.now())


async def rover_of(nursery: trio.Nursery, attributes: Mapping[str, Any] | None = None) -> Rover:
    bench = Bench(nursery)
    inner = await bench.add("base", "inner")
    skewed = await bench.add("base", "skewed", cls=SkewedBase)
    skewed.inner = inner
    await bench.add("movement_sensor", "imu", {"base": "inner"})
    more = {"base": "skewed", "movement_sensor": ["imu"], **(attributes or {})}
    return Rover(bench, await bench.add("base", "it", more, model=MODEL), skewed)


@pytest.fixture
async def rover(nursery: trio.Nursery, autojump_clock: trio.testing.MockClock) -> Rover:
    return await rover_of(nursery)


@pytest.mark.parametrize(("distance", "speed", "end"), [(2000, 300, 2000), (2000, -300, -2000), (-500, 100, -500)])
async def test_straight_on_by_what_is_measured(rover: Rover, distance: int, speed: float, end: float) -> None:
    await rover.base.move_straight(distance, speed)
    x, y, heading = rover.place
    assert abs(y - end) < 25
    assert abs(x) < 30
    assert abs(heading) < 3
    assert not await rover.base.is_moving()


@pytest.mark.parametrize(("angle", "speed"), [(90, 45), (-720, 60), (90, -45), (2, 20)])
async def test_a_turn_by_what_is_measured(rover: Rover, angle: float, speed: float) -> None:
    await rover.base.spin(angle, speed)
    assert abs(rover.place[2] - angle * (1 if speed > 0 else -1)) < 2
    assert not await rover.base.is_moving()


@pytest.mark.parametrize("gains", [[], [{"type": "linear_velocity", "p": 0.5, "i": 0.5}, {"type": "angular_velocity"}]])
async def test_velocities_are_kept_as_measured(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock, gains: list[dict[str, Any]]
) -> None:
    rover = await rover_of(nursery, {"control_parameters": gains})
    await rover.base.set_velocity(Vector3(0.0, 300.0, 0.0), Vector3(0.0, 0.0, -20.0))
    await trio.sleep(8)
    forward, turn = rover.speeds
    assert abs(forward - 300) < 10
    assert abs(turn + 20) < 1
    await rover.base.set_velocity(Vector3(), Vector3())
    assert not await rover.base.is_moving()


async def test_a_newer_command_replaces_the_older_one(rover: Rover) -> None:
    errors: list[MachineError] = []

    async def drive() -> None:
        try:
            await rover.base.move_straight(5000, 100)
        except MachineError as error:
            errors.append(error)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(drive)
        await trio.sleep(1)
        await rover.base.spin(10, 20)
    assert [error.kind for error in errors] == [ErrorKind.CANCELLED]
    await rover.base.set_velocity(Vector3(0.0, 100.0, 0.0), Vector3())
    await trio.sleep(1)
    await rover.base.stop()
    assert not await rover.base.is_moving()
    await rover.base.set_power(Vector3(0.0, 0.5, 0.0), Vector3())
    assert await rover.base.is_moving()


async def test_a_cancelled_motion_stops(rover: Rover) -> None:
    with trio.move_on_after(1):
        await rover.base.move_straight(5000, 100)
    assert not await rover.base.is_moving()
    assert rover.speeds == (0.0, 0.0)


async def test_a_base_that_does_not_move_is_an_error(rover: Rover) -> None:
    rover.skewed.stuck = True
    start = trio.current_time()
    with pytest.raises(MachineError, match="1000 mm to go") as caught:
        await rover.base.move_straight(1000, 100)
    assert caught.value.kind is ErrorKind.TIMEOUT
    assert trio.current_time() - start < 40


async def test_a_sensor_that_fails_stops_the_base(rover: Rover, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(self: object, *, extra: Extra = None) -> Vector3:
        raise MachineError("no answer", kind=ErrorKind.UNAVAILABLE)

    await rover.base.set_velocity(Vector3(0.0, 300.0, 0.0), Vector3())
    await trio.sleep(2)
    monkeypatch.setattr("models.fake.movement_sensor.model.FakeMovementSensor.get_linear_velocity", fail)
    await trio.sleep(1)
    assert rover.speeds == (0.0, 0.0)
    with pytest.raises(MachineError, match="no answer"):
        await rover.base.spin(90, 45)


async def test_sensors_that_do_not_measure_velocities_are_refused(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    bench = Bench(nursery)
    await bench.add("base", "inner")
    await bench.add("movement_sensor", "gyro", cls=Gyroscope)
    with pytest.raises(MachineError, match="measures both"):
        await bench.add("base", "it", {"base": "inner", "movement_sensor": ["gyro"]}, model=MODEL)
