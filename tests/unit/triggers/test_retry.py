"""Which failures are retried and when, and how long a target is paused."""

from __future__ import annotations

import itertools
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.triggers.make import HOOK, NOW, conditional, data, trigger
from triggers import cooldown
from triggers.retry import MAX_WAIT, SCHEDULE, AttemptOutcome, next_try, of_status

RETRIED = (408, 409, 425, 429, 500, 502, 503, 504, 599)
FINAL = (300, 301, 302, 307, 308, 400, 401, 403, 404, 405, 410, 413, 418, 422, 451)


@pytest.mark.parametrize("status", RETRIED)
def test_answers_that_are_retried(status: int) -> None:
    outcome = of_status(status, excerpt="busy")
    assert not outcome.delivered
    assert str(status) in outcome.error
    assert outcome.error.endswith(": busy")
    assert next_try(outcome, 1, "a") is not None


@pytest.mark.parametrize("status", FINAL)
def test_answers_that_are_final(status: int) -> None:
    outcome = of_status(status, 5.0)
    assert outcome.final
    assert next_try(outcome, 1, "a") is None
    assert outcome.disable is (status == 410)


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
def test_answers_that_mean_it_arrived(status: int) -> None:
    outcome = of_status(status, excerpt="thanks")
    assert outcome.delivered
    assert next_try(outcome, 1, "a") is None


def test_a_missing_answer_is_retried() -> None:
    assert next_try(AttemptOutcome(error="no answer"), 1, "a") is not None
    assert next_try(AttemptOutcome(error="refused", final=True), 1, "a") is None


@given(st.text(max_size=10))
def test_the_schedule_with_its_jitter(seed: str) -> None:
    failed = of_status(503)
    waits = [next_try(failed, attempts, seed) for attempts in range(1, 10)]
    for wait, planned in zip(waits, SCHEDULE, strict=False):
        assert wait is not None
        assert planned <= wait < planned * 1.2
    assert waits[len(SCHEDULE) :] == [None] * (9 - len(SCHEDULE))
    assert waits == [next_try(failed, attempts, seed) for attempts in range(1, 10)]


def test_deliveries_are_spread() -> None:
    assert len({next_try(of_status(503), 2, str(seed)) for seed in range(50)}) > 45


@given(st.floats(min_value=0, max_value=1e9), st.integers(1, 7))
def test_a_receiver_can_put_us_off_for_a_day(expected: float, attempts: int) -> None:
    wait = next_try(of_status(429, expected), attempts, "a")
    assert wait is not None
    assert wait >= min(expected, MAX_WAIT)
    assert wait <= max(MAX_WAIT, SCHEDULE[attempts - 1] * 1.2)


# ---- pauses


def target(seconds: float) -> dict[str, Any]:
    return {**HOOK, "seconds_between_notifications": seconds}


def test_data_pauses_and_presence_and_logs_do_not() -> None:
    for event, seconds in (
        (data("tabular"), 60),
        (conditional(), 60),
        ({"type": "part_online"}, 0),
        ({"type": "part_offline"}, 0),
        ({"type": "conditional_logs_ingested", "log_levels": ["error"]}, 0),
    ):
        first = trigger(event, target(60))
        assert cooldown.interval(first, first.notifications[0]) == timedelta(seconds=seconds)


def test_a_pause() -> None:
    minute = timedelta(minutes=1)
    assert cooldown.due(None, NOW, minute)
    assert not cooldown.due(NOW, NOW, minute)
    assert not cooldown.due(NOW - timedelta(seconds=59), NOW, minute)
    assert cooldown.due(NOW - minute, NOW, minute)
    assert cooldown.due(NOW + timedelta(hours=1), NOW, minute)
    assert cooldown.due(NOW, NOW, timedelta())


@given(st.lists(st.integers(0, 500), max_size=30), st.integers(0, 100))
def test_between_two_notifications_lies_a_pause(moments: list[int], seconds: int) -> None:
    expected, last, messages = timedelta(seconds=seconds), None, []
    for moment in sorted(moments):
        now = NOW + timedelta(seconds=moment)
        if cooldown.due(last, now, expected):
            last = now
            messages.append(moment)
    assert all(later - earlier >= seconds for earlier, later in itertools.pairwise(messages))
    assert bool(messages) is bool(moments)


def test_each_target_has_its_own_clock() -> None:
    first = trigger(data("file"), HOOK, {"type": "email", "value": "a@b.c"}, {**HOOK, "value": "https://example.com/2"})
    two = trigger(data("file"), HOOK, name="u")
    clocks = {cooldown.clock(first, entry) for entry in first.notifications} | {
        cooldown.clock(two, two.notifications[0])
    }
    assert len(clocks) == 4
