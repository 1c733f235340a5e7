"""The time zone of the device."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from support.clock.zone import device_zone

SUMMER, WINTER = 1_780_000_000, 1_800_000_000  # May 2026, January 2027


@pytest.mark.parametrize(
    ("variable", "summer", "winter"),
    [
        ("Europe/Berlin", "+0200 CEST", "+0100 CET"),
        (":America/New_York", "-0400 EDT", "-0500 EST"),
        ("CET-1CEST,M3.5.0,M10.5.0/3", "+0200 CEST", "+0100 CET"),
        ("<+03>-3", "+0300 +03", "+0300 +03"),
        ("EST5", "-0500 EST", "-0500 EST"),
        ("UTC", "+0000 UTC", "+0000 UTC"),
        ("", "+0000 UTC", "+0000 UTC"),
    ],
)
def test_the_variable_is_a_name_or_a_rule(variable: str, summer: str, winter: str) -> None:
    zone, problem = device_zone(variable)
    assert problem == ""
    assert [f"{datetime.fromtimestamp(moment, zone):%z %Z}" for moment in (SUMMER, WINTER)] == [summer, winter]


@pytest.mark.parametrize("variable", ["nonsense", "../../etc/passwd", "/etc/passwd", "/etc", "a\0b", "x" * 9000, "é"])
def test_a_variable_that_cannot_be_used_means_utc_and_is_a_problem(variable: str) -> None:
    zone, problem = device_zone(variable)
    assert zone is UTC
    assert problem.startswith("the variable TZ cannot be used: ")
    assert len(problem) < 300


def test_without_the_variable_the_file_counts_each_time(tmp_path: Path) -> None:
    file = tmp_path / "localtime"
    assert device_zone(None, file) == (UTC, "")
    for name, offset in (("Europe/Berlin", "+0200"), ("Asia/Tokyo", "+0900")):
        file.unlink(missing_ok=True)
        file.symlink_to(f"/usr/share/zoneinfo/{name}")
        zone, problem = device_zone(None, file)
        assert (f"{datetime.fromtimestamp(SUMMER, zone):%z}", problem) == (offset, "")
    file.unlink()
    file.write_text("rot")
    zone, problem = device_zone(None, file)
    assert zone is UTC
    assert str(file) in problem
