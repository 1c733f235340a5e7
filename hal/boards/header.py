"""The 40-pin header introduced by Raspberry Pi: power pins and numbering. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from hal.boards.definition import BoardPin

POWER: Final[Mapping[int, str]] = {
    1: "3.3 V",
    2: "5 V",
    4: "5 V",
    6: "ground",
    9: "ground",
    14: "ground",
    17: "3.3 V",
    20: "ground",
    25: "ground",
    30: "ground",
    34: "ground",
    39: "ground",
}
"""From the Raspberry Pi documentation, "GPIO and the 40-pin header"; the same on Jetson developer kits."""

_BCM_IN_PAIRS: Final = (
    "3 2, 5 3, 7 4, 8 14, 10 15, 11 17, 12 18, 13 27, 15 22, 16 23, 18 24, 19 10, 21 9, 22 25, 23 11, 24 8, 26 7, "
    "27 0, 28 1, 29 5, 31 6, 32 12, 33 13, 35 19, 36 16, 37 26, 38 20, 40 21"
)
BCM: Final[Mapping[int, int]] = {int(place): int(line) for place, line in map(str.split, _BCM_IN_PAIRS.split(", "))}
"""Broadcom's line number at each position, from the same source."""


def header(signal: Callable[[int], BoardPin]) -> tuple[BoardPin, ...]:
    """Return the pins of all 40 positions; `signal` creates the pin of a position that is not power or ground."""
    return tuple(
        BoardPin((str(number),), note=POWER[number]) if number in POWER else signal(number) for number in range(1, 41)
    )
