"""The system's clock of jobs: its zone, and that it was set."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
import trio
from structlog.testing import capture_logs
from trio.testing import MockClock, wait_all_tasks_blocked

from runtime.parts.jobs.clock import LONGEST_WAIT, SystemClock, set_by


async def test_local_time_has_the_offset_of_each_season(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    clock = SystemClock()
    now = clock.now()
    offsets = {now.replace(month=month, day=1).utcoffset() for month in (1, 7)}
    assert offsets == {timedelta(hours=1), timedelta(hours=2)}


async def test_a_clock_that_is_set_ends_waits_and_is_described(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "UTC")
    wall = datetime(2031, 5, 1, tzinfo=UTC)
    clock = SystemClock(lambda: wall + timedelta(seconds=trio.current_time()))
    returned: list[float] = []

    async def wait() -> None:
        await clock.wait_until(clock.now() + timedelta(hours=1))
        returned.append(trio.current_time())

    with capture_logs() as messages:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait)
            await trio.sleep(40)
            wall += timedelta(seconds=2)
            clock.clock_was_set()
            await wait_all_tasks_blocked()
            assert (returned, clock.notice, messages) == ([40], "", []), "a small step is not worth a message"
            nursery.start_soon(wait)
            await wait_all_tasks_blocked()
            wall = datetime(2026, 11, 28, 15, tzinfo=UTC)
            clock.clock_was_set()
        assert returned == [40, 40]
        assert clock.notice == "back by 4 years, to 2026-11-28 15:00:40+00:00"
        assert [(entry["event"], entry["by"]) for entry in messages] == [("the clock was set", "back by 4 years")]
        await wait()
        assert returned[-1] == 40 + LONGEST_WAIT, "without an event, the clock is compared after a while"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(61, "forward by 61 s"), (-7200, "back by 2 h"), (86400 * 3, "forward by 3 days"), (300, "forward by 5 min")],
)
def test_words_for_a_change(seconds: float, words: str) -> None:
    assert set_by(seconds) == words
