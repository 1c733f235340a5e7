"""Reading of diagnostic data: joins the recordings of several files, and converts counters to rates."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import pairwise
from pathlib import Path
from typing import Final

from engine import CUMULATIVE, UNITS
from engine import home as home_of
from schema import ErrorKind, MachineError
from support.foreign import walk
from telemetry.metrics import Recording, Series, read_ftdc

FOLDER: Final = "diagnostics.data"
SUFFIX: Final = ".ftdc"
GAP: Final = 5_000_000_000  # nanoseconds; a longer time between two samples means that the machine did not run


def find(files: Sequence[Path], home: Path | None) -> list[Path]:
    """Return recordings, oldest first: the given files, those in given folders, or all in the home.

    Raises MachineError (NOT_FOUND) if there are none.
    """
    recordings: list[Path] = []
    for path in files or [(home or home_of(os.environ)) / FOLDER]:
        if path.is_dir():
            recordings += (folder / name for folder, _, names in walk(path) for name in names if name.endswith(SUFFIX))
        elif path.is_file():
            recordings.append(path)
        elif files:
            raise MachineError(
                f"{path} does not exist", kind=ErrorKind.NOT_FOUND, remedy="`machine ftdc list` shows the files"
            )
    if not recordings:
        where = ", ".join(map(str, files)) or str((home or home_of(os.environ)) / FOLDER)
        raise MachineError(
            f"{where} contains no diagnostic data",
            kind=ErrorKind.NOT_FOUND,
            remedy="give files, or the home folder of machine-server with --home",
        )
    return sorted(recordings, key=lambda path: path.name)


def chosen(files: Sequence[Path], home: Path | None) -> list[Path]:
    """Return the result of `find`, or only the newest recording if no files are given."""
    recordings = find(files, home)
    return recordings if files else recordings[-1:]


def load(path: Path) -> Recording:
    """Read a recording. Raises MachineError if the file cannot be read."""
    try:
        return read_ftdc(path.read_bytes())
    except OSError as error:
        raise MachineError(f"{path} cannot be read: {error.strerror}", kind=ErrorKind.PERMISSION) from None


def joined(recordings: Iterable[Recording]) -> dict[str, Series]:
    """Concatenate the series of consecutive recordings."""
    joined_series: dict[str, Series] = {}
    for recording in recordings:
        for name, series in recording.series.items():
            target = joined_series.setdefault(name, Series())
            target.times += series.times
            target.values += series.values
    return joined_series


def matching(series: Mapping[str, Series], patterns: Sequence[str]) -> dict[str, Series]:
    """Return the series that match any of the patterns, or all without patterns. Raises MachineError (NOT_FOUND)."""
    lowered = [pattern.lower() for pattern in patterns]
    matches = {
        name: samples
        for name, samples in series.items()
        if not lowered or any(fnmatchcase(name.lower(), pattern) for pattern in lowered)
    }
    if not matches:
        raise MachineError(
            f"no quantity matches {' or '.join(patterns)}" if patterns else "the recording contains no samples",
            kind=ErrorKind.NOT_FOUND,
            remedy="`machine ftdc show` lists all quantities" if patterns else "",
        )
    return matches


@dataclass(frozen=True, slots=True)
class Shown:
    """A quantity for display; counters are converted to rates. Points are (nanoseconds, value)."""

    unit: str
    points: Sequence[tuple[int, float]]


def shown(name: str, series: Series) -> Shown:
    """Return the points of a series. There are no rates across gaps and resets of counters."""
    word = name.rpartition(".")[2]
    if word not in CUMULATIVE:
        return Shown(UNITS.get(word, ""), list(zip(series.times, series.values, strict=True)))
    return Shown(CUMULATIVE[word], list(_rates(series)))


def _rates(series: Series) -> Iterator[tuple[int, float]]:
    points = zip(series.times, series.values, strict=True)
    for (before, low), (now, high) in pairwise(points):
        if 0 < now - before <= GAP and high >= low:
            yield now, (high - low) / ((now - before) / 1e9)
