"""Where the time of a run of the tests went, by its JUnit reports."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from tests.again import id_of

SLOWEST: Final = 10


def seconds_of(reports: Iterable[Path]) -> Counter[str]:
    """Seconds of each test, as pytest names it; nothing of a report that is missing or cut off."""
    seconds: Counter[str] = Counter()
    for report in reports:
        try:
            cases = list(ElementTree.parse(report).iter("testcase"))
        except (OSError, ElementTree.ParseError):
            continue
        for case in cases:
            seconds[id_of(case)] += float(case.get("time", 0))  # type: ignore[assignment]
    return seconds


def summary(reports: Iterable[Path], rooms: Sequence[str]) -> str:
    """The slowest tests, and the total of each room, the longest first."""
    seconds = seconds_of(reports)
    totals = {
        room: sum(taken for test, taken in seconds.items() if test.startswith((f"tests/{room}/", f"tests/{room}::")))
        for room in rooms
    }
    longest = sorted(totals.items(), key=lambda one: -one[1])
    lines = [f"\nthe {SLOWEST} slowest tests:", *_table((test, taken) for test, taken in seconds.most_common(SLOWEST))]
    return "\n".join([*lines, "\nseconds by room:", *_table(one for one in longest if round(one[1]))])


def _table(rows: Iterable[tuple[str, float]]) -> list[str]:
    return [f"{taken:7.1f} s  {name}" for name, taken in rows]
