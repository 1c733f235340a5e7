"""INA219 and INA226: calibration, failures, and the driver against the plant model."""

from __future__ import annotations

import importlib

import pytest
import trio
from hypothesis import assume, given
from hypothesis import strategies as st
from trio.testing import MockClock

from models.chips.ina2xx import chip as ina2xx
from models.chips.ina2xx.chip import INA219, INA226, Ina219, Ina226, calibrate
from models.chips.ina2xx.simulation import Ina219Target, Ina226Target
from nursery_graph.lifecycle import State
from schema.attributes import decode_attributes
from schema.errors import ConfigError, ErrorKind, MachineError
from tests.unit.models.chips.bench import driving, registers_of, virtually


# SBOS448G, SBOS547A, "Calculating the INA219" and "... INA226": 10 A through 2 mohm, 11.98 V at the load, 1 mA a count.
@pytest.mark.parametrize(
    ("model", "register", "shunt", "bus", "current", "power"),
    [(INA219, 0x5000, 2000, 2995, 10000, 5990), (INA226, 0xA00, 8000, 9584, 10000, 4792)],
)
def test_the_worked_examples_of_the_data_sheets(
    model: ina2xx.Model, register: int, shunt: int, bus: int, current: int, power: int
) -> None:
    calibration = calibrate(model, 0.002, 32.768)  # one count is 1 mA
    assert calibration.register == register
    assert calibration.current_step == pytest.approx(1e-3)
    assert shunt * model.shunt_step == pytest.approx(0.02)
    assert bus * model.bus_step == pytest.approx(11.98, abs=model.bus_step)
    assert current * calibration.current_step == pytest.approx(10)
    assert power * calibration.power_step == pytest.approx(119.8, abs=0.03)


async def test_the_plants_calculate_the_worked_examples(autojump_clock: MockClock) -> None:
    for target, address, calibration, expected in (
        (Ina219Target(11.98, 10, shunt_ohms=0.002), 0x40, b"\x05\x50\x00", (2000, 0x5D98 >> 3, 10000, 5990)),
        (Ina226Target(11.98, 10, shunt_ohms=0.002), 0x40, b"\x05\x0a\x00", (8000, 0x2570, 10000, 4792)),
    ):
        registers = registers_of(address, target)
        target.write(calibration)
        await trio.sleep(0.1)
        results = [await registers.read_int(number, 2) for number in (1, 2, 4, 3)]
        if isinstance(target, Ina219Target):
            results[1] >>= 3
        assert tuple(results) == expected


@given(
    st.sampled_from(["ina219", "ina226"]),
    st.floats(0.001, 1.0),
    st.floats(0.01, 0.99),
    st.floats(-1, 1),
    st.floats(0, 26),
)
def test_it_says_what_flows(name: str, ohms: float, use: float, share: float, volts: float) -> None:
    model = INA219 if name == "ina219" else INA226
    most = model.shunt_full_scale / ohms * use
    try:
        calibrate(model, ohms, most)
    except ValueError:
        assume(False)
    amperes = most * share * 0.99

    async def measure() -> tuple[float, float, float]:
        if name == "ina219":
            chip: ina2xx.Ina2xx = Ina219(
                registers_of(0x40, Ina219Target(volts, amperes, shunt_ohms=ohms)), ohms, most, 1
            )
        else:
            chip = Ina226(registers_of(0x40, Ina226Target(volts, amperes, shunt_ohms=ohms)), ohms, most, 1)
        await chip.identify()
        await chip.configure()
        return await chip.bus_voltage(), await chip.current(), await chip.power()

    calibration = calibrate(model, ohms, most)
    if abs(amperes) * volts > 0.99 * calibration.power_step * 65535:  # the power register overflows first
        with pytest.raises(MachineError, match="increase max_current_a"):
            virtually(measure)
        return
    bus, current, power = virtually(measure)
    step = calibration.current_step
    noise = model.shunt_step / ohms + step
    assert bus == pytest.approx(volts, abs=model.bus_step)
    assert current == pytest.approx(amperes, abs=noise)
    assert power == pytest.approx(abs(amperes) * volts, abs=noise * volts + abs(amperes) * model.bus_step + 25 * step)


@pytest.mark.parametrize(
    ("name", "samples"), [("ina219", n) for n in ina2xx.SAMPLES] + [("ina226", n) for n in ina2xx.AVERAGES]
)
async def test_every_number_of_samples_takes_its_time(autojump_clock: MockClock, name: str, samples: int) -> None:
    first = 532e-6 if name == "ina219" else 1.1e-3  # SBOS448G, table 5; SBOS547A, table 7
    if name == "ina219":
        target: Ina219Target | Ina226Target = Ina219Target(5.0, 0.2)
        chip: ina2xx.Ina2xx = Ina219(registers_of(0x40, target), 0.1, 0.8, samples)
    else:
        target = Ina226Target(5.0, 0.2)
        chip = Ina226(registers_of(0x40, target), 0.1, 0.8, samples)
    await chip.identify()
    target.slowness = 1.0999
    await chip.configure()
    assert await chip.current() == pytest.approx(0.2, abs=1e-3), "converted with these settings"
    assert target.cycle() == pytest.approx(2.2 * first * samples, rel=1e-3)
    assert chip.conversion < target.cycle() * 1.05


@pytest.mark.parametrize("model", ["ina219", "ina226"])
async def test_readings(autojump_clock: MockClock, model: str) -> None:
    target = Ina219Target(12.0, 0.5) if model == "ina219" else Ina226Target(12.0, 0.5)
    async with driving("power_sensor", model, 0x40, target) as driven:
        assert (await driven.call("get_voltage"))["volts"] == pytest.approx(12.0)
        assert (await driven.call("get_current"))["amperes"] == pytest.approx(0.5, abs=1e-3)
        assert await driven.call("get_power") == pytest.approx(6.0, abs=0.02)
        target.amperes = -0.25
        readings = await driven.readings()
        assert readings == {
            "volts": pytest.approx(12.0),
            "amps": pytest.approx(-0.25, abs=1e-3),
            "watts": pytest.approx(-3.0, abs=0.02),
            "shunt_v": pytest.approx(-0.025, abs=1e-5),
            "is_ac": False,
        }


@pytest.mark.parametrize("model", ["ina219", "ina226"])
async def test_one_that_was_without_power_is_calibrated_again(autojump_clock: MockClock, model: str) -> None:
    target = Ina219Target(5.0, 0.3) if model == "ina219" else Ina226Target(5.0, 0.3)
    async with driving("power_sensor", model, 0x40, target) as driven:
        target.power_cycle()
        assert (await driven.call("get_current"))["amperes"] == pytest.approx(0.3, abs=1e-3), "and not 0 A"


@pytest.mark.parametrize(("model", "amperes"), [("ina219", 3.5), ("ina226", 0.9)])
async def test_too_much_current_is_an_error_and_no_value(autojump_clock: MockClock, model: str, amperes: float) -> None:
    target = Ina219Target(5.0, amperes) if model == "ina219" else Ina226Target(5.0, amperes)
    async with driving("power_sensor", model, 0x40, target) as driven:
        for method in ("get_current", "get_power"):
            with pytest.raises(MachineError, match="increase max_current_a, or use a smaller shunt") as caught:
                await driven.call(method)
            assert caught.value.kind is ErrorKind.PRECONDITION
        assert (await driven.call("get_voltage"))["volts"] == pytest.approx(5.0), "which is right all the same"


async def test_an_ina226_where_an_ina219_is_configured_is_named(autojump_clock: MockClock) -> None:
    async with driving("power_sensor", "ina219", 0x40, Ina226Target(), ready=False) as driven:
        assert driven.node().state is State.UNHEALTHY
        assert "after a reset its configuration reads 0x4127, which is an INA226" in driven.node().reason


async def test_an_ina219_where_an_ina226_is_configured_is_named(autojump_clock: MockClock) -> None:
    async with driving("power_sensor", "ina226", 0x40, Ina219Target(), ready=False) as driven:
        assert "its identity reads 0xffff 0xffff" in driven.node().reason
        assert "0x40 may also be INA219" in driven.node().reason


@pytest.mark.parametrize(
    ("model", "attributes", "words"),
    [
        ("ina219", {"max_current_a": 4}, "measures at most 0.32 V, that is 3.2 A"),
        ("ina226", {"max_current_a": 1}, "measures at most 0.08192 V, that is 0.8192 A"),
        ("ina219", {"max_current_a": 0.01}, "use 0.204806 A or more"),
        ("ina219", {"samples": 3}, "samples"),
        ("ina219", {"shunt_ohms": 0}, "shunt_ohms"),
        ("ina219", {"i2c_address": "0x80"}, "i2c_address 0x80 is not between 0x08 and 0x77"),
        ("ina226", {"i2c_address": "forty"}, "i2c_address 'forty' is not a number"),
    ],
)
def test_wrong_attributes(model: str, attributes: dict[str, object], words: str) -> None:
    module = importlib.import_module("models.chips.ina2xx.attributes")
    config = getattr(module, f"{model.capitalize()}Config")
    with pytest.raises(ConfigError) as caught:
        decode_attributes(config, {"i2c_bus": "1", **attributes}, path="attributes")
    assert words in str(caught.value)


@given(st.floats(0.0001, 10), st.floats(0.001, 1000))
def test_a_calibration_that_is_accepted_holds_the_largest_current(ohms: float, most: float) -> None:
    for model in (INA219, INA226):
        try:
            calibration = calibrate(model, ohms, most)
        except ValueError:
            continue
        assert calibration.register
        assert calibration.register & ~model.calibration_bits == 0
        assert calibration.current_step * 32768 >= most * (1 - 1e-9)


@given(st.floats(0.0001, 0.32))
def test_the_finest_gain_that_holds_the_voltage_is_chosen(volts: float) -> None:
    gain = ina2xx.ina219_configuration(volts, 1) >> 11 & 3
    assert volts <= 0.04 * 2**gain * (1 + 1e-6)
    assert gain == 0 or volts > 0.04 * 2 ** (gain - 1)


# SBOS448G, section 8.6.2: after a reset 32 V, gain /8, 12 bits, continuous; SBOS547A, table 6.
def test_configurations_in_the_words_of_the_data_sheets() -> None:
    assert ina2xx.ina219_configuration(0.32, 1) == 0x399F
    assert ina2xx.ina226_configuration(1) == 0x4127
