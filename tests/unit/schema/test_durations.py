"""Durations in documents."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schema.durations import format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("10s", 10),
        ("1h30m", 5400),
        ("1.5s", 1.5),
        (".5m", 30),
        ("250ms", 0.25),
        ("3us", 3e-6),
        ("3µs", 3e-6),
        ("7ns", 7e-9),
        ("-2s", -2),
        ("+2s", 2),
        ("0", 0),
        ("1h1m1s1ms", 3661.001),
    ],
)
def test_parse(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds, rel=1e-12)


@pytest.mark.parametrize(
    "text", ["", "10", "s", "1 s", "1d", "1s ", "1s2", "--1s", "1e3s", "٣s", "9999999999h", "1s" * 60]
)
def test_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse_duration(text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (5400, "1h30m"), (0.25, "250ms"), (-90, "-1m30s"), (1e-9, "1ns"), (3600, "1h"), (1.5, "1s500ms")],
)
def test_format(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


@given(st.integers(-(10**15), 10**15))
def test_format_is_the_inverse_of_parse(nanoseconds: int) -> None:
    assert round(parse_duration(format_duration(nanoseconds / 1e9)) * 1e9) == pytest.approx(nanoseconds, abs=1)


def test_the_longest_duration_is_one_nanosecond_below_the_limit_of_the_wire() -> None:
    with pytest.raises(ValueError, match="292 years"):
        parse_duration(f"{2**63}ns")
    assert parse_duration(f"{2**63 - 1025}ns") == pytest.approx(2**63 / 1e9)
