"""Devices in a whole machine, in virtual time: unplugged, they are unhealthy at once; plugged in, they recover."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from engine.components.controls.input_controller import InputController
from engine.components.sensing.movement_sensor import MovementSensor
from engine.components.sensing.sensor import Sensor
from hal.nmea import sentence
from hal.ports.controls import ControlsIdentity
from hal.ports.serial import SerialIdentity
from hal.sim import World
from hal.sim.hardware import SimHardware
from runtime.server.memory import MemoryMachine, open_machine

IDENTITY = {"vendor_id": "0403", "product_id": "6001", "serial_number": "A1"}


def document(api: str, model: str, attributes: dict[str, Any]) -> dict[str, Any]:
    return {"components": [{"name": "it", "api": f"rdk:component:{api}", "model": model, "attributes": attributes}]}


def state(memory: MemoryMachine, api: str) -> tuple[str, str]:
    status = memory.graph.snapshot().nodes[f"rdk:component:{api}/it"]
    return status.state.value, status.reason


async def until(memory: MemoryMachine, api: str, expected: str) -> float:
    """Return the virtual seconds until the resource is in the state."""
    start = trio.current_time()
    with trio.fail_after(60):
        async for snapshot in memory.graph.changes():
            node = snapshot.nodes.get(f"rdk:component:{api}/it")
            if node is not None and node.state.value == expected:
                break
    return trio.current_time() - start


@pytest.fixture
def hardware() -> SimHardware:
    return SimHardware(World())


async def test_a_serial_sensor_comes_back_under_another_number(hardware: SimHardware, autojump_clock: object) -> None:
    port = hardware.plug_serial("/dev/ttyUSB0", identity=SerialIdentity(0x0403, 0x6001, "A1", 0), in_memory=True)
    attributes = {**IDENTITY, "parser": "number"}
    async with open_machine(document("sensor", "serial_line", attributes), hardware=hardware) as memory:
        await until(memory, "sensor", "ready")
        await port.far.send_all(b"\n1\n2.")
        await wait_all_tasks_blocked()
        assert (await memory.client().call(Sensor.API, "it", "get_readings"))["value"] == 1
        port.unplug()
        assert await until(memory, "sensor", "unhealthy") < 0.1
        await trio.sleep(100)
        assert "no serial port belongs to USB 0403:6001 serial A1" in state(memory, "sensor")[1]
        other = hardware.plug_serial("/dev/ttyUSB0", identity=SerialIdentity(0x0403, 0x6001, "B2", 0), in_memory=True)
        await trio.sleep(100)
        assert "there are /dev/ttyUSB0 (USB 0403:6001 serial B2" in state(memory, "sensor")[1]
        port.plug("/dev/ttyUSB1")
        assert await until(memory, "sensor", "ready") < 0.1  # by the event, not after the back-off
        await port.far.send_all(b"5\n3\n")
        await wait_all_tasks_blocked()
        assert (await memory.client().call(Sensor.API, "it", "get_readings"))["value"] == 3
        assert other.settings is None


async def test_a_receiver_over_the_api(hardware: SimHardware, autojump_clock: object) -> None:
    port = hardware.plug_serial("/dev/ttyS0", in_memory=True)
    async with open_machine(
        document("movement_sensor", "gps-nmea", {"path": "/dev/ttyS0"}), hardware=hardware
    ) as memory:
        await until(memory, "movement_sensor", "ready")
        await port.far.send_all(sentence("GPGGA,123519,4807.038,N,01131.000,E,1,08,0.9,545.4,M,46.9,M,,"))
        await wait_all_tasks_blocked()
        position = await memory.client().call(MovementSensor.API, "it", "get_position")
        assert position["coordinate"]["latitude"] == pytest.approx(48.1173)
        assert position["altitude_m"] == pytest.approx(545.4, abs=1e-4)
        readings = await memory.client().call(MovementSensor.API, "it", "get_readings")
        assert readings["fix"] == "GPS"


async def test_a_gamepad_is_unhealthy_while_it_is_away_and_its_streams_go_on(
    hardware: SimHardware, autojump_clock: object
) -> None:
    async with open_machine(document("input_controller", "gamepad", {}), hardware=hardware) as memory:
        await wait_all_tasks_blocked()
        assert state(memory, "input_controller")[0] == "unhealthy"
        pad = hardware.plug_gamepad(ControlsIdentity("/dev/input/event3", "Pad", 1, 2))
        assert await until(memory, "input_controller", "ready") < 0.1
        heard: list[tuple[str, float]] = []

        async def listen() -> None:
            expected = [{"control": "AbsoluteX", "events": ["AllEvents"]}]
            async for event in memory.client().stream(InputController.API, "it", "stream_events", events=expected):
                heard.append((event["event"], event["value"]))  # noqa: PERF401 - as they come

        async with trio.open_nursery() as nursery:
            nursery.start_soon(listen)
            await wait_all_tasks_blocked()
            pad.move(0, 32767)
            await wait_all_tasks_blocked()
            pad.unplug()
            assert await until(memory, "input_controller", "unhealthy") < 0.1
            await wait_all_tasks_blocked()
            assert heard == [("PositionChangeAbs", 1.0), ("PositionChangeAbs", 0.0), ("Disconnect", 0.0)]
            pad.plug()
            assert await until(memory, "input_controller", "ready") < 0.1
            await wait_all_tasks_blocked()
            assert heard[3:] == [("Connect", 0.0)]
            nursery.cancel_scope.cancel()


async def test_a_webcam_comes_back(hardware: SimHardware, autojump_clock: object) -> None:
    async with open_machine(document("camera", "webcam", {"frame_rate": 5}), hardware=hardware) as memory:
        await until(memory, "camera", "ready")
        hardware.camera().unplug()
        assert await until(memory, "camera", "unhealthy") < 0.1
        await trio.sleep(30)
        hardware.camera().plug()
        assert await until(memory, "camera", "ready") < 0.5  # includes the time of the first frame
