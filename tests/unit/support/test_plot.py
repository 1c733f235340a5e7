"""Plots: round axes, one panel per unit, valid XML whatever the names."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.channels import PlottedQuantity
from support.plot import COLOURS, PANEL, Panel, axis, panels_of, render_plot

SVG = "{http://www.w3.org/2000/svg}"


def paths(text: str) -> list[ElementTree.Element]:
    return [element for element in ElementTree.fromstring(text).iter(f"{SVG}path") if element.get("stroke-width")]


def texts(text: str) -> list[str]:
    return [element.text or "" for element in ElementTree.fromstring(text).iter(f"{SVG}text")]


@pytest.mark.parametrize(
    ("low", "high", "labels"),
    [
        (0, 1, ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
        (19.9, 37.2, ["15", "20", "25", "30", "35", "40"]),
        (-0.0021, 0.0038, ["-0.004", "-0.002", "0.000", "0.002", "0.004"]),
        (5, 5, ["4.4", "4.6", "4.8", "5.0", "5.2", "5.4", "5.6"]),
        (0, 0, ["-1.0", "-0.5", "0.0", "0.5", "1.0"]),
    ],
)
def test_marks_are_round_and_have_the_decimals_they_need(low: float, high: float, labels: list[str]) -> None:
    created = axis(low, high, 100, 5)
    assert [created.label(mark) for mark in created.marks] == labels


@given(st.floats(-1e9, 1e9), st.floats(0, 1e9), st.integers(2, 12))
def test_an_axis_covers_its_values_with_few_marks(low: float, span: float, marks: int) -> None:
    high = low + span
    created = axis(low, high, 300, marks)
    slack = 1e-6 * max(1.0, abs(low), abs(high))
    assert created.low <= low + slack
    assert created.high >= high - slack
    assert 2 <= len(created.marks) <= 2 * marks + 3
    assert -1 <= created.at(low) <= created.at(high) <= 301


def test_a_line_goes_through_its_points() -> None:
    text = render_plot("t", [Panel("x", [PlottedQuantity("x", "V", False, [(0, 0), (5, 1), (10, 0.5)])])])
    [line, legend] = paths(text)
    assert re.findall(r"[ML][\d.]+ ([\d.]+)", line.get("d") or "") == [f"{PANEL:.1f}", "0.0", f"{PANEL / 2:.1f}"]
    assert line.get("stroke") == legend.get("stroke") == COLOURS[0]
    assert {"V", "time / s", "x (3 values, last 0.5 V)", "t"} <= set(texts(text))


def test_steps_keep_their_level_until_the_end_and_gaps_interrupt() -> None:
    steps = PlottedQuantity("s", "", True, [(0, 0), (2, 1)])
    gap = PlottedQuantity("g", "", False, [(0, 0), (1, 1), (2, math.nan), (8, 1), (10, 0)])
    text = render_plot("t", [Panel("x", [steps, gap])])
    step_path, gap_path = (path.get("d") or "" for path in paths(text)[:2])
    assert "L" not in step_path
    assert step_path.endswith("V0.0")  # still high at the end
    width = float(re.findall(r"H([\d.]+)", step_path)[-1])
    assert width == pytest.approx(float(re.findall(r"L([\d.]+)", gap_path)[-1]), abs=0.2)
    assert gap_path.count("M") == 2


def test_many_points_are_thinned_but_their_extremes_stay() -> None:
    points = [(i / 1000, math.sin(i)) for i in range(100_000)]
    points[50_000] = (50.0, 7.0)
    text = render_plot("t", [Panel("x", [PlottedQuantity("x", "", False, points)])])
    assert len(text) < 200_000
    assert axis(-1, 7, PANEL, 5).high == 8
    assert f" {PANEL - axis(-1, 7, PANEL, 5).at(7):.1f}" in (paths(text)[0].get("d") or "")


def test_channels_of_one_unit_share_axes() -> None:
    created = [
        PlottedQuantity("plant temperature_c", "°C", False, [(0, 1)]),
        PlottedQuantity("air temperature_c", "°C", False, [(0, 1)]),
        PlottedQuantity("chip line 4", "", True, [(0, 1)]),
        PlottedQuantity("chip line 5", "", True, [(0, 1)]),
        PlottedQuantity("motor position", "", False, [(0, 1)]),
        PlottedQuantity("nothing", "", False, []),
        PlottedQuantity("never known", "", False, [(0, math.nan)]),
    ]
    assert [(panel.title, len(panel.channels)) for panel in panels_of(created)] == [
        ("°C", 2),
        ("chip", 2),
        ("motor", 1),
    ]


def test_an_empty_recording_is_reported() -> None:
    assert "nothing was recorded" in texts(render_plot("t", []))


@given(st.text(max_size=20), st.text(max_size=20), st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=5))
def test_any_name_gives_valid_xml(name: str, unit: str, values: list[float]) -> None:
    points = [(float(i), value) for i, value in enumerate(values)]
    ElementTree.fromstring(render_plot(name, [Panel(name, [PlottedQuantity(name, unit, False, points)])]))
