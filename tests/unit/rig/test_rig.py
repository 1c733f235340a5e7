"""The rig's handles, faults and plant on the simulated family, without pytest's integration."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from engine.components.controls.board import Board
from engine.components.controls.switch import Switch
from engine.components.motion.motor import Motor, Powered
from engine.components.sensing.encoder import Encoder, EncoderPosition, PositionType
from engine.components.sensing.sensor import Sensor
from hal.ports.digital import Line
from hal.sim.hardware import SimHardware
from models.chips.tmp102.simulation import Tmp102Target
from rig.artefacts import Artefacts, file_name
from rig.faults import Faults
from rig.local import open_sim
from rig.outputs import Outputs
from rig.plant import load_plant
from rig.rig import Rig, running
from rig.session import find_provider
from rig.setup import Setup, read_document
from schema.errors import ErrorKind, MachineError
from schema.space.geometry import Vector3

BOARD = {
    "name": "pi",
    "api": "rdk:component:board",
    "model": "rdk:builtin:linux",
    "attributes": {"board": "raspberry-pi-4"},
}
RELAY = {
    "name": "relay",
    "api": "rdk:component:switch",
    "model": "rdk:builtin:relay",
    "attributes": {"board": "pi", "pin": "GPIO17"},
}
AIR = {
    "name": "air",
    "api": "rdk:component:sensor",
    "model": "rdk:builtin:tmp102",
    "attributes": {"i2c_bus": "1"},
}


class Room:
    """A plant: air with the temperature that the test sets."""

    RECORDED = ("warmth_c",)

    def __init__(self, hardware: SimHardware) -> None:
        self._chip = Tmp102Target(clock=hardware.world.now)
        hardware.bus("1").attach(0x48, self._chip)

    @property
    def warmth_c(self) -> float:
        return self._chip.temperature_c

    @warmth_c.setter
    def warmth_c(self, value: float) -> None:
        self._chip.temperature_c = value

    def add(self, item: float, other: float) -> float:
        return item + other


def setup(folder: Path, document: dict[str, Any], **changes: Any) -> Setup:
    fields: dict[str, Any] = {
        "kind": "sim",
        "document": document,
        "models": (),
        "plant": None,
        "plant_name": "",
        "folder": folder,
        "seed": 0,
        "artefacts": Artefacts(folder / "artefacts", trio.current_time),
        "outputs": Outputs(lambda name, level, at=None: None),
        "unsafe": [],
    }
    return Setup(**{**fields, **changes})


@asynccontextmanager
async def opened(folder: Path, *components: dict[str, Any], sample: float = 0.0, **changes: Any) -> AsyncIterator[Rig]:
    created = setup(folder, {"components": list(components)}, **changes)
    try:
        async with open_sim(created) as backend, running(created, backend, sample) as rig:
            yield rig
    finally:
        created.artefacts.write()
    assert created.unsafe == []


async def test_handles_have_the_types_of_their_base_class(tmp_path: Path, autojump_clock: MockClock) -> None:
    fakes: list[dict[str, Any]] = [
        {"name": subtype, "api": f"rdk:component:{subtype}", "model": "rdk:builtin:fake"}
        for subtype in ("motor", "encoder", "board", "movement_sensor")
    ]
    fakes[2]["attributes"] = {"digital_interrupts": [{"name": "1", "pin": "1"}]}
    async with opened(tmp_path, *fakes) as rig:
        motor, encoder, board = rig.get(Motor, "motor"), rig.get(Encoder, "encoder"), rig.get(Board, "board")
        await motor.set_power(0.25)
        assert await motor.is_powered() == Powered(True, 0.25)
        assert await motor.is_moving()
        await motor.stop()
        position = await encoder.get_position(PositionType.TICKS_COUNT)
        assert position == EncoderPosition(0.0, PositionType.TICKS_COUNT)
        assert isinstance(motor, Motor)
        assert repr(motor) == "<handle of rdk:component:motor/motor>"
        async with trio.open_nursery() as nursery, aclosing(board.stream_ticks(["1"])) as ticks:

            async def toggle() -> None:
                await trio.sleep(1)
                await board.set_gpio("1", True)

            nursery.start_soon(toggle)
            tick = await anext(ticks)
            assert (tick.pin_name, tick.high) == ("1", True)
        from engine.components.sensing.movement_sensor import MovementSensor

        assert isinstance(await rig.get(MovementSensor, "movement_sensor").get_linear_velocity(), Vector3)
        assert {"motor is_powered power_pct", "encoder position value"} <= set(rig.recorder.channels)


async def test_errors_are_those_that_clients_read(tmp_path: Path, autojump_clock: MockClock) -> None:
    async with opened(tmp_path, BOARD, RELAY) as rig:
        with pytest.raises(MachineError) as caught:
            await rig.get(Switch, "relay").set_position(7)
        assert caught.value.kind is ErrorKind.INVALID
        with pytest.raises(MachineError, match="relais") as caught:
            await rig.get(Switch, "relais").get_position()
        assert caught.value.kind is ErrorKind.NOT_FOUND
        with pytest.raises(TypeError, match="unexpected keyword argument 'speed'"):
            await rig.get(Switch, "relay").set_position(1, speed=3)  # type: ignore[call-arg]


async def test_the_plant_by_name(tmp_path: Path, autojump_clock: MockClock) -> None:
    async with opened(tmp_path, AIR, plant=Room, sample=0.5) as rig:
        air = rig.get(Sensor, "air")
        await trio.sleep(0.1)
        await rig.plant.set("warmth_c", 30.5)
        await trio.sleep(1)
        assert (await air.get_readings())["temperature_c"] == 30.5
        assert await rig.plant.get("warmth_c") == 30.5
        assert await rig.plant.call("add", 1, 2) == 3
        for wrong in (rig.plant.get("cold"), rig.plant.set("cold", 1), rig.plant.get("_chip")):
            with pytest.raises(AttributeError):
                await wrong
        assert [value for _, value in rig.recorder.channels["plant warmth_c"].points][:2] == [25.0, 30.5]
        assert len(rig.recorder.channels["air temperature_c"].points) == 4


async def test_each_fault_is_over_after_its_context_even_if_that_fails(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with opened(tmp_path, AIR, plant=Room) as rig:
        air, faults = rig.get(Sensor, "air"), rig.faults
        for fault, words in (
            (faults.no_acknowledge("i2c-1", 0x48), "nobody answers"),
            (faults.no_acknowledge("i2c-1"), "nobody answers"),
            (faults.stuck("i2c-1"), "held low"),
            (faults.unplugged("i2c-1"), "the adapter is gone"),
        ):
            with pytest.raises(MachineError, match=words):  # noqa: PT012 - the error passes through the fault
                async with fault:
                    await trio.sleep(0.1)  # of virtual time, in which the driver notices it
                    await air.get_readings()
            await rig.until(air.get_readings, within=30)
        begin = trio.current_time()
        async with faults.slow("i2c-1", 2.0):
            await air.get_readings()
        assert trio.current_time() - begin >= 2.0
        async with faults.bit_errors("i2c-1 address 0x48", 1.0), faults.noise("air", 1.0):
            with pytest.raises(MachineError, match="reads 0x"):
                await air.get_readings()
        assert (await air.get_readings())["temperature_c"] == 25.0
        with pytest.raises(ValueError, match="no device 'i2c-7'"):
            await faults.unplugged("i2c-7").__aenter__()


async def test_a_short_and_a_power_loss(tmp_path: Path, autojump_clock: MockClock) -> None:
    line = Line("pinctrl-bcm2711", 17)
    async with opened(tmp_path, BOARD, RELAY) as rig:
        relay, wiring = rig.get(Switch, "relay"), rig.world.wiring
        assert isinstance(rig.hardware, SimHardware)
        pin = rig.hardware.pin(line)
        async with rig.faults.shorted(line, True):
            assert wiring.signal(pin).level(0)
        assert not wiring.signal(pin).level(0)
        await relay.set_position(1)
        machine = rig.machine
        async with rig.faults.power_loss():
            assert not wiring.signal(pin).level(0)
            assert pin.drive is None
            with pytest.raises(MachineError, match="powered off"):
                await relay.get_position()
            with pytest.raises(pytest.skip.Exception):
                _ = rig.machine
        assert rig.machine is not machine
        assert await relay.get_position() == 0
        await relay.set_position(1)
        assert wiring.signal(pin).level(0)


async def test_until_waits_for_a_resource_that_is_away(tmp_path: Path, autojump_clock: MockClock) -> None:
    async with opened(tmp_path, AIR, plant=Room) as rig:
        hardware = rig.hardware
        assert isinstance(hardware, SimHardware)
        hardware.bus("1").unplug()

        async def back() -> None:
            await trio.sleep(5)
            hardware.bus("1").plug()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(back)
            assert 5 <= await rig.until(rig.get(Sensor, "air").get_readings, within=20) < 8

        async def never() -> int:
            return 0

        with pytest.raises(AssertionError, match="the moon did not hold within 3 s; last: 0"):
            await rig.until(never, within=3, what="the moon")


async def test_a_rig_without_means_skips() -> None:
    faults = Faults(None, "pi.local:8080")
    with pytest.raises(pytest.skip.Exception, match="cannot cause a power loss"):
        faults.power_loss()
    for fault in (faults.stuck("i2c-1"), faults.slow("x", 1), faults.unplugged("x")):
        with pytest.raises(pytest.skip.Exception, match=r"pi\.local:8080"):
            await fault.__aenter__()


def test_kinds_of_rig() -> None:
    own = {"mine": "rig.local:open_linux"}
    assert find_provider("sim", own) is open_sim
    assert find_provider("mine", own).__name__ == "open_linux"
    assert find_provider("rig.local:open_linux", {}).__name__ == "open_linux"
    for address in ("pi.local:8080", "https://pi", "[::1]:80", "127.0.0.1:8080"):
        assert find_provider(address, own).__name__ == "open_address"
    with pytest.raises(ValueError, match="not one of sim, linux, mine"):
        find_provider("simm", own)


def test_documents(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"components": []}')
    (tmp_path / "list.json").write_text("[]")
    (tmp_path / "bad.json").write_text("{")
    assert read_document("a.json", tmp_path) == read_document({"components": []}, tmp_path) == {"components": []}
    for name, words in (("list.json", "not a JSON object"), ("bad.json", "bad.json: "), ("no.json", "No such file")):
        with pytest.raises(MachineError, match=words):
            read_document(name, tmp_path)


def test_plants_by_name() -> None:
    assert load_plant(None) is None
    assert load_plant(Room) is Room
    plant: object = load_plant("hal.sim.hardware:SimHardware")
    assert plant is SimHardware
    with pytest.raises(ValueError, match="not of the form module:Class"):
        load_plant("hal.sim.hardware")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("tests/test_a.py::test_x[1-a b]", "tests-test_a.py-test_x-1-a-b"),
        ("../..", "unnamed"),
        ("x" * 500, "x" * 120),
    ],
)
def test_file_names(text: str, name: str) -> None:
    assert file_name(text) == name
