"""Analog inputs of the board on simulated converters."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
import trio
from trio.testing import MockClock

from hal.errors import Fault
from hal.sim.bench.world import World
from hal.sim.faults import FaultPlan
from hal.sim.hardware import SimHardware
from models.board.attributes import Analog, Interrupt, LinuxBoardConfig
from models.chips.ads1115.simulation import Ads1115Target
from models.chips.mcp3008.simulation import Mcp3008Target
from schema.errors import ErrorKind, MachineError
from tests.unit.models.board.support import Rig, entry, rig


async def read(r: Rig, name: str) -> tuple[int, float, float, float]:
    reply = await r.call("read_analog_reader", analog_reader_name=name)
    return reply["value"], reply["min_range"], reply["max_range"], reply["step_size"]


def computer() -> tuple[SimHardware, Mcp3008Target, Ads1115Target]:
    hardware = SimHardware(World())
    spi, i2c = Mcp3008Target(), Ads1115Target()
    hardware.spi_bus("0").attach(1, spi)
    hardware.bus("1").attach(0x49, i2c)
    return hardware, spi, i2c


ON_SPI = {"name": "light", "channel": "3", "spi_bus": "0", "chip_select": "1"}
ON_I2C = {"name": "level", "channel": 2, "i2c_bus": "1", "i2c_address": 0x49}


async def test_channels_of_both_converters(autojump_clock: MockClock) -> None:
    hardware, spi, i2c = computer()
    analogs = [
        ON_SPI,
        {"name": "again", "pin": "4", "spi_bus": 0, "chip_select": 1, "reference_v": 3.3},
        ON_I2C,
        {"name": "bridge", "channel": "0-1", "i2c_bus": 1, "i2c_address": 0x49, "full_scale_v": 2.048},
    ]
    async with rig(entry(analogs=analogs), hardware=hardware) as r:
        spi.volts[3], spi.volts[4] = 1.65, 3.3
        i2c.volts[:3] = [0.5, 1.0, 2.048]
        assert await read(r, "light") == (512, 0.0, pytest.approx(3.3), pytest.approx(3.3 / 1024))
        assert (await read(r, "again"))[0] == 1023
        assert await read(r, "level") == (16384, 0.0, pytest.approx(4.096), pytest.approx(4.096 / 32768))
        assert await read(r, "bridge") == (
            -8000,
            pytest.approx(-2.048),
            pytest.approx(2.048),
            pytest.approx(2.048 / 32768),
        )
        i2c.volts[2] = -0.01
        assert (await read(r, "level"))[0] == 0
        assert r.hardware.reservations.all() == {f"{hardware.bus('1').name} address 0x49": "rdk:component:board/board"}


async def test_readings_at_once_do_not_disturb_each_other(autojump_clock: MockClock) -> None:
    hardware, _, i2c = computer()
    analogs = [{**ON_I2C, "name": str(channel), "channel": channel} for channel in range(4)]
    async with rig(entry(analogs=analogs), hardware=hardware) as r:
        i2c.volts[:] = [0.5, 1.0, 1.5, 2.0]
        got = {}

        async def read_analog(name: str) -> None:
            got[name] = (await read(r, name))[0]

        async with trio.open_nursery() as nursery:
            for name in "3102":
                nursery.start_soon(read_analog, name)
        assert got == {"0": 4000, "1": 8000, "2": 12000, "3": 16000}


async def test_the_mean_of_the_last_moments(autojump_clock: MockClock) -> None:
    hardware, spi, _ = computer()
    analogs = [{**ON_SPI, "average_over_ms": 100, "samples_per_sec": 100}]
    async with rig(entry(analogs=analogs), hardware=hardware) as r:
        spi.volts[3] = 3.3 * 400.5 / 1024
        await trio.sleep(0.2)
        assert (await read(r, "light"))[0] == 400
        spi.volts[3] = 3.3 * 800.5 / 1024
        await trio.sleep(0.0501)
        assert (await read(r, "light"))[0] == 600, "half of the samples"
        await trio.sleep(0.1)
        assert (await read(r, "light"))[0] == 800
        hardware.faults.inject(hardware.spi_bus("0").label(1), FaultPlan(Fault.TIMEOUT))
        await trio.sleep(0.1)
        with pytest.raises(MachineError) as caught:
            await read(r, "light")
        assert caught.value.kind is ErrorKind.TIMEOUT
        hardware.faults.clear(hardware.spi_bus("0").label(1))
        await trio.sleep(0.1)
        assert (await read(r, "light"))[0] == 800
        assert r.state() == "ready"


async def test_a_converter_that_is_not_there(autojump_clock: MockClock) -> None:
    async with rig(entry(analogs=[ON_I2C, ON_SPI])) as r:
        assert r.state() == "ready", "only who reads it needs it"
        for name in ("level", "light"):
            with pytest.raises(MachineError) as caught:
                await read(r, name)
            assert caught.value.kind is ErrorKind.UNAVAILABLE
        with pytest.raises(MachineError, match="level") as caught:
            await read(r, "lvl")
        assert caught.value.kind is ErrorKind.NOT_FOUND


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"name": "a"}, "either"),
        ({"name": "a", "channel": 1, "pin": "1"}, "either"),
        ({"name": "a", "channel": 8}, "0 to 7"),
        ({"name": "a", "channel": "x"}, "0 to 7"),
        ({"name": "a", "channel": 4, "chip": "mcp3004"}, "0 to 3"),
        ({"name": "a", "channel": 4, "i2c_bus": 1}, "0-1"),
        ({"name": "a", "channel": 0, "i2c_bus": 1, "full_scale_v": 5.0}, "4.096"),
        ({"name": "a", "channel": 0, "chip": "ads1115"}, "give i2c_bus"),
        ({"name": "a", "channel": 0, "chip": "mcp3008", "i2c_bus": "1"}, "leave i2c_bus out"),
        ({"name": "a", "channel": 0, "chip_select": "x"}, "chip_select"),
        ({"name": "a", "channel": 0, "average_over_ms": -1}, "average_over_ms"),
    ],
)
def test_wrong_attributes_are_refused(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=words):
        msgspec.convert(wrong, Analog)


def test_names_are_unique() -> None:
    with pytest.raises(ValueError, match="analog 'a'"):
        LinuxBoardConfig(analogs=(Analog(name="a", channel=0), Analog(name="a", channel=1)))
    with pytest.raises(ValueError, match="digital interrupt 'b'"):
        LinuxBoardConfig(digital_interrupts=(Interrupt(name="b", pin="1"), Interrupt(name="b", pin="2")))
