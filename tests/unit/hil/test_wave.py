"""The rules for waves of an emulated processor."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.hil.rig.wave import RISES, is_wave, wave_of

PERIOD = 0.02
WIDTH = 0.0015


def history(lateness: Iterable[float], width: float = WIDTH, period: float = PERIOD) -> list[dict[str, object]]:
    """Return the events of software whose edges are late by these times; a late edge delays the next period."""
    now, events = 100.0, []
    for index, late in enumerate(lateness):
        now += late + (period - width if index % 2 == 0 else width)
        events.append({"what": "set", "high": index % 2 == 0, "time": now})
    return events


@given(st.lists(st.floats(0, 0.03), min_size=2 * RISES, max_size=2 * RISES), st.data())
def test_a_wave_that_is_late_most_of_the_time_is_that_wave(late: list[float], data: st.DataObject) -> None:
    for index in data.draw(st.lists(st.integers(0, RISES - 1), min_size=RISES // 4, max_size=RISES, unique=True)):
        late[2 * index] = late[2 * index + 1] = 0.0002
    result = wave_of(history(late))
    assert result is not None
    assert result.median_width >= WIDTH - 1e-9
    assert result.width <= WIDTH + 0.0002 + 1e-9


def test_other_waves_are_not_recognized() -> None:
    right = wave_of(history([0.0003] * 60))
    assert right is not None
    assert is_wave(right, WIDTH, PERIOD, late=0.001)
    for width, period in ((WIDTH - 0.0012, PERIOD), (WIDTH + 0.001, PERIOD), (WIDTH, PERIOD * 1.1), (WIDTH, 0.018)):
        assert not is_wave(right, width, period, late=0.001), (width, period)
    shorter = wave_of(history([0.0] * 60, width=WIDTH - 0.0002))
    assert shorter is not None
    assert not is_wave(shorter, WIDTH, PERIOD, late=0.001), "pulses are cut short"


def test_a_level_that_is_written_twice_is_one() -> None:
    events = history([0.0] * 20)
    doubled = [event for event in events for _ in range(2)]
    result, once = wave_of(doubled), wave_of(events)
    assert result is not None
    assert once is not None
    assert astuple(result) == pytest.approx(astuple(once))


@pytest.mark.parametrize("count", [0, 1, 4])
def test_few_edges_are_not_a_wave(count: int) -> None:
    assert wave_of(history([0.0] * count)) is None
