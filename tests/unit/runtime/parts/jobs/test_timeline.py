"""The next run of a cron job near a change of daylight saving time. Runs themselves: tests/sim/jobs."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from runtime.parts.jobs.timeline import Timeline
from tests.unit.runtime.parts.jobs.test_schedule import cron

BERLIN = ZoneInfo("Europe/Berlin")
NOON = datetime(2026, 3, 28, 12, 0, tzinfo=BERLIN)  # the clocks are set from 2 to 3 in the following night


@pytest.mark.parametrize(
    ("text", "runs"),
    [
        ("30 2 * * *", datetime(2026, 3, 29, 1, 0, tzinfo=UTC)),  # this time does not exist: at 3, right after it
        ("0 11 * * *", datetime(2026, 3, 29, 9, 0, tzinfo=UTC)),
        ("0 13 * * *", datetime(2026, 3, 28, 12, 0, tzinfo=UTC)),
    ],
)
def test_the_next_run_near_a_change_of_the_clocks(text: str, runs: datetime) -> None:
    following = Timeline(cron(text), NOON, 0.0).next_run(NOON)
    assert following is not None
    assert following.astimezone(UTC) == runs
