"""PWM by software: a task that toggles a line at deadlines of the kernel's timer.

For what is slow, such as a heater, a lamp or a small motor. Each edge comes late by what the kernel and the event loop
take to wake up: typically 0.05 ms on an idle machine, and by as long as any other task computes. So frequencies above
MAX_FREQUENCY are refused, pulses and pauses shorter than about 0.1 ms come out longer or not at all, and a servo
trembles. Lateness does not add up: periods begin on schedule, and a pulse that begins late is not cut short for it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import trio

from hal.errors import Fault, HalError
from hal.linux.background import background
from hal.linux.gpio import digital_output
from hal.linux.timer import Timer
from hal.linux.wave import Wave
from hal.ports.digital import DigitalOutput, Line, OutputSettings
from hal.ports.pwm import PwmOutput

MAX_FREQUENCY: Final = 1000.0  # Hz; two wake-ups for each period, and a tenth of a period for each of them to be late
DEFAULT_FREQUENCY: Final = 800.0  # Hz, until somebody sets one


@asynccontextmanager
async def software_pwm(line: Line) -> AsyncIterator[PwmOutput]:
    """Take `line` as an output, low; leave it low. HalError as for an output.

    If the line's chip vanishes while there is a wave, the body is cancelled and HalError (gone) raised.
    """
    async with digital_output(line, OutputSettings()) as output, toggled(output, str(line)) as wave:
        yield wave


@asynccontextmanager
async def toggled(output: DigitalOutput, what: str) -> AsyncIterator[PwmOutput]:
    """A wave on an output that somebody else opened and closes."""
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
        """Duty and frequency. HalError (gone) if the line is."""
        self._output.read()
        return self._wave.duty, self._wave.frequency

    def set_wave(self, duty: float, frequency: float) -> None:
        """Take effect at once, within the current period: a pulse is made longer or shorter, never split."""
        if not 0 <= duty <= 1:
            raise ValueError(f"a duty of {duty:g} is impossible: use 0 to 1")
        if not 0 < frequency <= MAX_FREQUENCY:
            raise HalError(
                f"{self._what}: {frequency:g} Hz cannot be made by software",
                Fault.UNSUPPORTED,
                remedy=f"use more than 0 and at most {MAX_FREQUENCY:g} Hz, or a pin with hardware PWM",
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
        """Drive the wave until cancelled."""
        while True:
            await self._timer.expired()
            now = trio.current_time()
            if self._wave.constant:  # since the timer expired
                continue
            self._wave = self._wave.at(now)
            high, until = self._wave.level(now)
            self._output.write(high)
            self._timer.arm(until)
