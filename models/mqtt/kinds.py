"""What is published of a resource of each API, and which commands it obeys."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from engine import (
    Actuator,
    Arm,
    Base,
    Button,
    Component,
    Encoder,
    Gantry,
    Gripper,
    Motor,
    MovementSensor,
    PositionType,
    PowerSensor,
    Sensor,
    Servo,
    Switch,
)
from models.mqtt.entities import Entity, Scalar, state_of
from schema import ErrorKind, MachineError

SERVO_RANGE: Final = (0, 180)  # degrees that Home Assistant offers; a servo may refuse some of them


@dataclass(frozen=True, slots=True)
class Observed:
    """The state of a resource, and the entities with which it can be commanded."""

    state: dict[str, Scalar]
    controls: Sequence[Entity] = ()


@dataclass(frozen=True, slots=True)
class Kind:
    """An API: how its state is read, and how it obeys the text of a command; None if it has no commands."""

    base: type[Component]
    observe: Callable[[Any], Awaitable[Observed]]
    obey: Callable[[Any, str], Awaitable[None]] | None = None


async def _sensor(sensor: Sensor) -> Observed:
    return Observed(state_of(await sensor.get_readings()))


async def _switch(switch: Switch) -> Observed:
    labels = await _labels(switch)
    position = labels[min(max(await switch.get_position(), 0), len(labels) - 1)]
    if len(labels) == 2:
        settings: dict[str, Any] = dict(zip(("payload_off", "payload_on"), labels, strict=True))
        settings |= {"state_off": labels[0], "state_on": labels[1]}
        control = Entity("switch", "", settings, "position", commands=True)
    else:
        control = Entity("select", "", {"options": labels}, "position", commands=True)
    return Observed({"position": position}, [control])


async def _set_switch(switch: Switch, text: str) -> None:
    labels = await _labels(switch)
    if text not in labels and not (text.isascii() and text.isdigit() and len(text) < 4 and int(text) < len(labels)):
        raise _refused(text, f"one of {', '.join(labels)}")
    await switch.set_position(labels.index(text) if text in labels else int(text))


async def _labels(switch: Switch) -> list[str]:
    positions = await switch.get_number_of_positions()
    return list(positions.labels) or [str(number) for number in range(max(positions.number_of_positions, 1))]


async def _button(button: Button) -> Observed:
    return Observed({}, [Entity("button", "", {"payload_press": "push"}, commands=True)])


async def _push(button: Button, text: str) -> None:
    if text != "push":
        raise _refused(text, "push")
    await button.push()


async def _servo(servo: Servo) -> Observed:
    least, most = SERVO_RANGE
    settings = {"min": least, "max": most, "step": 1, "unit_of_measurement": "°"}
    control = Entity("number", "angle_deg", settings, "angle_deg", commands=True)
    return Observed({"angle_deg": await servo.get_position()}, [control])


async def _move(servo: Servo, text: str) -> None:
    await servo.move(round(_number(text, *SERVO_RANGE, "degrees")))


async def _motor(motor: Motor) -> Observed:
    powered = await motor.is_powered()
    settings = {"min": -100, "max": 100, "step": 1, "unit_of_measurement": "%"}
    controls = [
        Entity("number", "power_percent", settings, "power_percent", commands=True),
        Entity("button", "stop", {"payload_press": "stop"}, commands=True),
    ]
    return Observed({"on": powered.is_on, "power_percent": round(powered.power_pct * 100, 1)}, controls)


async def _set_motor(motor: Motor, text: str) -> None:
    if text == "stop":
        await motor.stop()
    else:
        await motor.set_power(_number(text, -100, 100, "percent of its power, or stop") / 100)


def _buttons(*commands: str) -> list[Entity]:
    return [Entity("button", command, {"payload_press": command}, commands=True) for command in commands]


async def _encoder(encoder: Encoder) -> Observed:
    position = await encoder.get_position()
    unit = "deg" if position.position_type is PositionType.ANGLE_DEGREES else "ticks"
    return Observed(state_of({f"position_{unit}": position.value}), _buttons("reset"))


async def _reset(encoder: Encoder, text: str) -> None:
    if text != "reset":
        raise _refused(text, "reset")
    await encoder.reset_position()


async def _base(base: Base) -> Observed:
    return Observed({"moving": await base.is_moving()}, _buttons("stop"))


async def _gantry(gantry: Gantry) -> Observed:
    positions = {f"axis_{index}_mm": value for index, value in enumerate(await gantry.get_position(), 1)}
    return Observed(state_of({"moving": await gantry.is_moving(), **positions}), _buttons("home", "stop"))


async def _move_gantry(gantry: Gantry, text: str) -> None:
    if text == "home":
        await gantry.home()
    elif text == "stop":
        await gantry.stop()
    else:
        raise _refused(text, "home or stop")


async def _arm(arm: Arm) -> Observed:
    positions = {f"joint_{index}_deg": value for index, value in enumerate(await arm.get_joint_positions(), 1)}
    return Observed(state_of({"moving": await arm.is_moving(), **positions}), _buttons("stop"))


async def _gripper(gripper: Gripper) -> Observed:
    holding = await gripper.is_holding_something()
    state = {"moving": await gripper.is_moving(), "holding": holding.is_holding_something}
    return Observed(state_of(state), _buttons("open", "grab", "stop"))


async def _set_gripper(gripper: Gripper, text: str) -> None:
    commands = {"open": gripper.open, "grab": gripper.grab, "stop": gripper.stop}
    if text not in commands:
        raise _refused(text, "open, grab or stop")
    await commands[text]()


async def _stop(actuator: Actuator, text: str) -> None:
    if text != "stop":
        raise _refused(text, "stop")
    await actuator.stop()


KINDS: Final = (
    Kind(Sensor, _sensor),
    Kind(MovementSensor, _sensor),
    Kind(PowerSensor, _sensor),
    Kind(Switch, _switch, _set_switch),
    Kind(Button, _button, _push),
    Kind(Servo, _servo, _move),
    Kind(Motor, _motor, _set_motor),
    Kind(Encoder, _encoder, _reset),
    Kind(Base, _base, _stop),
    Kind(Gantry, _gantry, _move_gantry),
    Kind(Arm, _arm, _stop),
    Kind(Gripper, _gripper, _set_gripper),
)


def _number(text: str, least: float, most: float, of: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not least <= number <= most:
        raise _refused(text, f"a number from {least} to {most}, {of}")
    return number


def _refused(text: str, right: str) -> MachineError:
    return MachineError(f"the command is {text[:100]!r}", kind=ErrorKind.INVALID, remedy=f"send {right}")
