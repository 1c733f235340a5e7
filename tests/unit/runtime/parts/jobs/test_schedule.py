from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.parts.jobs.schedule import LONGEST_PAUSE, Continuous, Cron, Every, parse_schedule
from schema.errors import ConfigError

BERLIN = ZoneInfo("Europe/Berlin")
MONDAY = datetime(2026, 11, 23, 12, 0, tzinfo=UTC)


def cron(text: str) -> Cron:
    schedule = parse_schedule(text, "jobs.0.schedule")
    assert isinstance(schedule, Cron)
    return schedule


def test_three_kinds() -> None:
    assert parse_schedule("1m30s", "") == Every(90.0)
    assert parse_schedule("continuous", "") == Continuous()
    assert cron("*/5 * * * *").after(MONDAY) == MONDAY + timedelta(minutes=5)


@pytest.mark.parametrize(
    ("text", "next_time"),
    [
        ("30 6 * * mon-fri", datetime(2026, 11, 24, 6, 30, tzinfo=UTC)),
        ("0 0 1 * *", datetime(2026, 12, 1, tzinfo=UTC)),
        ("0 0 29 2 *", datetime(2028, 2, 29, tzinfo=UTC)),
        ("15 30 6 * * *", datetime(2026, 11, 24, 6, 30, 15, tzinfo=UTC)),  # six fields: the first is seconds
        ("*/10 * * * * *", MONDAY + timedelta(seconds=10)),
        ("0 12 * JAN SUN", datetime(2027, 1, 3, 12, tzinfo=UTC)),
    ],
)
def test_cron_fields(text: str, next_time: datetime) -> None:
    assert cron(text).after(MONDAY) == next_time


@pytest.mark.parametrize("text", ["61 * * * *", "0 25 * * *", "0 0 0 * *", "* * * 13 *", "a b c d e"])
def test_wrong_fields_name_path_and_remedy(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_schedule(text, "jobs.2.schedule")
    assert caught.value.path == "jobs.2.schedule"
    assert caught.value.value == text
    assert "fields" in caught.value.remedy


def test_a_date_that_never_comes_is_refused() -> None:
    with pytest.raises(ConfigError):
        parse_schedule("0 0 31 2 *", "jobs.0.schedule")


def test_the_hour_that_is_left_out_and_the_one_that_comes_twice() -> None:
    spring = datetime(2026, 3, 28, 12, 0, tzinfo=BERLIN)  # 02:00 becomes 03:00 on the 29th
    assert cron("30 2 * * *").after(spring) == datetime(2026, 3, 29, 3, 0, tzinfo=BERLIN)
    autumn = datetime(2026, 10, 24, 12, 0, tzinfo=BERLIN)  # 03:00 becomes 02:00 on the 25th
    first = cron("30 2 * * *").after(autumn)
    assert first is not None
    second = cron("30 2 * * *").after(first)
    assert second is not None
    assert (first.date().day, second.date().day) == (25, 26), "once a day, also on that day"


@given(st.integers(0, 59), st.integers(0, 23), st.datetimes(datetime(2020, 1, 1), datetime(2040, 1, 1)))
def test_a_daily_time_is_the_next_one_and_in_the_future(minute: int, hour: int, moment: datetime) -> None:
    moment = moment.replace(tzinfo=UTC)
    result = cron(f"{minute} {hour} * * *").after(moment)
    assert result is not None
    expected = moment.replace(hour=hour, minute=minute, second=0, microsecond=0)
    assert result == (expected if expected > moment else expected + timedelta(days=1))


def test_pauses_of_a_continuous_job_grow_to_a_ceiling() -> None:
    pauses = [Continuous().pause(failures) for failures in range(12)]
    assert pauses[:4] == [0.0, 0.5, 1.0, 2.0]
    assert pauses == sorted(pauses)
    assert pauses[-1] == LONGEST_PAUSE
