"""TMP102, LM75 and its relatives: conversions, driver against plant model, what goes wrong."""

from __future__ import annotations

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs
from trio.testing import MockClock

from hal.errors import Fault, HalError
from hal.sim.faults import FaultPlan
from hal.sim.target import Nak
from models.chips.lm75 import chip as lm75
from models.chips.lm75.simulation import Lm75Target
from models.chips.tmp102 import chip as tmp102
from models.chips.tmp102.simulation import Tmp102Target
from nursery_graph.lifecycle import State
from schema.errors import ErrorKind, MachineError
from tests.unit.models.chips.bench import driving, registers_of, virtually


class Mute:
    """Acknowledge the address but never drive the data line."""

    def write(self, data: bytes) -> None:
        pass

    def read(self, n: int) -> bytes:
        return b"\xff" * n


# SBOS397H, "12-Bit Temperature Data Format"; the table writes the 12 bits, left-justified in the register.
@pytest.mark.parametrize(
    ("degrees", "digital"),
    [
        (127.9375, 0x7FF),
        (100, 0x640),
        (80, 0x500),
        (75, 0x4B0),
        (50, 0x320),
        (25, 0x190),
        (0.25, 0x004),
        (0, 0x000),
        (-0.25, 0xFFC),
        (-25, 0xE70),
        (-55, 0xC90),
    ],
)
def test_tmp102_twelve_bits(degrees: float, digital: int) -> None:
    assert tmp102.celsius(digital << 4) == degrees


# SBOS397H, "13-Bit Temperature Data Format"; bit 0 of the register marks this format.
@pytest.mark.parametrize(
    ("degrees", "digital"),
    [
        (150, 0x0960),
        (128, 0x0800),
        (127.9375, 0x07FF),
        (100, 0x0640),
        (25, 0x0190),
        (0.25, 0x0004),
        (0, 0x0000),
        (-0.25, 0x1FFC),
        (-25, 0x1E70),
        (-55, 0x1C90),
    ],
)
def test_tmp102_thirteen_bits(degrees: float, digital: int) -> None:
    assert tmp102.celsius(digital << 3 | 1) == degrees


# SNOS808P, table "Temperature Register": nine bits, left-justified.
@pytest.mark.parametrize(
    ("degrees", "digital"),
    [(125, 0x0FA), (25, 0x032), (0.5, 0x001), (0, 0x000), (-0.5, 0x1FF), (-25, 0x1CE), (-55, 0x192)],
)
def test_lm75_nine_bits(degrees: float, digital: int) -> None:
    assert lm75.celsius(digital << 7, 9) == degrees


# SBOS288M, table "Temperature Data Format": twelve bits.
@pytest.mark.parametrize(("degrees", "digital"), [(127.9375, 0x7FF), (25, 0x190), (-0.25, 0xFFC), (-55, 0xC90)])
def test_tmp75_twelve_bits(degrees: float, digital: int) -> None:
    assert lm75.celsius(digital << 4, 12) == degrees


@given(st.floats(-55, 150))
def test_tmp102_measures_the_temperature(degrees: float) -> None:
    async def measure() -> float:
        chip = tmp102.Tmp102(registers_of(0x48, Tmp102Target(degrees)))
        await chip.identify()
        await chip.configure()
        return await chip.temperature()

    assert abs(virtually(measure) - degrees) <= tmp102.STEP / 2


@given(st.floats(-55, 125), st.sampled_from(sorted(lm75.VARIANTS)))
def test_lm75_measures_the_temperature(degrees: float, name: str) -> None:
    variant = lm75.VARIANTS[name]

    async def measure() -> float:
        chip = lm75.Lm75(registers_of(0x48, Lm75Target(degrees, bits=variant.bits)), variant)
        await chip.identify()
        await chip.configure()
        return await chip.temperature()

    assert abs(virtually(measure) - degrees) <= 0.5 ** (variant.bits - 8) / 2


async def test_the_driver_waits_for_the_first_conversion_of_a_tmp102(autojump_clock: MockClock) -> None:
    target = Tmp102Target(61.5)
    registers = registers_of(0x48, target)
    assert await registers.read_int(tmp102.TEMPERATURE, 2) == 0
    chip = tmp102.Tmp102(registers)
    started = trio.current_time()
    await chip.configure()
    assert await chip.temperature() == 61.5
    assert trio.current_time() - started < 0.2


@pytest.mark.parametrize(
    ("model", "chip"), [("tmp102", {}), ("lm75", {}), *(("lm75", {"chip": name}) for name in lm75.VARIANTS)]
)
async def test_readings(autojump_clock: MockClock, model: str, chip: dict[str, str]) -> None:
    bits = lm75.VARIANTS[chip.get("chip", "lm75")].bits
    target = Tmp102Target(23.4375) if model == "tmp102" else Lm75Target(23.5, bits=bits)
    async with driving("sensor", model, 0x48, target, **chip) as driven:
        assert await driven.readings() == {"temperature_c": target.temperature_c}
        target.temperature_c = -40.0
        assert await driven.readings() == {"temperature_c": -40.0}


async def test_above_128_degrees(autojump_clock: MockClock) -> None:
    async with driving("sensor", "tmp102", 0x48, Tmp102Target(149.0)) as driven:
        assert await driven.readings() == {"temperature_c": 149.0}


async def test_a_chip_is_configured_again_after_a_power_loss(autojump_clock: MockClock) -> None:
    target = Tmp102Target(140.0)
    async with driving("sensor", "tmp102", 0x48, target) as driven:
        target.power_cycle()
        with capture_logs() as logs:
            assert await driven.readings() == {"temperature_c": 140.0}
        assert [entry["event"] for entry in logs if entry["log_level"] == "warning"] == [
            "the chip has lost its settings, as after a power failure; configuring it again"
        ]
        with capture_logs() as logs:
            await driven.readings()
        assert not [entry for entry in logs if entry["log_level"] == "warning"]


async def test_a_tmp75_gets_its_resolution_back_after_a_power_loss(autojump_clock: MockClock) -> None:
    target = Lm75Target(20.0625, bits=12)
    async with driving("sensor", "lm75", 0x48, target, chip="tmp75") as driven:
        target.power_cycle()
        assert await driven.readings() == {"temperature_c": 20.0625}


async def test_no_answer(autojump_clock: MockClock) -> None:
    async with driving("sensor", "tmp102", 0x49, Tmp102Target(), ready=False) as driven:
        reason = driven.node().reason
        assert "i2c-1 address 0x48" in reason
        assert "check the wiring, the power and the address" in reason
        driven.bus.attach(0x48, Tmp102Target(19.0))  # the wire is repaired
        await driven.until(State.READY)
        assert await driven.readings() == {"temperature_c": 19.0}


@pytest.mark.parametrize("model", ["tmp102", "lm75"])
async def test_a_device_that_answers_with_ones_is_refused(autojump_clock: MockClock, model: str) -> None:
    async with driving("sensor", model, 0x48, Mute(), ready=False) as driven:
        node = driven.node()
        assert node.state is State.UNHEALTHY
        assert f"no {model.upper()} at i2c-1 address 0x48: its configuration reads 0xff" in node.reason
        assert "may also be" in node.reason


async def test_a_sensor_that_stops_driving_the_bus_is_an_error(autojump_clock: MockClock) -> None:
    async with driving("sensor", "tmp102", 0x48, Tmp102Target()) as driven:
        driven.bus.detach(0x48)
        driven.bus.attach(0x48, Mute())
        with pytest.raises(MachineError, match="the configuration reads 0xffff after 0x60d0 was written") as caught:
            await driven.readings()
        assert caught.value.kind is ErrorKind.UNAVAILABLE


async def test_an_lm75_is_not_accepted_as_a_tmp102(autojump_clock: MockClock) -> None:
    chip = tmp102.Tmp102(registers_of(0x48, Lm75Target()))
    with pytest.raises(MachineError, match="no TMP102 at i2c-1 address 0x48: its configuration reads 0x00ff") as caught:
        await chip.identify()
    assert caught.value.kind is ErrorKind.PRECONDITION


class NakAt(Tmp102Target):
    """Refuse to acknowledge one message."""

    left = -1

    def write(self, data: bytes) -> None:
        self.left -= 1
        if self.left == 0:
            raise Nak
        super().write(data)


@pytest.mark.parametrize("message", [1, 2, 3])
async def test_no_acknowledge_in_the_middle_costs_one_reading(autojump_clock: MockClock, message: int) -> None:
    target = NakAt(30.0)
    async with driving("sensor", "tmp102", 0x48, target) as driven:
        target.power_cycle()  # a reading now takes several transactions
        target.left = message
        with pytest.raises(MachineError, match="i2c-1 address 0x48") as caught:
            await driven.readings()
        assert caught.value.kind is ErrorKind.UNAVAILABLE
        assert await driven.readings() == {"temperature_c": 30.0}
        assert driven.node().state is State.READY


async def test_a_call_cancelled_during_the_configuration_leaves_no_wrong_value(
    autojump_clock: MockClock,
) -> None:
    target = Tmp102Target(30.0)
    async with driving("sensor", "tmp102", 0x48, target) as driven:
        target.power_cycle()
        with trio.move_on_after(0.01) as deadline:
            await driven.readings()
        assert deadline.cancelled_caught
        assert await driven.readings() == {"temperature_c": 30.0}, "not the 0 °C of a chip that has not converted yet"


async def test_noise_on_the_wires_never_configures_a_wrong_chip(autojump_clock: MockClock) -> None:
    target = Tmp102Target(25.0)
    registers = registers_of(0x48, target)
    bus = registers.bus
    chip = tmp102.Tmp102(registers)
    bus._faults.inject("i2c-1 address 0x48", FaultPlan(bit_errors=1.0))  # type: ignore[attr-defined]
    with pytest.raises(HalError) as caught:
        await chip.configure()
    assert caught.value.fault is Fault.BUS


async def test_alert_and_limits_of_the_plant(autojump_clock: MockClock) -> None:
    target = Tmp102Target(70.0)
    await trio.sleep(0.03)
    assert not target.alert
    target.temperature_c = 81.0  # above 80 °C, the value of THIGH after power-up
    assert target.alert
    target.write(b"\x03\x5a\x00")  # THIGH 90 °C
    assert not target.alert
    target.write(b"\x03")
    assert target.read(2) == b"\x5a\x00"


async def test_one_shot_of_the_plant(autojump_clock: MockClock) -> None:
    target = Tmp102Target(25.0)
    target.write(b"\x01\x61\xa0")  # shutdown
    await trio.sleep(1)
    target.write(b"\x01\xe1\xa0")  # one shot
    assert target.read(1)[0] & 0x80 == 0, "a conversion is under way"
    await trio.sleep(0.03)
    assert target.read(1)[0] & 0x80
    target.temperature_c = 99.0
    target.write(b"\x00")
    assert tmp102.celsius(int.from_bytes(target.read(2), "big")) == 25.0, "shut down: it keeps the last value"


async def test_the_plants_registers_can_be_written_partially(autojump_clock: MockClock) -> None:
    target = Tmp102Target()
    target.write(b"\x01\x60")  # registers are updated byte by byte
    assert target.read(3) == b"\x60\xa0\xff"
    board = Lm75Target(bits=9)
    board.write(b"\x03\x50\xff")
    assert board.read(2) == b"\x50\x80", "nine bits of a limit"
