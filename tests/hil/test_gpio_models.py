"""Models on pins, on a real GPIO chip, through machine-server and the official SDK; the plant reacts to the outputs."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from functools import partial
from signal import SIGKILL
from typing import Any, NamedTuple

import pytest
import trio
from grpclib.exceptions import GRPCError
from viam.components.base import Base
from viam.components.button import Button
from viam.components.encoder import Encoder
from viam.components.input import Control, Controller, EventType
from viam.components.motor import Motor
from viam.components.movement_sensor import MovementSensor
from viam.components.sensor import Sensor
from viam.components.servo import Servo
from viam.components.switch import Switch
from viam.proto.common import Vector3

from tests.hil.rig.guest import Guest
from tests.hil.rig.plant import Plant, Thing
from tests.hil.rig.record import Recorder
from tests.hil.rig.wave import wait_wave

LIMIT = 60.0  # seconds for anything in the guest
TICKS = 40  # encoder ticks per revolution
WHEEL = {"max_rpm": 60, "pwm_freq": 25, "control_period_ms": 50, "ramp_rate": 0.1}  # software PWM, slow processor


def component(api: str, name: str, model: str, **attributes: Any) -> dict[str, Any]:
    return {"name": name, "api": f"rdk:component:{api}", "model": model, "attributes": attributes}


def board(*interrupts: int) -> dict[str, Any]:
    entries = [{"name": f"i{line}", "pin": f"rig:{line}"} for line in interrupts]
    return component("board", "pi", "linux", digital_interrupts=entries)


def wheel(name: str, first: int, **attributes: Any) -> list[dict[str, Any]]:
    """Return a motor on lines `first` and the next one, with its encoder on the two lines after those."""
    a, b, track_a, track_b = (f"rig:{line}" for line in range(first, first + 4))
    return [
        component("encoder", f"{name}-encoder", "incremental", board="pi", pins={"a": track_a, "b": track_b}),
        component(
            "motor",
            name,
            "gpio",
            board="pi",
            pins={"a": a, "b": b},
            encoder=f"{name}-encoder",
            ticks_per_rotation=TICKS,
            **{**WHEEL, **attributes},
        ),
    ]


async def until(found: Callable[[], Awaitable[bool]], limit: float = LIMIT) -> float:
    """Repeat a check until it is true; return the seconds that took."""
    start = time.monotonic()
    with trio.fail_after(limit):
        while not await found():  # noqa: ASYNC110 - the SDK has no event for it
            await trio.sleep(0.02)
    return time.monotonic() - start


async def test_a_motor_reaches_its_target(guest: Guest, plant: Plant, record_recovery: Recorder) -> None:
    bank = await plant.gpio()
    shaft = await plant.make("tests.hil.guest.shaft:Wheel", bank, 0, 1, 2, 3, ticks=TICKS)
    document = {"components": [board(), *wheel("left", 0, stall_s=3)]}
    async with guest.server(document) as server, server.sdk() as sdk:
        motor = Motor.from_robot(sdk.robot, "left")
        assert (await sdk(motor.get_properties())).position_reporting
        for rpm, revolutions, total in ((40, 2, 2.0), (-40, 1, 1.0)):
            await sdk(motor.go_for(rpm, revolutions))
            assert await sdk(motor.get_position()) == pytest.approx(total, abs=1.1 / TICKS)
            await until(lambda: _rests(shaft))
            assert await shaft.get("position") == pytest.approx(total, abs=2.1 / TICKS)
        await sdk(motor.go_to(50, 0))
        assert await sdk(motor.get_position()) == pytest.approx(0, abs=1.1 / TICKS)

        await sdk(motor.set_rpm(30))
        await trio.sleep(3)
        first = await _seen(shaft, guest)
        await trio.sleep(3)
        second = await _seen(shaft, guest)
        turned = (second.position - first.position) * 60
        slowest, fastest = turned / (second.after - first.before), turned / (second.before - first.after)
        print(f"set_rpm(30) in the guest: {slowest:.1f} to {fastest:.1f} rpm")
        assert slowest <= 30 * 1.15
        assert fastest >= 30 * 0.85
        await sdk(motor.set_rpm(-30))
        await until(lambda: _turns_back(shaft))
        await sdk(motor.stop())
        assert not await sdk(motor.is_moving())
        assert await bank.call("values", 0, 1) == [False, False]
        assert await shaft.get("both") == 0

        await until(lambda: _rests(shaft))
        await shaft.set(blocked=True)
        with pytest.raises(GRPCError, match="s at full power"):
            await sdk(motor.go_for(50, 1))
        assert await bank.call("values", 0, 1) == [False, False]
        await shaft.set(blocked=False)
        freed = time.monotonic()
        await sdk(motor.go_for(50, 0.1))
        record_recovery("motor blocked, then free", time.monotonic() - freed, seen="no tick; the motor is off")


class Seen(NamedTuple):
    """A position of a shaft, in revolutions, which it had between two times of the guest (s)."""

    before: float
    position: float
    after: float


async def _seen(shaft: Thing, guest: Guest) -> Seen:
    return Seen(await guest.monotonic(), await shaft.get("position"), await guest.monotonic())


async def _rests(shaft: Thing) -> bool:
    rpm: float = await shaft.get("rpm")
    return abs(rpm) < 0.5


async def _turns_back(shaft: Thing) -> bool:
    rpm: float = await shaft.get("rpm")
    return rpm < -10


async def test_a_vanished_client_stops_its_motor(guest: Guest, plant: Plant, record_recovery: Recorder) -> None:
    bank = await plant.gpio()
    shaft = await plant.make("tests.hil.guest.shaft:Wheel", bank, 0, 1, 2, 3, ticks=TICKS)
    async with guest.server({"components": [board(), *wheel("left", 0)]}) as server:
        async with server.sdk() as sdk:
            await sdk(Motor.from_robot(sdk.robot, "left").set_rpm(40))
            await until(lambda: _fast(shaft))
        gone = time.monotonic()  # the SDK closed its connection without a stop
        await until(lambda: _rests(shaft))
        record_recovery("client of a running motor vanishes", time.monotonic() - gone, seen="the motor comes to rest")
        assert await bank.call("values", 0, 1) == [False, False]
        await server.wait_log("session")


async def _fast(shaft: Thing) -> bool:
    rpm: float = await shaft.get("rpm")
    return rpm > 25


async def test_a_kill_while_a_motor_runs(guest: Guest, plant: Plant, record_recovery: Recorder) -> None:
    bank = await plant.gpio()
    shaft = await plant.make("tests.hil.guest.shaft:Wheel", bank, 0, 1, 2, 3, ticks=TICKS)
    document = {"components": [board(), *wheel("left", 0)]}
    async with guest.server(document) as server, server.sdk() as sdk:
        await sdk(Motor.from_robot(sdk.robot, "left").set_power(1.0))
        await until(lambda: _fast(shaft))
        assert await bank.value(0) is True
        killed = await guest.monotonic()
        assert await server.stop(SIGKILL) == -SIGKILL
        released = await bank.wait_event(0, "released", since=killed)
        await bank.wait_value(0, False)
        await until(lambda: _rests(shaft))
        record_recovery(
            "machine-server killed -9 while a motor runs: lines released by the kernel",
            max(0.0, released - killed),
            seen="the line follows its pull resistor at once",
        )
    begin = time.monotonic()
    async with guest.server(document) as server, server.sdk() as sdk:
        motor = Motor.from_robot(sdk.robot, "left")
        assert (await sdk(motor.is_powered())) == (False, 0.0)
        record_recovery("machine-server started again after it was killed", time.monotonic() - begin)
        assert await bank.call("values", 0, 1) == [False, False]
        highs = [event for line in (0, 1) for event in await bank.history(line, released) if event["high"]]
        assert highs == [], "no input of the bridge was high for a moment after the kill"
        await sdk(motor.go_for(40, 0.5))
        assert await sdk(motor.get_position()) == pytest.approx(0.5, abs=1.1 / TICKS)


async def test_relay_switch_button_and_sensor(guest: Guest, plant: Plant) -> None:
    bank = await plant.gpio()
    await bank.pull(10, True)
    document = {
        "components": [
            board(),
            component("switch", "pump", "relay", board="pi", pin="rig:1", active_low=True, min_on_s=300),
            component("switch", "lamp", "gpio", board="pi", pins=["rig:2", "rig:3"], labels=["green", "red"]),
            component("button", "bell", "gpio", board="pi", pin="rig:4", press_ms=400),
            component("sensor", "doors", "gpio_input", board="pi", pins={"open": "rig:10", "locked": "rig:11"}),
        ]
    }
    async with guest.server(document) as server, server.sdk() as sdk:
        robot = sdk.robot
        pump, lamp = Switch.from_robot(robot, "pump"), Switch.from_robot(robot, "lamp")
        assert await bank.call("values", 1, 2, 3, 4) == [True, True, False, False]
        await sdk(pump.set_position(1))
        assert await bank.value(1) is False
        with pytest.raises(GRPCError, match="must stay on"):
            await sdk(pump.set_position(0))
        await sdk(lamp.set_position(1))
        assert await bank.call("values", 2, 3) == [False, True]
        assert (await sdk(lamp.get_number_of_positions()))[1] == ["green", "red"]

        await sdk(Button.from_robot(robot, "bell").push())
        sets = [event for event in await bank.history(4) if event["what"] == "set"]
        assert [event["high"] for event in sets[-2:]] == [True, False]
        assert sets[-1]["time"] - sets[-2]["time"] >= 0.4

        doors = Sensor.from_robot(robot, "doors")
        assert await sdk(doors.get_readings()) == {"open": True, "locked": False}
        await bank.pull(10, False)
        await bank.pull(11, True)
        assert await sdk(doors.get_readings()) == {"open": False, "locked": True}
        begin = await guest.monotonic()
    # An orderly stop: the drivers wrote the safe levels before the lines were released.
    assert [event["high"] for event in await bank.history(1, begin) if event["what"] == "set"][:1] == [True]
    assert [event["high"] for event in await bank.history(3, begin) if event["what"] == "set"][:1] == [False]


async def test_a_servo_moves_to_its_angle(guest: Guest, plant: Plant) -> None:
    bank = await plant.gpio()
    document = {
        "components": [
            board(),
            component("servo", "arm", "gpio", board="pi", pin="rig:5", frequency_hz=50, speed_deg_per_s=180),
        ]
    }
    async with guest.server(document) as server, server.sdk() as sdk:
        arm = Servo.from_robot(sdk.robot, "arm")
        with pytest.raises(GRPCError, match="has not been moved yet"):
            await sdk(arm.get_position())
        waves = {}
        for angle in (0, 90, 180):
            await sdk(arm.move(angle))
            assert await sdk(arm.get_position()) == angle
            begin = await guest.monotonic()
            width = 0.0005 + angle / 180 * 0.002
            waves[angle] = await wait_wave(bank, 5, begin, width=width, period=1 / 50, late=0.001)
        print(f"servo pulses by software in the guest: {waves}")
        assert waves[0].width < waves[90].width < waves[180].width
    await bank.wait_value(5, False)


async def test_a_stepper_makes_every_step(guest: Guest, plant: Plant) -> None:
    bank = await plant.gpio()
    rotor = await plant.make("tests.hil.guest.shaft:Rotor", bank, step=6, direction=7, enable_low=8)
    pins = {"step": "rig:6", "dir": "rig:7", "en_low": "rig:8"}
    document = {
        "components": [
            board(),
            component("motor", "z", "gpiostepper", board="pi", pins=pins, max_rpm=120, acceleration_rpm_per_s=120),
        ]
    }
    async with guest.server(document) as server, server.sdk() as sdk:
        motor = Motor.from_robot(sdk.robot, "z")
        assert await bank.value(8) is True, "without power until the first command"
        for rpm, revolutions in ((60, 0.5), (-60, 0.25), (30, 0.1)):
            await sdk(motor.go_for(rpm, revolutions))
        await until(lambda: _at(rotor, 100 - 50 + 20))
        assert await sdk(motor.get_position()) == pytest.approx(70 / 200)
        assert await rotor.get("lost") == 0
        assert await bank.value(8) is True
        await rotor.set(times=[])
        await sdk(motor.go_to(120, 3))
        await until(lambda: _at(rotor, 600))
        times = await rotor.get("times")
        middle = times[len(times) // 4 : len(times) * 3 // 4]
        rate = (len(middle) - 1) / (middle[-1] - middle[0])
        print(f"stepper asked for 400 steps/s, made {rate:.0f} in the guest; {await sdk(motor.get_status())}")

        async with trio.open_nursery() as nursery:

            async def go() -> None:
                with pytest.raises(GRPCError, match="has replaced"):
                    await sdk(motor.go_for(60, 100))

            nursery.start_soon(go)
            await bank.wait_value(8, False)
            await until(lambda: _above(rotor, 650))
            await sdk(motor.stop())
        steps = round(await sdk(motor.get_position()) * 200)
        await until(lambda: _at(rotor, steps))
        assert await bank.value(8) is True


async def _at(thing: Thing, position: float) -> bool:
    """Return whether a plant has reached `position`: it processes edges up to one beat late."""
    reached: float = await thing.get("position")
    return reached == position


async def _above(thing: Thing, position: float) -> bool:
    found: float = await thing.get("position")
    return found > position


async def test_encoders_count(guest: Guest, plant: Plant) -> None:
    bank = await plant.gpio()
    document = {
        "components": [
            board(12, 13),
            component(
                "encoder", "wheel", "incremental", board="pi", pins={"a": "i12", "b": "i13"}, ticks_per_rotation=TICKS
            ),
            component("encoder", "flow", "single", board="pi", pins={"i": "rig:14"}),
        ]
    }
    async with guest.server(document) as server, server.sdk() as sdk:
        both, one = Encoder.from_robot(sdk.robot, "wheel"), Encoder.from_robot(sdk.robot, "flow")

        async def ticks(encoder: Encoder) -> float:
            return float((await sdk(encoder.get_position()))[0])

        for steps, total in ((100, 100), (-130, -30), (7, -23)):
            await bank.quadrature(12, 13, steps, 50)
            await until(partial(_is, partial(ticks, both), total))
        assert (await sdk(both.get_position(2)))[0] == pytest.approx(-23 * 360 / TICKS)
        await sdk(both.reset_position())
        assert await ticks(both) == 0
        for _ in range(5):
            await bank.call("pulse", 14, 0.01)
        await until(partial(_is, partial(ticks, one), 5))
        assert await sdk(both.get_status()) == {"ticks": -23, "missed": 0}


async def _is(value: Callable[[], Awaitable[float]], wanted: float) -> bool:
    return await value() == wanted


async def test_buttons_and_toggles(guest: Guest, plant: Plant) -> None:
    bank = await plant.gpio()
    await bank.pull(16, True)
    pad_attributes = {
        "buttons": {"rig:15": {"control": "ButtonStart", "debounce_msec": 100}},
        "toggles": {"rig:16": {"control": "AbsoluteZ", "debounce_msec": 20}},
    }
    document = {"components": [board(), component("input_controller", "pad", "gpio", board="pi", **pad_attributes)]}
    async with guest.server(document) as server, server.sdk() as sdk:
        pad = Controller.from_robot(sdk.robot, "pad")
        heard: list[tuple[str, str, float]] = []

        async def last(control: Control) -> tuple[str, float]:
            event = (await sdk(pad.get_events()))[control]
            return event.event.value, event.value

        assert set(await sdk(pad.get_controls())) == {Control.BUTTON_START, Control.ABSOLUTE_Z}
        assert await last(Control.ABSOLUTE_Z) == ("Connect", 1.0)

        def listen(event: Any) -> None:
            heard.append((event.control.value, event.event.value, event.value))

        async def register() -> None:
            pad.register_control_callback(Control.BUTTON_START, [EventType.ALL_EVENTS], listen)

        await sdk(register())
        await trio.sleep(1)  # the SDK opens its stream in a separate task, and does not report when
        for high in (True, False, True, False, True):  # bounces
            await bank.pull(15, high)
        await until(lambda: _event(last(Control.BUTTON_START), ("ButtonPress", 1.0)))
        await bank.pull(15, False)
        await until(lambda: _event(last(Control.BUTTON_START), ("ButtonRelease", 0.0)))
        await bank.pull(16, False)
        await until(lambda: _event(last(Control.ABSOLUTE_Z), ("PositionChangeAbs", 0.0)))
        pressed = [("ButtonStart", "ButtonPress", 1.0), ("ButtonStart", "ButtonRelease", 0.0)]
        await until(lambda: _ends_with(heard, pressed))
        assert [event for event in heard if event[1] != "Connect"] == pressed


async def _event(found: Awaitable[tuple[str, float]], wanted: tuple[str, float]) -> bool:
    return await found == wanted


async def _ends_with(heard: list[Any], wanted: list[Any]) -> bool:
    return heard[-len(wanted) :] == wanted


async def test_a_base_drives_with_odometry(guest: Guest, plant: Plant) -> None:
    bank = await plant.gpio()
    shafts = [
        await plant.make("tests.hil.guest.shaft:Wheel", bank, *range(first, first + 4), ticks=TICKS)
        for first in (0, 20)
    ]
    sides = {"left": ["left"], "right": ["right"], "width_mm": 200, "wheel_circumference_mm": 200}
    odometry = {"base": "rover", "left_motors": ["left"], "right_motors": ["right"], "time_interval_msec": 200}
    document = {
        "components": [
            board(),
            *wheel("left", 0),
            *wheel("right", 20),
            component("base", "rover", "wheeled", **sides),
            component("movement_sensor", "where", "wheeled-odometry", **odometry),
        ]
    }
    relative = {"return_relative_pos_m": True}
    async with guest.server(document) as server, server.sdk() as sdk:
        base, where = Base.from_robot(sdk.robot, "rover"), MovementSensor.from_robot(sdk.robot, "where")
        await sdk(base.move_straight(300, 120))
        for shaft in shafts:
            assert await shaft.get("position") == pytest.approx(1.5, abs=2.1 / TICKS)

        async def ahead() -> float:
            return float((await sdk(where.get_position(extra=relative)))[0].latitude)

        await until(lambda: _near(ahead(), 0.3, 0.012))
        await sdk(base.spin(90, 60))

        async def heading() -> float:
            return float((await sdk(where.get_orientation())).theta)

        await until(lambda: _near(heading(), 90, 5))
        await sdk(base.set_velocity(Vector3(y=80), Vector3(z=0)))

        async def speed() -> float:
            return float((await sdk(where.get_linear_velocity())).y)

        await until(lambda: _near(speed(), 0.08, 0.03))
        await sdk(base.stop())
        assert not await sdk(base.is_moving())
        assert await bank.call("values", 0, 1, 20, 21) == [False] * 4
        for shaft in shafts:
            await until(partial(_rests, shaft))


async def _near(value: Awaitable[float], wanted: float, tolerance: float) -> bool:
    return abs(await value - wanted) <= tolerance
