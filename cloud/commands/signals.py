"""Readings as sensors of a machine would send them: quantized values, gaps, bursts and restarts.

Real values compress because they repeat and change in small steps; random numbers would not, and would say nothing
about what a cloud needs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

SECOND: Final = 1_000_000  # stored times are in microseconds
DAY: Final = 86_400 * SECOND


@dataclass(frozen=True, slots=True)
class Quantity:
    """A value of a sensor: where it is on average, how it changes within a day, and its least step."""

    name: str
    mean: float
    swing: float
    step: float


SENSORS: Final[tuple[tuple[str, tuple[Quantity, ...]], ...]] = (
    (
        "climate",
        (
            Quantity("humidity", 45.0, 8.0, 0.5),
            Quantity("pressure", 1013.2, 3.0, 0.1),
            Quantity("temperature", 21.0, 4.0, 0.1),
        ),
    ),
    ("power", (Quantity("current", 1.8, 0.6, 0.05), Quantity("voltage", 12.4, 0.5, 0.01))),
    ("drive", (Quantity("speed", 0.4, 0.4, 0.01), Quantity("torque", 2.0, 1.5, 0.1))),
    ("tank", (Quantity("level", 60.0, 30.0, 1.0),)),
)
"""Names and values of sensors, with as many as are asked for; a further one repeats the first with another number."""

OFFLINE_EVERY: Final = 30.0  # days between two long gaps, on average
OFFLINE_FOR: Final = 0.5  # days of a gap, on average
RESTART_EVERY: Final = 14.0  # days
RESTART_FOR: Final = 0.002  # days: three minutes
BURST_EVERY: Final = 20.0  # days between two bursts of a sensor
BURST: Final = 60  # readings of a burst, one a second


@dataclass(frozen=True, slots=True)
class Pause:
    """A time without readings: a restart if it is short."""

    begin: int
    end: int
    restart: bool


def sensor_name(number: int) -> str:
    """Return the name of a sensor of a machine, counted from 0: `climate`, `power`, ..., `climate-2`."""
    turn, place = divmod(number, len(SENSORS))
    return SENSORS[place][0] + (f"-{turn + 1}" if turn else "")


def pauses(chance: Random, begin: int, end: int) -> list[Pause]:
    """Return the gaps and restarts of a machine between two stored times, in order."""
    every_pause = []
    for every, length, restart in ((OFFLINE_EVERY, OFFLINE_FOR, False), (RESTART_EVERY, RESTART_FOR, True)):
        moment = begin + _wait(chance, every)
        while moment < end:
            pause = Pause(moment, min(end, moment + _wait(chance, length)), restart)
            every_pause.append(pause)
            moment = pause.end + _wait(chance, every)
    return sorted(every_pause, key=lambda pause: pause.begin)


def moments(chance: Random, begin: int, end: int, interval: int, without: Sequence[Pause]) -> Iterator[int]:
    """Yield the capture times of a sensor: each `interval` microseconds, with bursts, and none in a pause."""
    upcoming, burst = list(reversed(without)), begin + _wait(chance, BURST_EVERY)
    moment = begin + chance.randrange(interval)
    while moment < end:
        while upcoming and upcoming[-1].end <= moment:
            upcoming.pop()
        if upcoming and upcoming[-1].begin <= moment:
            moment = upcoming.pop().end + chance.randrange(interval)
            continue
        if moment >= burst and interval > SECOND:
            stop = upcoming[-1].begin if upcoming else end
            yield from range(moment, min(stop, moment + BURST * SECOND), SECOND)
            burst, moment = moment + _wait(chance, BURST_EVERY), moment + BURST * SECOND
            continue
        yield moment
        moment += interval + chance.randrange(-interval // 1000, interval // 1000 + 1)


def values(chance: Random, quantity: Quantity, times: Sequence[int]) -> list[float]:
    """Return the values of a quantity at these times: a wave of a day and a slow drift, in whole steps."""
    phase, drift, step = chance.random() * math.tau, 0.0, quantity.step
    digits, swing, mean = max(0, -math.floor(math.log10(step))), quantity.swing, quantity.mean
    angle, stay, choices = math.tau / DAY, chance.random, chance.choice
    drifts, result, rounded = (-step, step), [], dict[int, float]()
    for moment in times:
        if stay() < 0.05:
            drift = max(-swing, min(swing, drift + choices(drifts)))
        steps = round((mean + swing / 2 * math.sin(moment * angle + phase) + drift) / step)
        if steps not in rounded:
            rounded[steps] = round(steps * step, digits)
        result.append(rounded[steps])
    return result


def _wait(chance: Random, days: float) -> int:
    return int(chance.expovariate(1 / days) * DAY) + 1
