"""Recorded channels and their file formats."""

from __future__ import annotations

import csv
import io
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.components.motion.motor import Powered
from support import channels
from support.channels import Recorder, to_csv, unit_of


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("temperature_c", "°C"),
        ("air temperature_c", "°C"),
        ("speed_RPM", "rpm"),
        ("duty_cycle_pct", "%"),
        ("heating", ""),
        ("c", ""),
        ("thing_x", ""),
    ],
)
def test_the_unit_is_the_end_of_the_name(name: str, unit: str) -> None:
    assert unit_of(name) == unit


def test_times_are_seconds_since_the_beginning(clock: Clock) -> None:
    recorder = Recorder(clock)
    recorder.add("v_v", 3)
    clock.now += 2.5
    recorder.add("v_v", 4.5)
    channel = recorder.channels["v_v"]
    assert channel.points == [(0.0, 3.0), (2.5, 4.5)]
    assert (channel.unit, channel.steps, recorder.elapsed()) == ("V", False, 2.5)


def test_numbers_in_results_of_calls_are_recorded(clock: Clock) -> None:
    recorder = Recorder(clock)
    recorder.add_all("air", {"temperature_c": 20.5, "text": "x", "nothing": None, "inner": {"a_v": 1}})
    recorder.add_all("motor is_powered", Powered(True, 0.5))
    recorder.add_all("position", 7)
    recorder.add_all("words", "none")
    assert {name: channel.points[0][1] for name, channel in recorder.channels.items()} == {
        "air temperature_c": 20.5,
        "air inner a_v": 1,
        "motor is_powered is_on": 1,
        "motor is_powered power_pct": 0.5,
        "position": 7,
    }
    assert recorder.channels["motor is_powered is_on"].steps


def test_a_gap_is_recorded_once_and_only_for_existing_channels(clock: Clock) -> None:
    recorder = Recorder(clock)
    recorder.add("air temperature_c", 20)
    recorder.add("airing", 1)
    recorder.gap("air")
    recorder.gap("air")
    recorder.gap("other")
    assert [value for _, value in recorder.channels["airing"].points] == [1]
    values = [value for _, value in recorder.channels["air temperature_c"].points]
    assert values[0] == 20
    assert math.isnan(values[1])
    assert len(values) == 2
    assert list(recorder.channels) == ["air temperature_c", "airing"]


def test_a_channel_has_a_limit(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channels, "LIMIT", 2)
    recorder = Recorder(clock)
    for value in range(5):
        recorder.add("x", value)
    channel = recorder.channels["x"]
    assert (channel.points, channel.dropped) == ([(0, 0), (0, 1)], 3)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a", 'b "q", x', "c_v"]),
            st.floats(allow_nan=True, allow_infinity=True, width=32),
            st.floats(0, 1e3),
        ),
        max_size=20,
    )
)
def test_the_table_has_every_point_in_order_of_time(points: list[tuple[str, float, float]]) -> None:
    clock = Clock()
    recorder = Recorder(clock)
    for name, value, pause in points:
        clock.now += pause
        recorder.add(name, value)
    rows = list(csv.DictReader(io.StringIO(to_csv(recorder.channels.values()))))
    assert len(rows) == len(points)
    times = [float(row["time_s"]) for row in rows]
    assert times == sorted(times)
    for name in {name for name, _, _ in points}:
        texts = [row["value"] for row in rows if row["channel"] == name]
        expected = [value for other, value, _ in points if other == name]
        for text, value in zip(texts, expected, strict=True):
            assert float(text) == pytest.approx(value, rel=1e-8) if math.isfinite(value) else text == ""
