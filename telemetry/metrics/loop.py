"""How long the event loop runs without a pause, as metrics of the process.

A pass of the loop runs all tasks that can run. While it lasts nothing else is answered, so long passes are felt by all
clients. Times are those on the clock: a computer without a free processor makes passes longer, too.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Final

import trio

from telemetry.metrics.exposition import Family

LIMITS: Final = (0.02, 0.1, 0.5)
"""Seconds. No step of a task should take longer than the first; at the last a person notices."""


class LoopPasses(trio.abc.Instrument):
    """Counts the passes of the event loop that it instruments. Costs about 0.5 µs for each pass."""

    def __init__(self, clock: Callable[[], float] = perf_counter) -> None:
        self.count = 0
        self.busy = 0.0
        """Seconds in passes. Divided by the time, the share of a processor that the loop uses."""
        self.longest = 0.0
        self.longer = [0] * len(LIMITS)
        """For each of LIMITS, the number of passes that took longer."""
        self._clock = clock
        self._begin = clock()

    def after_io_wait(self, timeout: float) -> None:
        """A pass begins. See `trio.abc.Instrument`."""
        self._begin = self._clock()

    def before_io_wait(self, timeout: float) -> None:
        """A pass ends. See `trio.abc.Instrument`."""
        took = self._clock() - self._begin
        self.count += 1
        self.busy += took
        if took > LIMITS[0]:
            self.longest = max(self.longest, took)
            for place, limit in enumerate(LIMITS):
                self.longer[place] += took > limit

    def families(self, prefix: str) -> list[Family]:
        """Return the metrics, with names that begin with `prefix`."""
        return [
            Family("counter", f"{prefix}_loop_passes", "Passes of the event loop", [((), self.count)]),
            Family("counter", f"{prefix}_loop_busy_seconds", "Time in passes of the event loop", [((), self.busy)]),
            Family(
                "counter",
                f"{prefix}_loop_slow_passes",
                "Passes of the event loop that took longer than so many seconds",
                [((f"{limit:g}",), count) for limit, count in zip(LIMITS, self.longer, strict=True)],
                ("longer_than",),
            ),
            Family(
                "gauge",
                f"{prefix}_loop_longest_pass_seconds",
                f"Longest pass of the event loop since the start; 0 if none took longer than {LIMITS[0]:g}",
                [((), self.longest)],
            ),
        ]


_measured: Final = trio.lowlevel.RunVar[LoopPasses | None]("loop passes", None)


def loop_passes() -> LoopPasses:
    """Return the counts of the running event loop, which begin with the first call."""
    passes = _measured.get()
    if passes is None:
        passes = LoopPasses()
        trio.lowlevel.add_instrument(passes)
        _measured.set(passes)
    return passes
