"""Restart policy: kinds, intensity, back-off."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nursery_graph import Restart
from nursery_graph.restart import History, after_failure, back_off

DRAWS = st.floats(0, 1, exclude_max=True)


@given(st.integers(1, 10_000), DRAWS)
def test_back_off_doubles_up_to_its_limit_and_jitters_by_half(failures: int, draw: float) -> None:
    restart = Restart(first_delay=0.5, max_delay=60)
    ceiling = 0.5 * 2 ** (failures - 1) if failures < 8 else 60
    assert ceiling / 2 <= back_off(restart, failures, draw) <= ceiling


@given(st.lists(st.floats(0, 30), max_size=40), st.integers(0, 5))
def test_gives_up_exactly_when_more_crashes_than_allowed_are_within_the_period(gaps: list[float], most: int) -> None:
    restart = Restart(intensity=most, period=60)
    history, now, times = History(), 0.0, []
    for gap in gaps:
        now += gap
        times.append(now)
        verdict = after_failure(restart, history, now, now, 0.0)
        history = verdict.history
        recent = [at for at in times if now - at < 60]
        assert (verdict.delay is None) == (len(recent) > most)
        assert ("gave up" in verdict.reason) == (len(recent) > most)


@given(st.integers(0, 200))
def test_failures_to_start_never_give_up(failures: int) -> None:
    verdict = after_failure(Restart(intensity=0), History(failures), 100.0, None, 0.0)
    assert verdict.delay is not None
    assert verdict.history == History(failures + 1)


def test_a_long_time_of_health_ends_the_row_of_failures() -> None:
    restart = Restart(period=60, first_delay=1)
    assert after_failure(restart, History(9), 100, 41, 0.0).history.failures == 10
    assert after_failure(restart, History(9), 100, 40, 0.0).history.failures == 1


def test_temporary_is_never_retried() -> None:
    for ready_at in (None, 0.0):
        assert after_failure(Restart("temporary"), History(), 1.0, ready_at, 0.0).delay is None


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ({"kind": "sometimes"}, "sometimes"),
        ({"intensity": -1}, "-1"),
        ({"period": 0}, "period"),
        ({"first_delay": 0}, "first_delay"),
        ({"first_delay": 9, "max_delay": 8}, "max_delay"),
    ],
)
def test_impossible_policies_are_refused(values: dict[str, object], word: str) -> None:
    with pytest.raises(ValueError, match=word):
        Restart(**values)  # type: ignore[arg-type]
