"""What is recorded while a test runs: named channels of numbers over time. Pure, but for the clock it is given."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, Final

LIMIT: Final = 200_000  # points of a channel that are kept; later ones are counted

# The unit at the end of a name, as the drivers write it; the longest suffix that fits decides.
_UNITS: Final = {
    "_c": "°C",
    "_v": "V",
    "_mv": "mV",
    "_a": "A",
    "_ma": "mA",
    "_w": "W",
    "_rpm": "rpm",
    "_pct": "%",
    "_percent": "%",
    "_hz": "Hz",
    "_s": "s",
    "_ms": "ms",
    "_mm": "mm",
    "_m": "m",
    "_deg": "°",
    "_lux": "lx",
    "_pa": "Pa",
    "_hpa": "hPa",
    "_g": "g",
    "_mps": "m/s",
    "_dps": "°/s",
}


def unit_of(name: str) -> str:
    """The unit that a name ends in; empty for none."""
    _, underscore, suffix = name.lower().rpartition("_")
    return _UNITS.get(f"_{suffix}", "") if underscore else ""


@dataclass(slots=True)
class Channel:
    """One quantity. `steps`: it keeps its value until the next point, as a switch does.

    A point whose value is not a number is a gap: nothing was known then.
    """

    name: str
    unit: str
    steps: bool
    points: list[tuple[float, float]] = field(default_factory=list)
    dropped: int = 0
    title: str = ""  # what plots call it; empty for its name


class Recorder:
    """The channels of one test, in the order in which they came; times are seconds since its beginning."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._begin = clock()
        self.channels: dict[str, Channel] = {}

    def elapsed(self) -> float:
        """Seconds since the beginning."""
        return self._clock() - self._begin

    def add(
        self, name: str, value: float, *, unit: str = "", steps: bool = False, at: float | None = None, title: str = ""
    ) -> None:
        """Record a value now, or `at` seconds since the beginning; one that is not a finite number is a gap.

        Of the titles that a channel is given, the longest is kept.
        """
        value = float(value) if math.isfinite(value) else math.nan
        channel = self.channels.get(name)
        if channel is None:
            channel = self.channels[name] = Channel(name, unit or unit_of(name), steps)
        channel.title = max(channel.title, title, key=len)
        if len(channel.points) >= LIMIT:
            channel.dropped += 1
        else:
            channel.points.append((self.elapsed() if at is None else at, value))

    def add_all(self, prefix: str, value: Any) -> None:
        """Record whatever numbers are in `value`, a number, a mapping or a dataclass of numbers, under `prefix`."""
        if is_dataclass(value):
            value = {field.name: getattr(value, field.name) for field in fields(value)}
        if isinstance(value, Mapping):
            for key, item in value.items():
                self.add_all(f"{prefix} {key}", item)
        elif isinstance(value, bool):
            self.add(prefix, value, steps=True)
        elif isinstance(value, (int, float)):
            self.add(prefix, value)

    def gap(self, prefix: str) -> None:
        """What was recorded under `prefix` is not known from now on."""
        for channel in self.channels.values():
            continues = channel.points and not math.isnan(channel.points[-1][1])
            if continues and (channel.name == prefix or channel.name.startswith(f"{prefix} ")):
                self.add(channel.name, math.nan)


def to_csv(channels: Iterable[Channel]) -> str:
    """A line for each point, in order of time: `time_s,channel,value,unit`; a gap has no value."""
    rows = sorted(
        ((time, channel.name, value, channel.unit) for channel in channels for time, value in channel.points),
        key=lambda row: row[0],
    )
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["time_s", "channel", "value", "unit"])
    writer.writerows(
        (f"{time:.6f}", name, "" if math.isnan(value) else f"{value:.9g}", unit) for time, name, value, unit in rows
    )
    return text.getvalue()
