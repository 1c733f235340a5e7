"""GPIO models on a whole machine, on the simulated boards `linux` and `pca9685`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from engine.components.motion.motor import Motor
from engine.components.motion.servo import Servo
from hal.errors import Fault
from hal.sim import World
from hal.sim.bench.encoder import SimEncoder
from hal.sim.bench.motor import MotorPins, SimMotor
from hal.sim.faults import FaultPlan
from hal.sim.gpio.wiring import Pin
from hal.sim.hardware import SimHardware
from models.chips.pca9685.simulation import Pca9685Target
from rpc.api.client import ApiClient
from runtime.server.memory import MemoryMachine, open_machine
from schema.errors import MachineError

MOTOR = Motor.API
TICKS = 200
CHIP = "pinctrl-bcm2711"


def component(api: str, name: str, model: str, **attributes: Any) -> dict[str, Any]:
    return {"name": name, "api": f"rdk:component:{api}", "model": model, "attributes": attributes}


def machine(a: str, b: str, *more: dict[str, Any]) -> dict[str, Any]:
    return {
        "components": [
            component("board", "pi", "linux", board="raspberry-pi-4"),
            component("encoder", "enc", "incremental", board="pi", pins={"a": "35", "b": "GPIO26"}),
            component(
                "motor",
                "left",
                "gpio",
                board="pi",
                pins={"a": a, "b": b},
                encoder="enc",
                ticks_per_rotation=TICKS,
                max_rpm=120,
            ),
            *more,
        ]
    }


def pin(hardware: SimHardware, name: str) -> Pin:
    line = hardware.board("raspberry-pi-4").pin(name).line
    assert line is not None
    return hardware.pin(line)


@contextmanager
def wheel(hardware: SimHardware, a: str, b: str) -> Iterator[SimMotor]:
    """Connect a motor to the pins, with its encoder on pins 35 and 37."""
    world = hardware.world
    motor = SimMotor("plant", 120, world.now())
    motor.pins = MotorPins(world.wiring, motor.shaft, a=pin(hardware, a), b=pin(hardware, b))
    motor.encoder = SimEncoder("disc", world.wiring, [pin(hardware, "35"), pin(hardware, "37")])
    motor.ticks_per_rotation = TICKS
    with world.holding(motor.encoder), world.holding(motor):
        yield motor


async def up(memory: MemoryMachine) -> ApiClient:
    """Wait until every resource has tried to start, and return a client."""
    await trio.sleep(2)
    return memory.client()


@pytest.mark.parametrize(("a", "b"), [("16", "GPIO24"), ("32", "GPIO13")], ids=["software PWM", "hardware PWM"])
async def test_a_motor_on_a_raspberry_pi(autojump_clock: MockClock, a: str, b: str) -> None:
    hardware = SimHardware(World())
    with wheel(hardware, a, b) as shaft:
        async with open_machine(machine(a, b), hardware=hardware) as memory:
            client = await up(memory)
            for rpm, revolutions in ((60, 3), (-60, 4)):
                await client.call(MOTOR, "left", "go_for", rpm=rpm, revolutions=revolutions)
            position = await client.call(MOTOR, "left", "get_position")
            assert position == pytest.approx(-1, abs=1.01 / TICKS)
            assert shaft.travel(hardware.world.now()) == pytest.approx(-1, abs=2.01 / TICKS)
            await client.call(MOTOR, "left", "set_rpm", rpm=90)
            await trio.sleep(2)
            assert shaft.shaft.power > 0.5
        assert shaft.shaft.power == 0, "the machine has ended"


async def test_an_encoder_that_is_taken_away_takes_its_motor_down(autojump_clock: MockClock) -> None:
    hardware = SimHardware(World())
    with wheel(hardware, "16", "18") as shaft:
        document = machine("16", "18")
        async with open_machine(document, hardware=hardware) as memory:
            client = await up(memory)
            await client.call(MOTOR, "left", "set_rpm", rpm=60)
            await trio.sleep(2)
            assert shaft.shaft.power > 0.3
            memory.write({"components": [item for item in document["components"] if item["name"] != "enc"]})
            await trio.sleep(5)
            assert shaft.shaft.power == 0
            with pytest.raises(MachineError, match="enc"):
                await client.call(MOTOR, "left", "set_rpm", rpm=60)
            memory.write(document)
            await trio.sleep(5)
            await client.call(MOTOR, "left", "go_for", rpm=60, revolutions=1)


async def test_a_chip_that_vanishes_and_comes_back(autojump_clock: MockClock) -> None:
    hardware = SimHardware(World())
    with wheel(hardware, "16", "18") as shaft:
        async with open_machine(machine("16", "18"), hardware=hardware) as memory:
            client = await up(memory)
            await client.call(MOTOR, "left", "set_rpm", rpm=60)
            await trio.sleep(2)
            hardware.set_plugged(CHIP, False)
            await trio.sleep(1)
            with pytest.raises(MachineError):
                await client.call(MOTOR, "left", "set_power", power_pct=0.5)
            hardware.set_plugged(CHIP, True)
            await trio.sleep(60)
            assert shaft.shaft.power == 0, "no command restarted it"
            await client.call(MOTOR, "left", "go_for", rpm=60, revolutions=1)
            assert await client.call(MOTOR, "left", "get_position") == pytest.approx(1, abs=1.01 / TICKS)


async def test_a_pin_with_two_owners_is_refused_by_whatever_name(autojump_clock: MockClock) -> None:
    hardware = SimHardware(World())
    fan = component("switch", "fan", "relay", board="pi", pin="GPIO23")  # pin 16
    async with open_machine(machine("16", "18", fan), hardware=hardware) as memory:
        await up(memory)
        reasons = {name: node.reason for name, node in memory.graph.snapshot().nodes.items() if node.reason}
        refused = [reason for reason in reasons.values() if "switch/fan" in reason and "motor/left" in reason]
        assert len(refused) == 1
        assert "line 23" in refused[0]


async def test_motor_and_servo_on_a_pwm_chip(autojump_clock: MockClock) -> None:
    hardware = SimHardware(World())
    chip = Pca9685Target()
    hardware.bus("1").attach(0x40, chip)
    pins = {"dir": "0", "pwm": "1", "en_high": "2"}
    document = {
        "components": [
            component("board", "hat", "pca9685", i2c_bus="1"),
            component("motor", "left", "gpio", board="hat", pins=pins, pwm_freq=100, max_rpm=100),
            component("servo", "arm", "gpio", board="hat", pin="3", frequency_hz=100),
        ]
    }
    async with open_machine(document, hardware=hardware) as memory:
        client = await up(memory)
        await client.call(MOTOR, "left", "set_power", power_pct=-0.5)
        assert [chip.duty(output) for output in range(3)] == [0, 0.5, 1]
        await client.call(Servo.API, "arm", "move", angle_deg=90)
        assert chip.duty(3) / chip.frequency == pytest.approx(1500e-6, rel=0.02)
        with trio.move_on_after(1):
            await client.call(MOTOR, "left", "go_for", rpm=50, revolutions=10)
        assert [chip.duty(output) for output in (1, 2)] == [0, 0]
        await client.call(MOTOR, "left", "set_power", power_pct=0.7)
        with hardware.faults.injected("i2c-1 address 0x40", FaultPlan(Fault.NO_ACKNOWLEDGE, times=1)):
            with pytest.raises(MachineError, match="0x40"):
                await client.call(MOTOR, "left", "set_power", power_pct=0.8)
        assert [chip.duty(output) for output in (1, 2)] == [0, 0], "off after the failure"
    assert [chip.duty(output) for output in range(4)] == [0] * 4


COMMANDS: dict[str, dict[str, float]] = {
    "set_power": {"power_pct": 0.5},
    "set_rpm": {"rpm": 60},
    "go_for": {"rpm": 60, "revolutions": 100},
}


@pytest.mark.parametrize("command", COMMANDS)
async def test_the_motor_of_a_vanished_client_is_stopped(autojump_clock: MockClock, command: str) -> None:
    hardware = SimHardware(World())
    with wheel(hardware, "16", "18") as shaft:
        async with open_machine(machine("16", "18"), hardware=hardware) as memory:
            await up(memory)
            session = memory.machine.traffic.sessions.start()
            client = memory.client({"viam-sid": session.id})

            async def drive() -> None:
                with contextlib.suppress(MachineError):
                    await client.call(MOTOR, "left", command, **COMMANDS[command])

            async with trio.open_nursery() as nursery:
                nursery.start_soon(drive)
                await trio.sleep(1.5)
                assert shaft.shaft.power > 0.2
                await trio.sleep(3)
                assert shaft.shaft.power == 0
