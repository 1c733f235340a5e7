"""Recording of a test: named channels of numbers over time. Pure, except for the clock that the caller passes."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, Final

LIMIT: Final = 200_000  # points kept in a channel; later ones are only counted

# The unit of a channel by the suffix of its name, as in names of readings.
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
    """Return the unit that the suffix of a name stands for; empty if there is none."""
    _, underscore, suffix = name.lower().rpartition("_")
    return _UNITS.get(f"_{suffix}", "") if underscore else ""


@dataclass(slots=True)
class PlottedQuantity:
    """One quantity. `steps` means that it keeps its value until the next point, like a switch.

    A point with the value NaN is a gap: the quantity was not known from then on.
    """

    name: str
    unit: str
    steps: bool
    points: list[tuple[float, float]] = field(default_factory=list)
    dropped: int = 0
    title: str = ""  # title in plots; if empty, the name


class Recorder:
    """The channels of one test, in the order of their first points. Times are seconds since the start of the test."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._begin = clock()
        self.channels: dict[str, PlottedQuantity] = {}

    def elapsed(self) -> float:
        """Return the seconds since the start of the test."""
        return self._clock() - self._begin

    def add(
        self, name: str, value: float, *, unit: str = "", steps: bool = False, at: float | None = None, title: str = ""
    ) -> None:
        """Record a value now, or `at` seconds after the start. A value that is not finite is recorded as a gap.

        If a channel gets several titles, the longest is kept.
        """
        value = float(value) if math.isfinite(value) else math.nan
        channel = self.channels.get(name)
        if channel is None:
            channel = self.channels[name] = PlottedQuantity(name, unit or unit_of(name), steps)
        channel.title = max(channel.title, title, key=len)
        if len(channel.points) >= LIMIT:
            channel.dropped += 1
        else:
            channel.points.append((self.elapsed() if at is None else at, value))

    def add_all(self, prefix: str, value: Any) -> None:
        """Record the numbers in `value` (a number, mapping or dataclass) as channels with names below `prefix`."""
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
        """Begin a gap in all channels of `prefix`."""
        for channel in self.channels.values():
            continues = channel.points and not math.isnan(channel.points[-1][1])
            if continues and (channel.name == prefix or channel.name.startswith(f"{prefix} ")):
                self.add(channel.name, math.nan)


def to_csv(channels: Iterable[PlottedQuantity]) -> str:
    """Return CSV with a line per point, ordered by time: `time_s,channel,value,unit`. A gap has an empty value."""
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
