"""Software PWM: a task toggles a line at deadlines of a kernel timer.

It is meant for slow loads such as a heater, a lamp or a small motor. Each edge is delayed by the wake-up time of the
kernel and the event loop, typically 0.05 ms on an idle machine, and by other running tasks. Frequencies above
MAX_FREQUENCY are therefore rejected, pulses and pauses shorter than about 0.1 ms become longer or disappear, and a
servo would jitter. Delays do not accumulate: periods begin on schedule, and a pulse that begins late is not shortened.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import trio

from hal.errors import Fault, HalError
from hal.linux.gpio.lines import digital_output
from hal.linux.pwm.background import background
from hal.linux.pwm.wave import Wave
from hal.linux.timer import Timer
from hal.ports.digital import DigitalOutput, Line, OutputSettings
from hal.ports.pwm import PwmOutput

MAX_FREQUENCY: Final = 1000.0  # Hz; two wake-ups per period, each of which may be late by a tenth of the period
DEFAULT_FREQUENCY: Final = 800.0  # Hz, until a frequency is set


@asynccontextmanager
async def software_pwm(line: Line) -> AsyncIterator[PwmOutput]:
    """Open `line` as an output at low level, and leave it low. Raises the same errors as `digital_output`.

    If the line's chip vanishes while a wave is running, the body is cancelled and HalError (gone) is raised.
    """
    async with digital_output(line, OutputSettings()) as output, toggled(output, str(line)) as wave:
        yield wave


@asynccontextmanager
async def toggled(output: DigitalOutput, what: str) -> AsyncIterator[PwmOutput]:
    """Generate a wave on an output that the caller has opened."""
    timer = Timer()
    try:
        pwm = SoftwarePwm(output, timer, what)
        async with background(pwm.toggle):
            yield pwm
    finally:
        timer.close()


class SoftwarePwm:
    """The wave of one output."""

    def __init__(self, output: DigitalOutput, timer: Timer, what: str) -> None:
        self._output = output
        self._timer = timer
        self._what = what
        self._wave = Wave(0.0, DEFAULT_FREQUENCY)

    def wave(self) -> tuple[float, float]:
        """Return duty and frequency. HalError (gone) if the line is gone."""
        self._output.read()
        return self._wave.duty, self._wave.frequency

    def set_wave(self, duty: float, frequency: float) -> None:
        """Set duty and frequency at once, within the current period: a pulse may change its length but is not split."""
        if not 0 <= duty <= 1:
            raise ValueError(f"a duty of {duty:g} is not valid: expected 0 to 1")
        if not 0 < frequency <= MAX_FREQUENCY:
            raise HalError(
                f"{self._what}: software cannot generate {frequency:g} Hz",
                Fault.UNSUPPORTED,
                remedy=f"use a frequency above 0 and up to {MAX_FREQUENCY:g} Hz, or a pin with hardware PWM",
            )
        now = trio.current_time()
        start = now if self._wave.constant else self._wave.start
        self._wave = Wave(duty, frequency, start)
        if self._wave.constant:
            self._timer.disarm()
            self._output.write(duty == 1)
        else:
            self._timer.arm(now)

    async def toggle(self) -> None:
        """Generate the wave until cancelled."""
        while True:
            await self._timer.expired()
            now = trio.current_time()
            if self._wave.constant:  # changed after the timer expired
                continue
            self._wave = self._wave.at(now)
            high, until = self._wave.level(now)
            self._output.write(high)
            self._timer.arm(until)
