"""Parsing and formatting of durations such as `10s`, `1h30m` and `250ms`."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Annotated, Final

import msgspec

_UNITS: Final = {
    "ns": Decimal("1e-9"),
    "us": Decimal("1e-6"),
    "µs": Decimal("1e-6"),
    "μs": Decimal("1e-6"),
    "ms": Decimal("1e-3"),
    "s": Decimal(1),
    "m": Decimal(60),
    "h": Decimal(3600),
}
_PART = re.compile(r"(?<![\d.])(\d++(?:\.\d*+)?+|\.\d++)(ns|us|µs|μs|ms|s|m|h)")
_WHOLE = re.compile(rf"[-+]?(?:{_PART.pattern})+", re.ASCII)
_LONGEST: Final = 2**63 / 1e9  # seconds; a duration is 64-bit nanoseconds on the wire

Duration = Annotated[
    float,
    msgspec.Meta(
        extra={"duration": True},
        extra_json_schema={"type": ["string", "number"], "description": 'such as "10s" or "1h30m"'},
    ),
]
"""Seconds in Python; in documents a string with units, or a number of nanoseconds as written by Go's encoder."""


def parse_duration(text: str) -> float:
    """Parse `1h30m`, `1.5s`, `-20ms` or `0` to seconds; ValueError otherwise, also for a number without a unit."""
    if text in {"0", "+0", "-0"}:
        return 0.0
    if len(text) > 100 or not _WHOLE.fullmatch(text):
        raise ValueError(f"{text!r} is not a duration")
    seconds = float(sum(Decimal(number) * _UNITS[unit] for number, unit in _PART.findall(text)))
    if seconds >= _LONGEST:
        raise ValueError(f"{text!r} is longer than 292 years")
    return -seconds if text[0] == "-" else seconds


def format_duration(seconds: float) -> str:
    """Format seconds in the shortest usual form, such as `1h30m`, `10s` or `250ms`, rounded to a nanosecond."""
    left = round(abs(seconds) * 1e9)
    if left == 0:
        return "0s"
    parts = ["-"] if seconds < 0 else []
    for unit, size in (("h", 3600 * 10**9), ("m", 60 * 10**9), ("s", 10**9), ("ms", 10**6), ("µs", 10**3), ("ns", 1)):
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts)
