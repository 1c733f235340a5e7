"""Judge square waves made by software on an emulated processor that is often late, sometimes most of the time.

Lateness makes pulses and periods longer, never shorter. A wave is therefore judged by the shortest tenth of its pulses
and periods, and observed until the processor has had a moment in which they are correct.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import trio

from tests.hil.rig.plant import Bank

RISES: Final = 30  # judged together
LIMIT: Final = 60.0  # seconds
EARLY: Final = 0.0001  # seconds; the duration of two writes to a line may differ by this much


@dataclass(frozen=True, slots=True)
class Wave:
    """Seconds of the shortest tenth (`width`, `period`) and medians of all pulses and periods."""

    width: float
    period: float
    median_width: float
    median_period: float


def wave_of(history: Sequence[Mapping[str, Any]]) -> Wave | None:
    """Return the wave in the history of a line; None if it has risen less than three times."""
    sets = [event for event in history if event["what"] == "set"]
    changes = [event for index, event in enumerate(sets) if index == 0 or event["high"] is not sets[index - 1]["high"]]
    pulses = sorted(b["time"] - a["time"] for a, b in itertools.pairwise(changes) if a["high"])
    rises = [event["time"] for event in changes if event["high"]]
    periods = sorted(b - a for a, b in itertools.pairwise(rises))
    if len(periods) < 2 or not pulses:
        return None
    return Wave(
        pulses[len(pulses) // 10], periods[len(periods) // 10], pulses[len(pulses) // 2], periods[len(periods) // 2]
    )


def is_wave(found: Wave, width: float, period: float, late: float) -> bool:
    """Return whether the medians are long enough and the shortest tenths differ from the request by at most `late`."""
    return (
        width - EARLY <= found.median_width
        and period - EARLY <= found.median_period
        and abs(found.width - width) <= late
        and abs(found.period - period) <= late
    )


async def wait_wave(bank: Bank, line: int, since: float, *, width: float, period: float, late: float) -> Wave:
    """Return the wave once the last RISES pulses since a guest time fit; AssertionError after LIMIT seconds."""
    wave, count = None, RISES
    with trio.move_on_after(LIMIT):
        while True:
            await bank.wait_rises(line, count, since, limit=LIMIT)
            history = await bank.history(line, since)
            rises = [index for index, event in enumerate(history) if event["what"] == "set" and event["high"]]
            wave = wave_of(history[rises[-RISES] :])
            if wave is not None and is_wave(wave, width, period, late):
                return wave
            count = len(rises) + RISES
    raise AssertionError(f"pulses of {width} s every {period} s were asked for; in the guest: {wave}")
