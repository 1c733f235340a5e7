"""Where the time of a run of the tests went, by its JUnit reports."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

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
            seconds[_id_of(case)] += float(case.get("time", 0))  # type: ignore[assignment]
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


def _id_of(case: ElementTree.Element) -> str:
    """Return the id of the test that a testcase of a JUnit report is about."""
    return f"{_place(case.get('classname', ''))}::{case.get('name')}"


def _place(dotted: str) -> str:
    """Return `tests.unit.test_a` or `tests.unit.test_a.TestModel` as a file, and a class in it."""
    words = dotted.split(".")
    last = next((at for at, word in enumerate(words) if word.startswith("test_")), len(words) - 1)
    return "::".join(["/".join(words[: last + 1]) + ".py", *words[last + 1 :]])
