"""An emulated Raspberry Pi 3: its own drivers of pins and I2C, observed and changed from outside."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import trio
from viam.components.board import Board
from viam.components.sensor import Sensor

from tests.hil.pi.contents import why_not_ready
from tests.hil.pi.machine import THERMOMETER, PiGuest, RaspberryPi, open_pi

NOBODY = 0x4F
READ_NOBODY = f"""
import smbus2
try:
    smbus2.SMBus(1).read_byte({NOBODY})
except OSError as error:
    print(error.errno)
"""
BOARD = {"name": "pi", "api": "rdk:component:board", "model": "linux", "attributes": {"safe_high": ["16"]}}


def sensor(name: str, address: int) -> dict[str, Any]:
    attributes = {"i2c_bus": "1", "i2c_address": address, "chip": "tmp105"}
    return {"name": name, "api": "rdk:component:sensor", "model": "lm75", "attributes": attributes}


DOCUMENT = {"components": [BOARD, sensor("thermometer", THERMOMETER)]}


@pytest.fixture(scope="module")
def pi() -> Iterator[RaspberryPi]:
    reason = why_not_ready()
    if reason and os.environ.get("CI"):
        pytest.fail(f"the emulated Raspberry Pi is required here: {reason}", pytrace=False)
    if reason:
        pytest.skip(reason)
    with RaspberryPi() as machine:
        yield machine


@pytest.fixture
async def guest(pi: RaspberryPi) -> AsyncIterator[PiGuest]:
    async with open_pi(pi) as found:
        yield found


async def test_the_board_is_detected_from_its_device_tree(guest: PiGuest) -> None:
    said = (await guest.run("machine hal")).stdout
    print(said)
    assert "Raspberry Pi 3" in said


async def test_pins_and_thermometer_through_the_official_sdk(guest: PiGuest) -> None:
    """Header pin 11 is GPIO 17, 16 is GPIO 23; their levels are read from the chip's register, from outside."""
    async with guest.server(DOCUMENT) as server:
        assert await level(guest, 17) is False
        async with server.sdk() as sdk:
            board = Board.from_robot(sdk.robot, "pi")
            for name, line, high in (("11", 17, True), ("16", 23, False), ("GPIO27", 27, True)):
                pin = await sdk(board.gpio_pin_by_name(name))
                await sdk(pin.set(high))
                assert await level(guest, line) is high
                assert await sdk(pin.get()) is high
            thermometer = Sensor.from_robot(sdk.robot, "thermometer")
            for celsius in (25.0, 61.5, -10.0):
                await guest.set_temperature(celsius)
                readings = await converted(sdk, thermometer, celsius)
                assert readings == {"temperature_c": celsius}
    assert [await level(guest, line) for line in (17, 27)] == [False, False]  # stopped and safe


async def converted(sdk: Any, thermometer: Sensor, celsius: float) -> dict[str, Any]:
    """Return the readings after the next conversion."""
    readings: dict[str, Any] = {}
    with trio.move_on_after(30):
        while readings.get("temperature_c") != celsius:
            readings = dict(await sdk(thermometer.get_readings()))
    return readings


async def test_a_missing_chip_is_reported(guest: PiGuest) -> None:
    """This controller reports EREMOTEIO (121) where others report ENXIO."""
    said = (await guest.run(["python3", "-c", READ_NOBODY])).stdout
    assert said.split() == ["121"]
    async with guest.server({"components": [sensor("nobody", NOBODY)]}) as server:
        assert "i2c-1 address 0x4f: nobody answers: check the wiring" in server.log


async def level(guest: PiGuest, line: int) -> bool:
    return bool(await guest.pins() >> line & 1)
