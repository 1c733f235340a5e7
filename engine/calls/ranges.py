"""Ranges that the API defines for arguments, checked for all drivers (built in, in modules, on remotes). Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from schema import API, ErrorKind, MachineError, Vector3

SLACK: Final = 1e-6  # tolerance for rounding errors


class Range(NamedTuple):
    """Lowest and highest value of an argument, a noun for it, and the meaning of both ends."""

    low: float
    high: float
    noun: str
    ends: str


_POWER: Final = Range(-1.0, 1.0, "power", "-1 (full power backwards) to 1 (full power forwards)")
_DUTY_CYCLE: Final = Range(0.0, 1.0, "duty cycle", "0 (always off) to 1 (always on)")

RANGES: Final[Mapping[tuple[str, str], Mapping[str, Range]]] = {
    ("rdk:component:motor", "set_power"): {"power_pct": _POWER},
    ("rdk:component:base", "set_power"): {"linear": _POWER, "angular": _POWER},
    ("rdk:component:board", "set_pwm"): {"duty_cycle_pct": _DUTY_CYCLE},
}
"""Ranges of arguments by API and method; for vectors, of each part."""


def check_ranges(api: API, method: str, arguments: Mapping[str, Any]) -> None:
    """Raise MachineError (INVALID) for an argument out of range; for a likely percentage it shows the fraction."""
    for name, (low, high, noun, ends) in RANGES.get((str(api), method), {}).items():
        for path, value in _numbers(name, arguments.get(name)):
            if not low - SLACK <= value <= high + SLACK:
                percent = 1 < abs(value) <= 100 and low <= value / 100 <= high
                raise MachineError(
                    f"{path}: a {noun} of {value:g} is out of range",
                    kind=ErrorKind.INVALID,
                    remedy=f"use {ends}" + (f"; {value:g} % is {value / 100:g}" if percent else ""),
                )


def _numbers(name: str, value: Any) -> Iterator[tuple[str, float]]:
    if isinstance(value, (int, float)):
        yield name, value
    elif isinstance(value, Vector3):
        yield from ((f"{name}.{part}", getattr(value, part)) for part in "xyz")
