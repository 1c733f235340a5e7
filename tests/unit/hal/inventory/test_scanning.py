"""The complete inventory, on the simulated family and on a fake tree."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import NoReturn

import msgspec
import pytest
import trio
from trio.testing import MockClock

from hal.boards.definition import BoardDefinition
from hal.errors import Fault, HalError
from hal.inventory.board import find_board
from hal.inventory.scanning import SCAN_LIMIT, take_inventory
from hal.ports.i2c import I2cBus
from hal.reservations import Reservations
from hal.sim import World
from hal.sim.hardware import SimHardware
from hal.sim.target import Nak
from tests.unit.hal.inventory.computer import Computer


class Chip:
    """A chip that accepts every transfer and records it."""

    def __init__(self) -> None:
        self.asked: list[bytes | int] = []

    def write(self, data: bytes) -> None:
        self.asked.append(data)

    def read(self, n: int) -> bytes:
        self.asked.append(n)
        return bytes(n)


class OnTree:
    """The Linux family on a fake tree, with the I2C buses of the simulated family."""

    family = "linux"

    def __init__(self, root: Path, sim: SimHardware) -> None:
        self.root = root
        self.sim = sim
        self.reservations = Reservations()
        self.opened: list[str] = []

    def board(self, name: str = "") -> BoardDefinition:
        return find_board(name, self.root)

    def i2c(self, bus: str) -> AbstractAsyncContextManager[I2cBus]:
        self.opened.append(bus)
        return self.sim.i2c(bus)


@pytest.fixture
def sim() -> SimHardware:
    return SimHardware(World())


@pytest.fixture
def hardware(computer: Computer, sim: SimHardware) -> OnTree:
    return OnTree(computer.root, sim)


async def test_addresses_that_answer_with_what_may_be_there(
    computer: Computer, hardware: OnTree, sim: SimHardware, autojump_clock: MockClock
) -> None:
    computer.i2c(1, "bcm2835 (i2c@7e804000)")
    sim.bus("1").attach(0x48, Chip())
    sim.bus("1").attach(0x76, Chip())
    result = await take_inventory(
        hardware,  # type: ignore[arg-type]
        root=computer.root,
        chips_at=lambda address: ("BME280",) if address == 0x76 else (),
    )
    (bus,) = result.i2c
    assert bus.scanned
    assert [(device.address, device.likely) for device in bus.devices] == [(0x48, ()), (0x76, ("BME280",))]
    assert result.problems == ()


async def test_addresses_used_by_a_kernel_driver_are_not_probed(
    computer: Computer, hardware: OnTree, sim: SimHardware, autojump_clock: MockClock
) -> None:
    computer.i2c(1, "bcm2835")
    computer.i2c_driver(1, 0x68, "rtc-ds1307")
    kernels, ours, free = Chip(), Chip(), Chip()
    for address, chip in ((0x68, kernels), (0x48, ours), (0x49, free)):
        sim.bus("1").attach(address, chip)
    with hardware.reservations.hold("rdk:component:sensor/t", "i2c-1 address 0x48"):
        result = await take_inventory(hardware, root=computer.root)  # type: ignore[arg-type]
    assert [(device.address, device.driver) for device in result.i2c[0].devices] == [
        (0x48, "rdk:component:sensor/t"),
        (0x49, ""),
        (0x68, "rtc-ds1307"),
    ]
    assert kernels.asked == []
    assert ours.asked == []
    assert free.asked == [b""]


async def test_memories_are_read_and_nothing_is_ever_written(
    computer: Computer, hardware: OnTree, sim: SimHardware, autojump_clock: MockClock
) -> None:
    computer.i2c(1, "bcm2835")
    chips = {address: Chip() for address in range(0x08, 0x78)}
    for address, chip in chips.items():
        sim.bus("1").attach(address, chip)
    result = await take_inventory(hardware, root=computer.root)  # type: ignore[arg-type]
    assert len(result.i2c[0].devices) == len(chips)
    for address, chip in chips.items():
        assert chip.asked in ([b""], [1])
        if 0x50 <= address < 0x60:
            assert chip.asked == [1]


async def test_screens_are_not_asked_and_nothing_is_without_scan(
    computer: Computer, hardware: OnTree, autojump_clock: MockClock
) -> None:
    for number, name in enumerate(("i915 gmbus dpb", "AMDGPU DM i2c hw bus 0", "fef04500.i2c", "NVIDIA i2c adapter 1")):
        computer.i2c(number, name)
    result = await take_inventory(hardware, root=computer.root)  # type: ignore[arg-type]
    assert [bus.scanned for bus in result.i2c] == [False] * 4
    computer.i2c(7, "bcm2835")
    result = await take_inventory(hardware, scan=False, root=computer.root)  # type: ignore[arg-type]
    assert not any(bus.scanned for bus in result.i2c)
    assert hardware.opened == []


async def test_a_stuck_bus_is_a_problem_and_the_others_are_looked_at(
    computer: Computer, hardware: OnTree, sim: SimHardware, autojump_clock: MockClock
) -> None:
    computer.i2c(1, "bcm2835")
    computer.i2c(2, "other")
    sim.bus("1").stall()
    sim.bus("2").attach(0x48, Chip())
    result = await take_inventory(hardware, root=computer.root)  # type: ignore[arg-type]
    assert [bus.scanned for bus in result.i2c] == [False, True]
    (problem,) = result.problems
    assert problem.subject == "/dev/i2c-1 (bcm2835)"
    assert problem.remedy


async def test_a_bus_that_never_answers_is_given_up(
    computer: Computer, hardware: OnTree, autojump_clock: MockClock
) -> None:
    class Silent:
        name = "i2c-1"

        async def transaction(self, address: int, *steps: bytes | int) -> list[bytes]:
            await trio.sleep_forever()
            raise AssertionError

        async def lost(self) -> NoReturn:
            await trio.sleep_forever()
            raise AssertionError

    @asynccontextmanager
    async def silent(bus: str) -> AsyncIterator[I2cBus]:
        yield Silent()

    computer.i2c(1, "bcm2835")
    hardware.i2c = silent  # type: ignore[method-assign]
    began = trio.current_time()
    result = await take_inventory(hardware, root=computer.root)  # type: ignore[arg-type]
    assert trio.current_time() - began == pytest.approx(SCAN_LIMIT)
    assert "did not finish within" in result.problems[0].reason


async def test_an_adapter_that_may_not_be_opened_is_a_problem_with_a_remedy(
    computer: Computer, hardware: OnTree, autojump_clock: MockClock
) -> None:
    def refuse(bus: str) -> AbstractAsyncContextManager[I2cBus]:
        raise HalError(f"{bus}: Permission denied", Fault.PERMISSION, remedy="add the user to group i2c")

    computer.i2c(1, "bcm2835")
    hardware.i2c = refuse  # type: ignore[method-assign]
    result = await take_inventory(hardware, root=computer.root)  # type: ignore[arg-type]
    assert result.problems[0].remedy == "add the user to group i2c"


async def test_the_simulated_family_has_the_buses_of_its_board(sim: SimHardware, autojump_clock: MockClock) -> None:
    sim.bus("1").attach(0x48, Chip())
    result = await take_inventory(sim)  # type: ignore[arg-type]
    assert result.board.name == "raspberry-pi-4"
    assert {bus.path: [device.address for device in bus.devices] for bus in result.i2c} == {
        "/dev/i2c-1": [0x48],
        "/dev/i2c-0": [],
    }


async def test_a_chip_that_refuses_is_not_there(
    computer: Computer, hardware: OnTree, sim: SimHardware, autojump_clock: MockClock
) -> None:
    class Shy(Chip):
        def write(self, data: bytes) -> None:
            raise Nak

    computer.i2c(1, "bcm2835")
    sim.bus("1").attach(0x48, Shy())
    result = await take_inventory(hardware, root=computer.root)  # type: ignore[arg-type]
    assert result.i2c[0].devices == ()


async def test_everything_becomes_json(computer: Computer, hardware: OnTree, autojump_clock: MockClock) -> None:
    computer.firmware("Raspberry Pi 4 Model B Rev 1.4", "raspberrypi,4-model-b")
    interface = computer.usb("1-1.4", "0403", "6001", serial="S", driver="ftdi_sio")
    computer.tty("ttyUSB0", interface, "usb-S")
    computer.gpio(0, "pinctrl-bcm2711", 58, "fe200000.gpio")
    computer.camera(0, "cam")
    result = await take_inventory(hardware, root=computer.root)  # type: ignore[arg-type]
    data = json.loads(json.dumps(msgspec.to_builtins(result)))
    assert data["board"] == {
        "name": "raspberry-pi-4",
        "title": "Raspberry Pi 4 Model B",
        "model": "Raspberry Pi 4 Model B Rev 1.4",
    }
    assert data["serial"][0]["stable"] == ["/dev/serial/by-id/usb-S"]
    assert {kind for kind, value in data.items() if value} == {"board", "gpio", "serial", "usb", "cameras"}
