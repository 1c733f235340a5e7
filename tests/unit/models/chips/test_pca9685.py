"""PCA9685: conversions, the driver against the plant model, the shared frequency, outputs off after a stop."""

from __future__ import annotations

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock

from hal.errors import HalError
from hal.sim.target import Nak
from models.chips.pca9685 import chip as pca9685
from models.chips.pca9685.attributes import Pca9685Config
from models.chips.pca9685.datasheet import HIGHEST, LOWEST, pre_scale_of
from models.chips.pca9685.simulation import Pca9685Target
from nursery_graph.lifecycle import State
from schema.attributes import decode_attributes
from schema.errors import ConfigError, ErrorKind, MachineError
from tests.unit.models.chips.bench import driving, registers_of, virtually


# NXP PCA9685 revision 4, section 7.3.5, equation 1: 200 Hz with 25 MHz is 1Eh, the value after a reset.
def test_the_worked_example_of_the_pre_scale() -> None:
    assert pre_scale_of(200) == 0x1E
    assert pre_scale_of(1526) == 0x03
    assert pre_scale_of(24) == 0xFD
    assert (round(LOWEST), round(HIGHEST)) == (24, 1526)


@pytest.mark.parametrize("frequency", [0, -1, 20, 2000])
def test_a_frequency_beyond_the_chip_is_refused(frequency: float) -> None:
    with pytest.raises(ValueError, match="supports 24 to 1526 Hz"):
        pre_scale_of(frequency)


@given(st.floats(24, 1525))
def test_the_nearest_frequency_is_chosen(frequency: float) -> None:
    pre_scale = pre_scale_of(frequency)
    period = 1 / frequency
    miss = abs(1 / pca9685.frequency_of(pre_scale) - period)
    for other in (pre_scale - 1, pre_scale + 1):
        assert miss <= abs(1 / pca9685.frequency_of(other) - period) + 1e-12


# Section 7.3.3, example 1 (figure 7): delay 10 %, duty 20 %: on at 409 (0199h), off at 1228 (04CCh).
def test_the_worked_example_of_a_wave() -> None:
    assert pca9685.duty_of(0x199, 0x4CC) == pytest.approx(0.2, abs=1 / 4096)
    assert pca9685.duty_of(0xE65, 0x4CC) == pytest.approx(0.4, abs=2 / 4096), "example 2: delay 90 %, duty 40 %"


@given(st.floats(0, 1))
def test_a_duty_comes_back_to_a_step(duty: float) -> None:
    assert abs(pca9685.duty_of(*pca9685.words_of(duty)) - duty) <= 0.5 / 4096


def test_the_ends_are_constant_levels() -> None:
    assert pca9685.words_of(0.0) == (0, 0x1000)
    assert pca9685.words_of(1.0) == (0x1000, 0)


@given(st.integers(0, 15), st.floats(0, 1), st.floats(24, 1525), st.booleans())
def test_the_plant_does_what_the_driver_says(channel: int, duty: float, frequency: float, inverted: bool) -> None:
    async def drive() -> tuple[float, float, float, float]:
        target = Pca9685Target()
        chip = pca9685.Pca9685(registers_of(0x40, target), frequency, inverted=inverted)
        await chip.identify()
        await chip.configure()
        await chip.set_duty(channel, duty)
        return target.duty(channel), target.level(channel), target.frequency, sum(map(target.duty, range(16)))

    created, level, wave, all_of_them = virtually(drive)
    assert abs(created - duty) <= 0.5 / 4096
    assert level == pytest.approx(1 - created if inverted else created)
    assert wave == pytest.approx(pca9685.frequency_of(pre_scale_of(frequency)))
    assert all_of_them == created


async def test_outputs(autojump_clock: MockClock) -> None:
    target = Pca9685Target()
    async with driving("board", "pca9685", 0x40, target, pwm_frequency_hz=50) as driven:
        assert target.frequency == pytest.approx(50, rel=0.01)
        assert target.load(0) == 0x20, "awake, auto-increment, deaf to the all-call address"
        assert [target.duty(n) for n in range(16)] == [0.0] * 16
        await driven.call("set_gpio", pin="3", high=True)
        await driven.call("set_pwm", pin="15", duty_cycle_pct=0.075)
        assert (target.duty(3), target.duty(15)) == (1.0, pytest.approx(0.075, abs=1 / 4096))
        assert await driven.call("get_gpio", pin="3") is True
        assert await driven.call("get_gpio", pin="15") is False
        assert await driven.call("pwm", pin="15") == pytest.approx(0.075, abs=1 / 4096)
        assert await driven.call("pwm_frequency", pin="15") == 50
        await driven.call("set_gpio", pin="3", high=False)
        assert target.duty(3) == 0.0


async def test_outputs_of_an_earlier_owner_are_off_at_start_and_ours_at_stop(autojump_clock: MockClock) -> None:
    target = Pca9685Target()
    before = pca9685.Pca9685(registers_of(0x40, target))
    await before.configure()
    await before.set_duty(7, 0.5)
    async with driving("board", "pca9685", 0x40, target) as driven:
        assert target.duty(7) == 0.0
        await driven.call("set_pwm", pin="8", duty_cycle_pct=0.9)
        await driven.call("set_gpio", pin="9", high=True)
    assert [target.duty(n) for n in range(16)] == [0.0] * 16


async def test_outputs_are_off_when_the_configuration_goes(autojump_clock: MockClock) -> None:
    target = Pca9685Target()
    async with driving("board", "pca9685", 0x40, target) as driven:
        await driven.call("set_pwm", pin="8", duty_cycle_pct=0.9)
        driven.memory.write({"components": []})
        await trio.testing.wait_all_tasks_blocked()
        assert target.duty(8) == 0.0


async def test_after_a_power_failure_outputs_stay_off(autojump_clock: MockClock) -> None:
    target = Pca9685Target()
    async with driving("board", "pca9685", 0x40, target, pwm_frequency_hz=100) as driven:
        await driven.call("set_gpio", pin="1", high=True)
        target.power_cycle()
        assert await driven.call("get_gpio", pin="1") is False
        assert target.frequency == pytest.approx(100, rel=0.01)
        await driven.call("set_pwm", pin="2", duty_cycle_pct=0.25)
        assert [target.duty(1), target.duty(2)] == [0.0, 0.25]


async def test_one_frequency_for_all(autojump_clock: MockClock) -> None:
    target = Pca9685Target()
    async with driving("board", "pca9685", 0x40, target) as driven:
        await driven.call("set_pwm_frequency", pin="0", frequency_hz=50)
        await driven.call("set_pwm", pin="0", duty_cycle_pct=0.05)
        with pytest.raises(
            MachineError, match="pin 1 cannot have 800 Hz because pin 0 has PWM of 50 Hz: give"
        ) as caught:
            await driven.call("set_pwm_frequency", pin="1", frequency_hz=800)
        assert caught.value.kind is ErrorKind.PRECONDITION
        assert target.frequency == pytest.approx(50, rel=0.01)
        await driven.call("set_pwm_frequency", pin="1", frequency_hz=50)  # the current frequency is accepted
        await driven.call("set_pwm", pin="0", duty_cycle_pct=0)
        await driven.call("set_pwm_frequency", pin="1", frequency_hz=800)
        await driven.call("set_pwm", pin="1", duty_cycle_pct=0.5)
        with pytest.raises(
            MachineError, match="pin 0 cannot have 50 Hz because it was changed to 763 Hz for another pin"
        ):
            await driven.call("set_pwm", pin="0", duty_cycle_pct=0.05)
        await driven.call("set_gpio", pin="0", high=True)  # a constant level does not depend on the frequency
        await driven.call("set_pwm_frequency", pin="1", frequency_hz=0)
        assert await driven.call("pwm_frequency", pin="1") == 197, "nearest to the 200 Hz of the configuration"


async def test_waves_go_on_after_their_frequency_was_changed(autojump_clock: MockClock) -> None:
    target = Pca9685Target()
    async with driving("board", "pca9685", 0x40, target) as driven:
        await driven.call("set_pwm", pin="4", duty_cycle_pct=0.5)
        await driven.call("set_pwm_frequency", pin="4", frequency_hz=1000)
        assert target.duty(4) == 0.5
        assert target.frequency == pytest.approx(1000, rel=0.02)


@pytest.mark.parametrize(
    ("method", "arguments", "kind", "words"),
    [
        ("set_gpio", {"pin": "16", "high": True}, ErrorKind.NOT_FOUND, 'its pins are "0" to "15"'),
        ("pwm", {"pin": "GPIO4"}, ErrorKind.NOT_FOUND, "has no pin 'GPIO4'"),
        ("set_pwm", {"pin": "1", "duty_cycle_pct": 1.5}, ErrorKind.INVALID, "0 .always off. to 1 .always on."),
        ("set_pwm", {"pin": "1", "duty_cycle_pct": float("nan")}, ErrorKind.INVALID, "duty cycle of nan"),
        ("set_pwm_frequency", {"pin": "1", "frequency_hz": 5000}, ErrorKind.INVALID, "24 to 1526 Hz, not 5000 Hz"),
    ],
)
async def test_wrong_arguments(
    autojump_clock: MockClock, method: str, arguments: dict[str, object], kind: ErrorKind, words: str
) -> None:
    async with driving("board", "pca9685", 0x40, Pca9685Target()) as driven:
        with pytest.raises(MachineError, match=words) as caught:
            await driven.call(method, **arguments)
        assert caught.value.kind is kind


def test_wrong_attributes() -> None:
    with pytest.raises(ConfigError, match="supports 24 to 1526 Hz, not 2000 Hz"):
        decode_attributes(Pca9685Config, {"i2c_bus": "1", "pwm_frequency_hz": 2000}, path="attributes")


async def test_another_chip_is_refused(autojump_clock: MockClock) -> None:
    class Other:
        def write(self, data: bytes) -> None:
            pass

        def read(self, n: int) -> bytes:
            return b"\xff" * n

    async with driving("board", "pca9685", 0x40, Other(), ready=False) as driven:
        assert driven.node().state is State.UNHEALTHY
        assert "no PCA9685 at i2c-1 address 0x40: MODE2 reads 0xff: check the address; 0x40 may" in driven.node().reason


class NakAt(Pca9685Target):
    left = -1

    def write(self, data: bytes) -> None:
        self.left -= 1
        if self.left == 0:
            raise Nak
        super().write(data)


@pytest.mark.parametrize("message", range(1, 11))
async def test_whatever_fails_at_the_start_no_output_is_on(autojump_clock: MockClock, message: int) -> None:
    target = NakAt()
    chip = pca9685.Pca9685(registers_of(0x40, target))
    await chip.configure()
    await chip.set_duty(0, 0.5)
    target.power_cycle()
    target.left = message
    with pytest.raises(HalError):
        await chip.configure()
    assert [target.duty(n) for n in range(16)] == [0.0] * 16


@pytest.mark.parametrize("inverted", [False, True])
@pytest.mark.parametrize("open_drain", [False, True])
async def test_the_outputs_are_built_as_configured(autojump_clock: MockClock, inverted: bool, open_drain: bool) -> None:
    target = Pca9685Target()
    attributes = {"inverted": inverted, "open_drain": open_drain}
    async with driving("board", "pca9685", 0x40, target, **attributes) as driven:
        # Table 6: INVRT is bit 4, OUTDRV (totem pole) bit 2.
        assert target.load(1) == (0x10 if inverted else 0) | (0 if open_drain else 0x04)
        assert target.level(0) == (1.0 if inverted else 0.0)
        await driven.call("set_pwm", pin="0", duty_cycle_pct=0.25)
        assert target.level(0) == (0.75 if inverted else 0.25)


async def test_the_pin_oe_switches_all_outputs_off(autojump_clock: MockClock) -> None:
    target = Pca9685Target()
    async with driving("board", "pca9685", 0x40, target) as driven:
        await driven.call("set_gpio", pin="0", high=True)
        target.enabled = False
        assert target.level(0) == 0.0


def test_the_plants_pointer_stays_without_auto_increment() -> None:
    async def look() -> tuple[bytes, bytes]:
        target = Pca9685Target()
        target.write(b"\x06")
        still = target.read(2)
        target.write(b"\x00\x31")  # auto-increment
        target.write(b"\x09")
        return still, target.read(2)

    assert virtually(look) == (b"\x00\x00", b"\x10\x00")


def test_an_output_that_is_written_ends_the_wait_for_a_restart() -> None:
    """NXP revision 4, section 7.3.1.1: with OCH 0 a write to an output clears RESTART; the kernel relies on it."""
    now = 0.0
    target = Pca9685Target(clock=lambda: now)
    target.write(bytes([0x00, 0x20]))  # awake, auto-increment
    now = 1.0
    target.write(bytes([0x06, 0, 0, 0, 4]))  # a quarter
    assert target.duty(0) == 0.25
    target.write(bytes([0x00, 0x30]))  # asleep during PWM
    target.write(bytes([0x00, 0x20]))
    now = 2.0
    assert target.duty(0) == 0.0, "it waits for a restart"
    target.write(bytes([0x06, 0, 0, 0, 8]))
    assert target.duty(0) == 0.5
