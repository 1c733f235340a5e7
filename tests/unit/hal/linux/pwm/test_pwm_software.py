"""Software PWM: the arithmetic of waves, then a real wave on the real clock."""

from __future__ import annotations

import itertools
import statistics

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from hal.errors import Fault, HalError
from hal.linux.pwm.software import DEFAULT_FREQUENCY, MAX_FREQUENCY, toggled
from hal.linux.pwm.wave import TOLERANCE, Wave

DUTIES = st.floats(0.01, 0.99)
FREQUENCIES = st.floats(1, 1000)


@given(DUTIES, FREQUENCIES, st.integers(1, 50))
def test_in_time_a_wave_is_what_it_should_be(duty: float, frequency: float, periods: int) -> None:
    wave, now, high = Wave(duty, frequency, 100.0), 100.0, 0.0
    for _ in range(2 * periods):
        wave = wave.at(now)
        level, until = wave.level(now)
        assert until > now
        high += level * (until - now)
        now = until
    assert now == pytest.approx(100 + periods / frequency, rel=1e-9)
    assert high == pytest.approx(periods * duty / frequency, rel=1e-6)


@given(DUTIES, FREQUENCIES, st.lists(st.floats(0, TOLERANCE / 2), min_size=4, max_size=40))
def test_small_lateness_does_not_add_up(duty: float, frequency: float, late: list[float]) -> None:
    wave = Wave(duty, frequency)
    deadline, rises = 0.0, 0
    for delay in late:
        now = deadline + delay
        before = wave.start
        wave = wave.at(now)
        rises += wave.start != before
        _, deadline = wave.level(now)
    assert wave.start == pytest.approx(rises / frequency)


@given(DUTIES, FREQUENCIES, st.floats(TOLERANCE * 1.01, 10))
def test_a_late_pulse_has_its_full_width_and_missed_pulses_are_not_repeated(
    duty: float, frequency: float, late: float
) -> None:
    wave = Wave(duty, frequency)
    now = wave.period + late
    moved = wave.at(now)
    level, until = moved.level(now)
    assert level is True
    assert until - now == pytest.approx(duty / frequency)
    assert moved.at(now) is moved, "once"


@given(DUTIES, DUTIES, FREQUENCIES, FREQUENCIES, st.floats(0, 1))
def test_a_change_keeps_the_phase(duty: float, other: float, frequency: float, faster: float, share: float) -> None:
    now = share / frequency
    wave = Wave(other, faster, Wave(duty, frequency).start).at(now)
    level, until = wave.level(now)
    assert until > now
    assert (until - wave.start) * faster == pytest.approx(other if level else 1.0)
    assert wave.start in (0.0, wave.period) or wave.start == now


@pytest.mark.parametrize(("duty", "constant"), [(0.0, True), (1.0, True), (0.001, False), (0.999, False)])
def test_constant_waves(duty: float, constant: bool) -> None:
    assert Wave(duty, 100).constant is constant


class Output:
    """An output that records what is written."""

    def __init__(self) -> None:
        self.log: list[tuple[float, bool]] = []
        self.high = False
        self.broken = False
        self.expected_count = 0
        self.enough = trio.Event()

    def read(self) -> bool:
        self._check()
        return self.high

    def write(self, high: bool) -> None:
        self._check()
        self.high = high
        self.log.append((trio.current_time(), high))
        if len(self.log) >= self.expected_count:
            self.enough.set()

    def _check(self) -> None:
        if self.broken:
            raise HalError("the chip is gone", Fault.GONE)

    async def written(self, count: int) -> None:
        self.expected_count, self.enough = len(self.log) + count, trio.Event()
        with trio.fail_after(30):
            await self.enough.wait()


async def test_a_wave_rises_once_a_period_and_ends_with_its_owner() -> None:
    output = Output()
    async with toggled(output, "line") as pwm:
        assert pwm.wave() == (0.0, DEFAULT_FREQUENCY)
        pwm.set_wave(0.25, 20)  # slow: an output that is later than a period all the time stays high
        await output.written(10)
        changes = output.log[:1]  # after a delay of over one period the wave resumes with a pulse
        changes += [new for old, new in itertools.pairwise(output.log) if old[1] is not new[1]]
        rises = [time for time, high in changes if high]
        assert changes[0][1]
        assert len(rises) >= 3
        assert rises[-1] - rises[0] >= (len(rises) - 1) / 20 - 2 * TOLERANCE
        pulses = [fall - rise for (rise, _), (fall, _) in zip(changes[::2], changes[1::2], strict=False)]
        # An edge may be recorded late, but pulses are not cut short.
        assert statistics.median(pulses) >= 0.25 / 20 - TOLERANCE
        assert pwm.wave() == (0.25, 20)
    count = len(output.log)
    await trio.sleep(0.1)
    assert len(output.log) == count


async def test_constant_levels_take_effect_at_once_and_cost_nothing() -> None:
    output = Output()
    async with toggled(output, "line") as pwm:
        pwm.set_wave(1.0, 100)
        assert output.high is True
        pwm.set_wave(0.5, 1000)
        await output.written(3)
        pwm.set_wave(0.0, 1000)
        assert output.high is False
        count = len(output.log)
        await trio.sleep(0.02)
        assert len(output.log) == count
        pwm.set_wave(0.5, 1000)
        await output.written(3)


async def test_a_slow_wave_is_changed_without_waiting_for_its_end() -> None:
    output = Output()
    async with toggled(output, "line") as pwm:
        pwm.set_wave(0.5, 0.001)
        await output.written(1)
        assert output.high is True
        pwm.set_wave(0.5, 500)
        await output.written(4)


@pytest.mark.parametrize("frequency", [0.0, -5.0, MAX_FREQUENCY * 1.01, float("inf"), float("nan")])
async def test_frequencies_that_software_cannot_generate_are_refused(frequency: float) -> None:
    output = Output()
    async with toggled(output, "pinctrl-bcm2711 line 17") as pwm:
        with pytest.raises(HalError, match="line 17") as caught:
            pwm.set_wave(0.5, frequency)
        assert caught.value.fault is Fault.UNSUPPORTED
        assert "hardware PWM" in caught.value.remedy
        for duty in (-0.1, 1.1, float("nan")):
            with pytest.raises(ValueError, match="0 to 1"):
                pwm.set_wave(duty, 100)
    assert output.log == []


async def test_a_line_that_vanishes_ends_the_body_with_its_error() -> None:
    async def lose(output: Output) -> None:
        async with toggled(output, "line") as pwm:
            pwm.set_wave(0.5, 1000)
            await output.written(3)
            output.broken = True
            with trio.fail_after(30):
                await trio.sleep_forever()

    with pytest.raises(HalError) as caught:
        await lose(Output())
    assert caught.value.fault is Fault.GONE


async def test_an_error_of_the_body_comes_out_as_it_is() -> None:
    async def fail() -> None:
        async with toggled(Output(), "line") as pwm:
            pwm.set_wave(0.5, 1000)
            raise KeyError

    with pytest.raises(KeyError):
        await fail()
