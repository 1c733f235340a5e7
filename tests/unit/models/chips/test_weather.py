"""BME280, BMP280 and SHT3x: conversions, failures, and the drivers against the plant models."""

from __future__ import annotations

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock

from hal.errors import Fault, HalError
from hal.sim.target import Nak
from models.chips.bme280 import chip as bme280
from models.chips.bme280 import compensation as bosch
from models.chips.bme280.simulation import Bme280Target, integer_pressure, integer_temperature
from models.chips.sht3x import chip as sht3x
from models.chips.sht3x.simulation import Sht3xTarget, word
from nursery_graph.lifecycle import State
from schema.errors import ErrorKind, MachineError
from tests.unit.models.chips.bench import driving, registers_of, virtually

# BST-BMP280-DS001 revision 1.14, section 3.12: the worked example.
EXAMPLE = bosch.Trimming(27504, 26435, -1000, 36477, -10685, 3024, 2855, 140, -7, 15500, -14600, 6000)
RAW_TEMPERATURE, RAW_PRESSURE = 519888, 415148


def test_the_worked_example_of_the_data_sheet() -> None:
    celsius, fine = bosch.temperature(RAW_TEMPERATURE, EXAMPLE)
    assert round(celsius, 2) == 25.08
    assert round(fine) == 128422
    assert round(bosch.pressure(RAW_PRESSURE, fine, EXAMPLE), 2) == 100653.27


def test_the_plants_integer_formulas_give_the_worked_example_too() -> None:
    hundredths, fine = integer_temperature(RAW_TEMPERATURE)
    assert (hundredths, fine) == (2508, 128422)
    assert integer_pressure(RAW_PRESSURE, fine) / 256 == pytest.approx(100653.27, abs=0.02)


def test_trimming_values_are_cut_as_table_16_says() -> None:
    low = bytes.fromhex("706b4367 18fc 7d8e 43d6 d00b 270b 8c00 f9ff 8c3c f8c6 7017")
    humid = bytes([75]) + bytes([0x72, 0x01, 0x00, 0x13, 0x29, 0x03, 0x1E])
    assert bosch.Trimming.parse(low) == EXAMPLE
    full = bosch.Trimming.parse(low, humid)
    assert (full.h1, full.h2, full.h3, full.h4, full.h5, full.h6) == (75, 370, 0, 0x139, 0x032, 30)
    negative = bosch.Trimming.parse(low, bytes([75, 0x72, 0x01, 0x00, 0xFF, 0xEF, 0xFF, 0xFE]))
    assert (negative.h4, negative.h5, negative.h6) == (-1, -2, -2)


# BST-BME280-DS002, sections 9.1 and 3.5.1: weather monitoring (x1, x1, x1) takes 9.3 ms at most; DS001: x1, x1: 6.4 ms.
def test_measuring_times_of_the_data_sheets() -> None:
    assert bme280.measuring_time(1, humid=True) == pytest.approx(9.3e-3)
    assert bme280.measuring_time(1, humid=False) == pytest.approx(6.4e-3, abs=0.1e-3)
    assert bme280.measuring_time(16, humid=True) == pytest.approx(112.8e-3)


def test_trimming_values_without_sense_give_no_exception() -> None:
    none = bosch.Trimming(*[0] * 12)
    assert bosch.pressure(RAW_PRESSURE, bosch.temperature(RAW_TEMPERATURE, none)[1], none) == 0.0


@given(st.floats(-40, 85), st.floats(30000, 110000), st.floats(0, 100), st.sampled_from([1, 2, 4, 8, 16]))
def test_bme280_says_what_it_feels(celsius: float, pascal: float, percent: float, oversampling: int) -> None:
    async def measure() -> bme280.Weather:
        chip = bme280.Bme280(registers_of(0x76, Bme280Target(celsius, pascal, percent)), oversampling)
        await chip.identify()
        await chip.configure()
        return await chip.measure()

    weather = virtually(measure)
    assert weather.temperature == pytest.approx(celsius, abs=0.02)  # output resolution 0.01 °C
    assert weather.pressure == pytest.approx(pascal, abs=12)  # 2.6 Pa per count, and rounding of the fine temperature
    assert weather.humidity == pytest.approx(percent, abs=0.1)  # resolution 0.008 %, and differences of the formulas


@given(st.floats(-40, 85), st.floats(30000, 110000))
def test_bmp280_says_what_it_feels(celsius: float, pascal: float) -> None:
    async def measure() -> bme280.Weather:
        chip = bme280.Bme280(registers_of(0x77, Bme280Target(celsius, pascal, humid=False)))
        await chip.identify()
        await chip.configure()
        return await chip.measure()

    weather = virtually(measure)
    assert weather.temperature == pytest.approx(celsius, abs=0.02)
    assert weather.pressure == pytest.approx(pascal, abs=12)
    assert weather.humidity is None


async def test_readings_of_a_bme280(autojump_clock: MockClock) -> None:
    target = Bme280Target(21.5, 98765.0, 43.0)
    async with driving("sensor", "bme280", 0x76, target, oversampling=16) as driven:
        readings = await driven.readings()
        assert readings == {
            "temperature_c": pytest.approx(21.5, abs=0.02),
            "pressure_pa": pytest.approx(98765, abs=12),
            "relative_humidity_pct": pytest.approx(43, abs=0.1),
        }
        target.power_cycle()
        target.temperature_c = 22.5
        await trio.sleep(0.01)
        assert (await driven.readings())["temperature_c"] == pytest.approx(22.5, abs=0.02)


async def test_readings_of_a_bmp280_have_no_humidity(autojump_clock: MockClock) -> None:
    async with driving("sensor", "bme280", 0x77, Bme280Target(humid=False), i2c_address="0x77") as driven:
        assert set(await driven.readings()) == {"temperature_c", "pressure_pa"}


async def test_it_waits_for_the_trimming_values_after_power_up(autojump_clock: MockClock) -> None:
    target = Bme280Target(20.0)
    assert target.load(0x88) == 0
    chip = bme280.Bme280(registers_of(0x76, target))
    await chip.configure()
    assert (await chip.measure()).temperature == pytest.approx(20, abs=0.02)


class OtherBosch(Bme280Target):
    """Another Bosch chip at the same address."""

    def __init__(self, identity: int) -> None:
        self.identity = identity
        super().__init__()

    def load(self, pointer: int) -> int:
        return self.identity if pointer == 0xD0 else super().load(pointer)


@pytest.mark.parametrize(
    ("identity", "words"),
    [(0x61, "which is a BME680 or BME688: choose that chip's model"), (0x55, "which is a BMP180"), (0x00, "0x76 may")],
)
async def test_another_chip_is_named(autojump_clock: MockClock, identity: int, words: str) -> None:
    async with driving("sensor", "bme280", 0x76, OtherBosch(identity), ready=False) as driven:
        node = driven.node()
        assert node.state is State.UNHEALTHY
        assert f"its identity reads 0x{identity:02x}" in node.reason
        assert words in node.reason


@pytest.mark.parametrize("oversampling", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("humid", [True, False])
async def test_every_oversampling_takes_its_time(autojump_clock: MockClock, oversampling: int, humid: bool) -> None:
    target = Bme280Target(20.0, humid=humid)
    chip = bme280.Bme280(registers_of(0x76, target), oversampling)
    await trio.sleep(0.01)
    await chip.identify()
    await chip.configure()
    assert (await chip.measure()).temperature == pytest.approx(20, abs=0.02)
    # section 9.1: typically 1 + 2 for each sample + 0.5 for pressure and for humidity, ms
    assert target.duration() == pytest.approx((1 + 2 * oversampling * (2 + humid) + 0.5 * (1 + humid)) / 1000)
    assert target.duration() < bme280.measuring_time(oversampling, humid=humid) < target.duration() * 1.2


class Skipping(Bme280Target):
    """Lose power when a measurement starts."""

    def write(self, data: bytes) -> None:
        super().write(data)
        if data[0] == 0xF4 and len(data) > 1:
            self.power_cycle()


async def test_a_chip_in_reset_is_an_error_and_no_value(autojump_clock: MockClock) -> None:
    chip = bme280.Bme280(registers_of(0x76, Skipping()))
    await trio.sleep(0.01)
    await chip.configure()
    with pytest.raises(HalError, match="has not measured: pressure 0x80000, temperature 0x80000") as caught:
        await chip.measure()
    assert caught.value.fault is Fault.BUS


async def test_a_measurement_that_never_ends_is_an_error(autojump_clock: MockClock) -> None:
    target = Bme280Target()
    chip = bme280.Bme280(registers_of(0x76, target))
    await trio.sleep(0.01)
    await chip.configure()
    target.slowness = 1e6
    with pytest.raises(HalError, match="does not finish") as caught:
        await chip.measure()
    assert caught.value.fault is Fault.TIMEOUT


def test_a_chip_that_was_not_configured_is_a_mistake_of_the_program() -> None:
    async def measure() -> None:
        await bme280.Bme280(registers_of(0x76, Bme280Target())).measure()

    with pytest.raises(RuntimeError, match="configure"):
        virtually(measure)


# Sensirion "Datasheet SHT3x-DIS" version 5, table 20: the check sum of 0xBEEF is 0x92.
def test_check_sum_of_the_data_sheet() -> None:
    assert sht3x.crc8(b"\xbe\xef") == 0x92
    assert word(0xBEEF) == b"\xbe\xef\x92"


@given(st.integers(0, 0xFFFF))
def test_both_check_sums_agree(value: int) -> None:
    assert word(value)[2] == sht3x.crc8(value.to_bytes(2, "big"))


@given(st.integers(0, 0xFFFF), st.integers(0, 15))
def test_every_wrong_bit_is_noticed(value: int, bit: int) -> None:
    assert sht3x.crc8((value ^ 1 << bit).to_bytes(2, "big")) != sht3x.crc8(value.to_bytes(2, "big"))


# Section 4.13: 0 and 65535 are the ends of the range.
@pytest.mark.parametrize(("raw", "celsius", "percent"), [(0, -45, 0), (65535, 130, 100), (13107, -10, 20)])
def test_conversions_of_sht3x(raw: int, celsius: float, percent: float) -> None:
    assert sht3x.celsius(raw) == pytest.approx(celsius)
    assert sht3x.percent(raw) == pytest.approx(percent)


@given(st.floats(-45, 130), st.floats(0, 100))
def test_sht3x_says_what_it_feels(celsius: float, percent: float) -> None:
    async def measure() -> tuple[float, float]:
        chip = sht3x.Sht3x(registers_of(0x44, Sht3xTarget(celsius, percent)))
        await chip.identify()
        await chip.configure()
        return await chip.measure()

    assert virtually(measure) == (pytest.approx(celsius, abs=175 / 65535), pytest.approx(percent, abs=100 / 65535))


async def test_readings_of_an_sht3x(autojump_clock: MockClock) -> None:
    target = Sht3xTarget(36.6, 61.0)
    async with driving("sensor", "sht3x", 0x44, target) as driven:
        assert await driven.readings() == {
            "temperature_c": pytest.approx(36.6, abs=0.003),
            "relative_humidity_pct": pytest.approx(61, abs=0.002),
        }
        target.garble = True
        with pytest.raises(MachineError, match=r"has the checksum 0x.. instead of 0x..: shorten") as caught:
            await driven.readings()
        assert caught.value.kind is ErrorKind.UNAVAILABLE
        target.power_cycle()
        assert (await driven.readings())["temperature_c"] == pytest.approx(36.6, abs=0.003)


async def test_one_that_measures_periodically_is_brought_to_order(autojump_clock: MockClock) -> None:
    target = Sht3xTarget(10.0)
    target.write(b"\x27\x37")  # another program has started ten measurements a second
    async with driving("sensor", "sht3x", 0x44, target) as driven:
        assert (await driven.readings())["temperature_c"] == pytest.approx(10, abs=0.003)


async def test_a_wrong_answer_to_a_request_for_the_status_is_another_chip(autojump_clock: MockClock) -> None:
    class Other:
        def write(self, data: bytes) -> None:
            pass

        def read(self, n: int) -> bytes:
            return bytes(n)

    async with driving("sensor", "sht3x", 0x44, Other(), ready=False) as driven:
        assert "answer to a status request is 00 00 00" in driven.node().reason
        assert "0x44 may also be INA219" in driven.node().reason


async def test_the_plant_is_not_ready_before_its_time(autojump_clock: MockClock) -> None:
    target = Sht3xTarget()
    target.write(b"\x24\x00")
    with pytest.raises(Nak):
        target.read(6)
    await trio.sleep(0.0126)
    assert len(target.read(6)) == 6
    with pytest.raises(Nak):
        target.read(6)
    target.write(b"\x2c\x06")  # with clock stretching, the target answers the next read
    assert len(target.read(6)) == 6


async def test_status_and_limits_of_the_plant(autojump_clock: MockClock) -> None:
    target = Sht3xTarget()
    target.write(b"\xf3\x2d")
    assert target.read(3) == word(0x8010), "after a reset"
    target.write(b"\x30\x6d")  # heater on
    target.write(b"\x30\x41")
    target.write(b"\xf3\x2d")
    assert target.read(2) == b"\x20\x00", "the flags are cleared, the heater is on"
    target.write(b"\x30\x66")
    target.write(b"\x61\x1d" + word(0x1234))
    target.write(b"\xe1\x1f")
    assert target.read(3) == word(0x1234)
    target.write(b"\x61\x1d\x12\x34\x00")
    target.write(b"\xf3\x2d")
    assert target.read(2) == b"\x00\x01", "the check sum of the last write was wrong"
