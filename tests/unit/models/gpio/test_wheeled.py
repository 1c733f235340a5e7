"""Wheeled bases and their odometry, on simulated motors whose wheels move a simulated base."""

from __future__ import annotations

import contextlib
import math
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from engine.components.motion.base import BaseProperties
from engine.components.sensing.movement_sensor import MovementProperties
from engine.resource import Unsupported
from hal.errors import Fault, HalError
from hal.sim.bench.base import SimBase
from hal.sim.bench.motor import SimMotor
from hal.sim.faults import FaultPlan
from models.wheels.wheeled.attributes import WheeledConfig
from schema.attributes import decode_attributes
from schema.errors import ConfigError, ErrorKind, MachineError
from schema.space.geometry import GeoPoint, Vector3
from tests.unit.models.builtin.support import Bench

WIDTH, CIRCUMFERENCE = 300.0, 200.0
WHEELS = ("left-1", "left-2", "right-1", "right-2")
DIMENSIONS = {
    "left": ["left-1", "left-2"],
    "right": ["right-1", "right-2"],
    "width_mm": WIDTH,
    "wheel_circumference_mm": CIRCUMFERENCE,
}


async def rover(bench: Bench, **attributes: Any) -> tuple[Any, SimBase]:
    for name in WHEELS:
        await bench.add("motor", name, {"max_rpm": 300})
    base = await bench.add("base", "rover", {**DIMENSIONS, **attributes}, model="rdk:builtin:wheeled")
    left, right = ([bench.world.find(SimMotor, name) for name in WHEELS if side in name] for side in ("left", "right"))
    body = SimBase("body", left, right, circumference_mm=CIRCUMFERENCE, width_mm=WIDTH)  # type: ignore[arg-type]
    return base, body


def rpm(bench: Bench, name: str) -> float:
    motor = bench.world.find(SimMotor, name)
    assert motor is not None
    return motor.shaft.speed(bench.world.now()) * 60


@pytest.mark.parametrize(("distance", "speed"), [(1000, 200.0), (-500, 100.0), (500, -100.0)])
async def test_it_drives_straight(bench: Bench, autojump_clock: MockClock, distance: int, speed: float) -> None:
    base, body = await rover(bench)
    with bench.world.holding(body):
        begin = trio.current_time()
        await base.move_straight(distance, speed)
        assert trio.current_time() - begin == pytest.approx(abs(distance / speed), rel=0.2)
        place = body.place(bench.world.now())
        assert (place.x, place.y) == pytest.approx((0, math.copysign(distance, distance * speed)), abs=2)
        assert place.heading == pytest.approx(0, abs=0.5)
        assert not await base.is_moving()


@pytest.mark.parametrize(("angle", "speed"), [(90.0, 45.0), (-360.0, 90.0), (180.0, -60.0)])
async def test_it_spins(bench: Bench, autojump_clock: MockClock, angle: float, speed: float) -> None:
    base, body = await rover(bench)
    with bench.world.holding(body):
        await base.spin(angle, speed)
        place = body.place(bench.world.now())
        assert place.heading == pytest.approx(math.copysign(angle, angle * speed), abs=1)
        assert math.hypot(place.x, place.y) < 3


async def test_slipping_wheels_turn_more(bench: Bench, autojump_clock: MockClock) -> None:
    base, body = await rover(bench, spin_slip_factor=1.5)
    with bench.world.holding(body):
        await base.spin(60, 45)
        assert body.place(bench.world.now()).heading == pytest.approx(90, abs=1)


async def test_velocities_are_arcs(bench: Bench, autojump_clock: MockClock) -> None:
    base, body = await rover(bench)
    with bench.world.holding(body):
        await base.set_velocity(Vector3(0, 200, 0), Vector3(0, 0, 30))
        await trio.sleep(1)
        turn = math.radians(30) * WIDTH / 2
        assert rpm(bench, "left-1") == pytest.approx((200 - turn) / CIRCUMFERENCE * 60, rel=0.01)
        assert rpm(bench, "right-2") == pytest.approx((200 + turn) / CIRCUMFERENCE * 60, rel=0.01)
        speed, turning = body.speeds(bench.world.now())
        assert (speed, turning) == pytest.approx((200, 30), rel=0.01)
        await base.set_velocity(Vector3(), Vector3(0, 0, -30))
        await trio.sleep(1)
        assert body.speeds(bench.world.now()) == pytest.approx((0, -30), abs=0.5)
        assert await base.is_moving()
        await base.set_velocity(Vector3(), Vector3())
        await trio.sleep(1)
        assert not await base.is_moving()


async def test_power_is_mixed(bench: Bench, autojump_clock: MockClock) -> None:
    base, _ = await rover(bench)
    await base.set_power(Vector3(0, 1, 0), Vector3(0, 0, 0.5))
    await trio.sleep(1)
    assert rpm(bench, "left-1") == pytest.approx(100, rel=0.01)
    assert rpm(bench, "right-1") == pytest.approx(300, rel=0.01)
    await base.stop()
    await trio.sleep(1)
    assert all(abs(rpm(bench, name)) < 0.1 for name in WHEELS)
    assert await base.get_properties() == BaseProperties(0.3, 0.0, 0.2)


@pytest.mark.parametrize("newer", ["stop", "spin", "set_velocity"])
async def test_the_newest_command_wins(bench: Bench, autojump_clock: MockClock, newer: str) -> None:
    base, body = await rover(bench)
    with bench.world.holding(body):
        async with trio.open_nursery() as nursery:

            async def old() -> None:
                with pytest.raises(MachineError, match="has replaced") as caught:
                    await base.move_straight(100_000, 300)
                assert caught.value.kind is ErrorKind.CANCELLED

            nursery.start_soon(old)
            await trio.sleep(2)
            if newer == "stop":
                await base.stop()
            elif newer == "spin":
                await base.spin(90, 90)
            else:
                await base.set_velocity(Vector3(0, -100, 0), Vector3())
        await trio.sleep(1)
        speed, turning = body.speeds(bench.world.now())
        assert turning == pytest.approx(0, abs=0.1)
        assert speed == pytest.approx(-100 if newer == "set_velocity" else 0, abs=0.1)


async def test_commands_at_the_same_moment_leave_the_newest(bench: Bench, autojump_clock: MockClock) -> None:
    base, body = await rover(bench)
    with bench.world.holding(body):
        for _ in range(10):
            async with trio.open_nursery() as nursery:

                async def overtaken(*velocity: Vector3) -> None:
                    with contextlib.suppress(MachineError):
                        await base.set_velocity(*velocity)

                nursery.start_soon(overtaken, Vector3(0, 100, 0), Vector3())
                await trio.testing.wait_all_tasks_blocked()
                nursery.start_soon(overtaken, Vector3(0, 200, 0), Vector3())
                await trio.testing.wait_all_tasks_blocked()
                nursery.start_soon(base.stop)
            await trio.sleep(1)
            assert body.speeds(bench.world.now())[0] == pytest.approx(0, abs=0.01)


async def test_cancelling_stops_every_wheel(bench: Bench, autojump_clock: MockClock) -> None:
    base, _ = await rover(bench)
    with trio.move_on_after(2):
        await base.move_straight(100_000, 300)
    await trio.sleep(1)
    assert all(abs(rpm(bench, name)) < 0.1 for name in WHEELS)


@pytest.mark.parametrize("broken", WHEELS)
async def test_a_broken_wheel_does_not_keep_the_others_turning(
    bench: Bench, autojump_clock: MockClock, broken: str
) -> None:
    base, _ = await rover(bench)
    others = [name for name in WHEELS if name != broken]
    await base.set_velocity(Vector3(0, 300, 0), Vector3())
    await trio.sleep(1)
    bench.world.faults.inject(broken, FaultPlan(Fault.BUS))
    with pytest.raises(HalError, match=broken):
        await base.stop()
    await trio.sleep(1)
    assert all(abs(rpm(bench, name)) < 0.1 for name in others)
    with pytest.raises(HalError, match=broken):
        await base.move_straight(1000, 300)
    await trio.sleep(1)
    assert all(abs(rpm(bench, name)) < 0.1 for name in others)
    bench.world.faults.clear(broken)


async def test_a_stopped_base_has_stopped_its_wheels(bench: Bench, autojump_clock: MockClock) -> None:
    base, _ = await rover(bench)
    await base.set_power(Vector3(0, 1, 0), Vector3())
    await trio.sleep(1)
    await bench.remove(base)
    await trio.sleep(1)
    assert all(abs(rpm(bench, name)) < 0.1 for name in WHEELS)


async def test_invalid_distances_and_speeds_are_refused(bench: Bench, autojump_clock: MockClock) -> None:
    base, _ = await rover(bench)
    nan = float("nan")
    for call in (
        base.move_straight(0, 100),
        base.move_straight(100, 0),
        base.spin(nan, 10),
        base.set_power(Vector3(0, nan, 0), Vector3()),
        base.set_velocity(Vector3(), Vector3(0, 0, nan)),
    ):
        with pytest.raises(MachineError) as caught:
            await call
        assert caught.value.kind is ErrorKind.INVALID


def test_bases_that_cannot_be() -> None:
    wrongs: tuple[dict[str, Any], ...] = ({"left": []}, {"right": ["left-1"]}, {"width_mm": 0})
    for wrong in wrongs:
        with pytest.raises(ConfigError):
            decode_attributes(WheeledConfig, {**DIMENSIONS, **wrong}, path="attributes")


# ---- odometry


async def odometer(bench: Bench, **attributes: Any) -> Any:
    full = {
        "base": "rover",
        "left_motors": DIMENSIONS["left"],
        "right_motors": DIMENSIONS["right"],
        "time_interval_msec": 50,
        **attributes,
    }
    return await bench.add("movement_sensor", "where", full, model="rdk:builtin:wheeled-odometry")


async def test_it_knows_the_way(bench: Bench, autojump_clock: MockClock) -> None:
    base, body = await rover(bench)
    with bench.world.holding(body):
        where = await odometer(bench)
        await base.move_straight(1000, 300)
        await base.spin(90, 90)
        await base.set_velocity(Vector3(0, 200, 0), Vector3(0, 0, -20))
        await trio.sleep(3)
        assert (await where.get_linear_velocity()).y == pytest.approx(0.2, rel=0.01)
        assert (await where.get_angular_velocity()).z == pytest.approx(-20, rel=0.01)
        await base.stop()
        await trio.sleep(1)
        place = body.place(bench.world.now())
        relative = (await where.get_position(extra={"return_relative_pos_m": True})).coordinate
        assert (relative.longitude * 1000, relative.latitude * 1000) == pytest.approx((place.x, place.y), abs=1)
        assert (await where.get_orientation()).theta == pytest.approx(place.heading, abs=0.1)
        assert await where.get_compass_heading() == pytest.approx(-place.heading % 360, abs=0.1)
        assert (await where.get_linear_velocity()).y == pytest.approx(0, abs=1e-6)


async def test_slip_is_taken_into_account(bench: Bench, autojump_clock: MockClock) -> None:
    base, _ = await rover(bench, spin_slip_factor=1.5)
    where = await odometer(bench)
    await base.spin(90, 90)
    await trio.sleep(1)
    assert (await where.get_orientation()).theta == pytest.approx(90, abs=0.5)


async def test_it_is_a_place_on_the_globe(bench: Bench, autojump_clock: MockClock) -> None:
    base, _ = await rover(bench)
    where = await odometer(bench, origin_latitude=52.0, origin_longitude=13.0, origin_heading_deg=90.0)
    assert (await where.get_position()).coordinate == GeoPoint(52.0, 13.0)
    await base.move_straight(10_000, 900)
    await trio.sleep(1)
    coordinate = (await where.get_position()).coordinate
    assert coordinate.latitude == pytest.approx(52.0, abs=1e-7)
    assert (coordinate.longitude - 13) * 111_195 * math.cos(math.radians(52)) == pytest.approx(10, abs=0.02)
    assert await where.get_compass_heading() == pytest.approx(90)
    await where.do_command({"reset": True})
    assert (await where.get_position()).coordinate == GeoPoint(52.0, 13.0)
    with pytest.raises(MachineError, match="reset"):
        await where.do_command({"rest": True})


async def test_measured_positions(bench: Bench, autojump_clock: MockClock) -> None:
    await rover(bench)
    where = await odometer(bench)
    assert await where.get_properties() == MovementProperties(True, True, True, True, True, False)
    with pytest.raises(Unsupported):
        await where.get_linear_acceleration()
    assert set(await where.get_readings()) == {
        "position",
        "altitude",
        "linear_velocity",
        "angular_velocity",
        "compass",
        "orientation",
    }


async def test_a_motor_that_fails_for_a_while_loses_no_way(bench: Bench, autojump_clock: MockClock) -> None:
    base, _ = await rover(bench)
    where = await odometer(bench)
    await base.set_velocity(Vector3(0, 200, 0), Vector3())
    await trio.sleep(2)
    with bench.world.faults.injected("left-2", FaultPlan(Fault.BUS)):
        await trio.sleep(2)
        with pytest.raises(HalError, match="left-2"):
            await where.get_position()
    await trio.sleep(1)
    relative = (await where.get_position(extra={"return_relative_pos_m": True})).coordinate
    assert relative.latitude == pytest.approx(1.0, abs=0.03)


async def test_motors_without_encoders_are_refused(bench: Bench, autojump_clock: MockClock) -> None:
    await bench.add("board", "pi")
    for name, a, b in (("left-1", "1", "2"), ("right-1", "3", "4")):
        await bench.add("motor", name, {"board": "pi", "pins": {"a": a, "b": b}}, model="rdk:builtin:gpio")
    sides = {"left": ["left-1"], "right": ["right-1"], "width_mm": 1, "wheel_circumference_mm": 1}
    await bench.add("base", "rover", sides, model="rdk:builtin:wheeled")
    with pytest.raises(MachineError, match=r"left-1 does not report its position: configure an encoder"):
        await odometer(bench, left_motors=["left-1"], right_motors=["right-1"])
