"""Run the programs of docs/howto/use-the-hardware-layer.md on the simulated bench."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from hal.errors import Fault, HalError
from hal.ports.digital import Line
from hal.ports.usb import UsbIdentity
from hal.sim import World
from hal.sim.gpio.signal import HIGH, LOW
from hal.sim.hardware import SimHardware
from hal.sim.usb import SimUsbDevice
from models.chips.lm75.simulation import Lm75Target

PAGE = Path(__file__).parents[3] / "docs" / "howto" / "use-the-hardware-layer.md"


@pytest.fixture(scope="module")
def page() -> dict[str, Any]:
    """Run the code blocks of the page in order and return the names that they define."""
    names: dict[str, Any] = {"__name__": "page"}
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S):
        exec(block, names)
    return names


@pytest.fixture
async def hardware(autojump_clock: MockClock) -> SimHardware:
    result = SimHardware(World())
    result.bus("1").attach(0x48, Lm75Target(temperature_c=21.5))
    await trio.sleep(1)  # the chip's first conversion
    return result


async def test_the_temperature(
    page: dict[str, Any], autojump_clock: MockClock, hardware: SimHardware, capsys: pytest.CaptureFixture[str]
) -> None:
    await page["print_temperature"](hardware)
    await page["on_the_bench"]()
    assert capsys.readouterr().out == "21.5 °C\n21.5 °C\n"


async def test_limits_answers_and_addresses(
    page: dict[str, Any], autojump_clock: MockClock, hardware: SimHardware
) -> None:
    await page["set_and_read_a_limit"](hardware)
    assert await page["temperature_or_nothing"](hardware) == [b"\x15\x80"]
    assert await page["is_there"](hardware, 0x48)
    assert not await page["is_there"](hardware, 0x49)


async def test_a_stuck_bus_is_given_up_in_time(
    page: dict[str, Any], autojump_clock: MockClock, hardware: SimHardware
) -> None:
    hardware.bus("1").stall()
    begin = trio.current_time()
    assert await page["temperature_or_nothing"](hardware) is None
    assert trio.current_time() - begin == pytest.approx(0.5)


async def test_the_lamp_follows_the_button(
    page: dict[str, Any], autojump_clock: MockClock, hardware: SimHardware
) -> None:
    button, lamp = (hardware.pin(hardware.board().pin(name).line or Line("", 0)) for name in ("GPIO17", "GPIO4"))
    wiring = hardware.world.wiring
    async with trio.open_nursery() as nursery:
        nursery.start_soon(page["lamp_follows_button"], hardware)
        await trio.sleep(1)
        for pressed in (True, False, True):
            wiring.set_drive(button, LOW if pressed else HIGH, trio.current_time())
            await trio.sleep(1)
            assert wiring.signal(lamp).level(trio.current_time()) is pressed
        nursery.cancel_scope.cancel()
    assert not wiring.signal(lamp).level(trio.current_time())


class Converter:
    def transfer(self, data: bytes) -> bytes:
        assert data == b"\x01\x80\x00"
        return b"\x00\x02\x9a"


async def test_the_converter(page: dict[str, Any], autojump_clock: MockClock, hardware: SimHardware) -> None:
    hardware.spi_bus("0").attach(0, Converter())
    assert await page["read_converter"](hardware) == 0x29A


class Echo:
    device: SimUsbDevice

    def control_in(self, *_: int) -> bytes:
        return b""

    def control_out(self, *_: object) -> None: ...

    def write(self, endpoint: int, data: bytes) -> None:
        self.device.push(endpoint | 0x80, data.upper())


async def test_usb_and_serial(page: dict[str, Any], autojump_clock: MockClock, hardware: SimHardware) -> None:
    echo = Echo()
    echo.device = hardware.plug_usb(UsbIdentity(0x1209, 1, "A1", "1-1"), echo)
    assert await page["exchange"](hardware) == b"QUESTION"
    port = hardware.plug_serial("/dev/ttyUSB0", in_memory=True)
    async with trio.open_nursery() as nursery:

        async def device() -> None:
            assert await port.far.receive_some() == b"*IDN?\n"
            await port.far.send_all(b"Acme Meter\n")

        nursery.start_soon(device)
        assert await page["ask"](hardware, "/dev/ttyUSB0") == b"Acme Meter\n"


async def test_watchers_get_unplug_events(
    page: dict[str, Any], autojump_clock: MockClock, hardware: SimHardware
) -> None:
    seen: list[list[bytes]] = []

    async def unplug() -> None:
        await trio.sleep(2.5)
        hardware.bus("1").unplug()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(unplug)
        with pytest.RaisesGroup(pytest.RaisesExc(HalError, check=lambda error: error.fault is Fault.GONE)):
            await page["watch"](hardware, seen.append)
    assert seen == [[b"\x15\x80"]] * 3
