"""Summarize how long tests and rooms took, from their JUnit reports."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

SLOWEST: Final = 10


def seconds_of(reports: Iterable[Path]) -> Counter[str]:
    """Return the seconds of each test by its pytest id; ignore missing and truncated reports."""
    seconds: Counter[str] = Counter()
    for report in reports:
        try:
            cases = list(ElementTree.parse(report).iter("testcase"))
        except (OSError, ElementTree.ParseError):
            continue
        for case in cases:
            seconds[_id_of(case)] += float(case.get("time", 0))  # type: ignore[assignment]
    return seconds


def summary(reports: Iterable[Path], rooms: Sequence[str]) -> str:
    """Return the slowest tests and the total of each room, the longest first."""
    seconds = seconds_of(reports)
    totals = {
        room: sum(taken for test, taken in seconds.items() if test.startswith((f"tests/{room}/", f"tests/{room}::")))
        for room in rooms
    }
    longest = sorted(totals.items(), key=lambda room: -room[1])
    lines = [f"\nthe {SLOWEST} slowest tests:", *_table((test, taken) for test, taken in seconds.most_common(SLOWEST))]
    return "\n".join([*lines, "\nseconds by room:", *_table((room, taken) for room, taken in longest if round(taken))])


def _table(rows: Iterable[tuple[str, float]]) -> list[str]:
    return [f"{taken:7.1f} s  {name}" for name, taken in rows]


def _id_of(case: ElementTree.Element) -> str:
    """Return the pytest id of a testcase in a JUnit report."""
    return f"{_place(case.get('classname', ''))}::{case.get('name')}"


def _place(dotted: str) -> str:
    """Convert `tests.unit.test_a` or `tests.unit.test_a.TestModel` to a file path, with the class if there is one."""
    words = dotted.split(".")
    last = next((at for at, word in enumerate(words) if word.startswith("test_")), len(words) - 1)
    return "::".join(["/".join(words[: last + 1]) + ".py", *words[last + 1 :]])
