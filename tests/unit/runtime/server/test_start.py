"""When a machine started, although its clock is set later."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from runtime.server.report import MachineStart


def test_the_start_follows_a_clock_that_is_set() -> None:
    boot, ahead, seconds = datetime(1970, 1, 1, tzinfo=UTC), timedelta(), 0.0
    start = MachineStart(lambda: boot + ahead + timedelta(seconds=seconds), lambda: seconds)
    seconds = 40.0
    assert start.moment() == boot
    ahead = timedelta(days=20_000)
    assert start.moment() == boot + ahead
    seconds += 3600
    ahead += timedelta(seconds=2)
    assert start.moment() == boot + timedelta(days=20_000), "a small correction does not change what clients compare"
