"""Plants on a GPIO chip of the rig: a wheel with a bridge and an encoder on lines, and a stepper motor."""

from __future__ import annotations

import math
import time

import trio

from tests.hil.guest.gpio_bank import GpioBank, LineEvent

BEAT = 0.01  # seconds between two updates of a turning shaft
TRACKS = ((False, False), (True, False), (True, True), (False, True))  # turning forward, A leads


class _Levels:
    """The levels of some lines as driven by software, over time."""

    def __init__(self, bank: GpioBank, *lines: int) -> None:
        self._bank = bank
        self._seen: LineEvent | None = bank.events[-1] if bank.events else None
        self.levels = {line: bank.value(line) for line in lines}

    def news(self) -> list[LineEvent]:
        """Return the events of those lines since the last call, oldest first."""
        new = []
        for event in reversed(self._bank.events):
            if event is self._seen:
                break
            new.append(event)
        if self._bank.events:
            self._seen = self._bank.events[-1]
        return [event for event in reversed(new) if event.line in self.levels]


class Wheel:
    """A DC motor between lines `a` and `b` (PWM on them), with `ticks` of an encoder on lines `a_out` and `b_out`.

    Its speed tends to the mean of a minus b times `max_rpm`, with the time constant `tau` (s). `both` counts how often
    both inputs were high together.
    """

    def __init__(
        self,
        bank: GpioBank,
        a: int,
        b: int,
        a_out: int,
        b_out: int,
        max_rpm: float = 60,
        ticks: int = 40,
        tau: float = 0.2,
    ) -> None:
        self.position = 0.0  # revolutions
        self.rpm = 0.0
        self.both = 0
        self.blocked = False
        self._bank = bank
        self._inputs = a, b
        self._outputs = a_out, b_out
        self._max = max_rpm / 60
        self._ticks = ticks
        self._tau = tau

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Turn while there is power or momentum."""
        levels = _Levels(self._bank, *self._inputs)
        shown = 0
        now = time.monotonic()
        task_status.started()
        while True:
            news = levels.news()
            for event in news:
                now = self._turn(levels.levels, now, event.time)
                levels.levels[event.line] = event.high
                self.both += all(levels.levels.values())
            now = self._turn(levels.levels, now, time.monotonic())
            tick = math.floor(self.position * self._ticks)
            while shown != tick:
                way = 1 if tick > shown else -1
                self._show(shown, shown + way)
                shown += way
            if self.rpm or any(levels.levels.values()):
                await trio.sleep(BEAT)
            else:
                await self._bank.changed().wait()

    def _show(self, before: int, after: int) -> None:
        for line, old, new in zip(self._outputs, TRACKS[before % 4], TRACKS[after % 4], strict=True):
            if old is not new:
                self._bank.pull(line, new)

    def _turn(self, levels: dict[int, bool], since: float, until: float) -> float:
        """Advance to a time with the present levels; return the later of the two times."""
        dt = until - since
        if dt <= 0:
            return since
        a, b = (levels[line] for line in self._inputs)
        goal = 0.0 if self.blocked else (a - b) * self._max
        speed, decay = self.rpm / 60, math.exp(-dt / self._tau)
        if self.blocked:
            speed = 0.0
        self.position += goal * dt + (speed - goal) * self._tau * (1 - decay)
        new = goal + (speed - goal) * decay
        self.rpm = 0.0 if abs(new) < 1e-4 and goal == 0 else new * 60
        return until


class Rotor:
    """A stepper motor: one step for each rise of `step` while `enable_low` is low, in the direction of `dir`."""

    def __init__(self, bank: GpioBank, step: int, direction: int, enable_low: int) -> None:
        self.position = 0
        self.lost = 0  # rises without power
        self.times: list[float] = []
        self._bank = bank
        self._step, self._direction, self._enable = step, direction, enable_low

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Follow the lines."""
        levels = _Levels(self._bank, self._step, self._direction, self._enable)
        task_status.started()
        while True:
            for event in levels.news():
                rise = event.line == self._step and event.high and not levels.levels[self._step]
                levels.levels[event.line] = event.high
                if rise and levels.levels[self._enable]:
                    self.lost += 1
                elif rise:
                    self.position += 1 if levels.levels[self._direction] else -1
                    self.times.append(event.time)
            await self._bank.changed().wait()

    def rate(self) -> float:
        """Return the average number of steps per second."""
        return (len(self.times) - 1) / (self.times[-1] - self.times[0])
