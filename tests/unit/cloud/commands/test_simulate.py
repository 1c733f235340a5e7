"""Simulated readings are like those of real sensors, and a simulated fleet is an ordinary one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from cloud.commands import signals
from cloud.commands.signals import DAY, SECOND, SENSORS, Pause
from cloud.commands.simulation import Fleet, SimulationProgress, simulate
from cloud.domain.data.segments import listed
from cloud.server.cli import command
from cloud.server.memory import MemoryCloud
from cloud.values.times import stored
from tests.unit.cloud.captured import DATA

NOW = datetime(2026, 6, 1, tzinfo=UTC)
END = stored(NOW)


@given(st.integers(0, 1000), st.sampled_from([1, 60, 3600]))
def test_captures_are_in_order_and_not_in_a_pause(seed: int, interval: int) -> None:
    begin = END - 2 * DAY
    paused = [Pause(begin + DAY // 4, begin + DAY // 3, False), Pause(begin + DAY, begin + DAY + 180 * SECOND, True)]
    times = list(signals.moments(Random(seed), begin, END, interval * SECOND, paused))
    assert all(earlier < later for earlier, later in pairwise(times))
    assert all(begin <= moment < END for moment in times)
    assert not [moment for moment in times for pause in paused if pause.begin <= moment < pause.end]
    expected = (2 * DAY - sum(pause.end - pause.begin for pause in paused)) / (interval * SECOND)
    assert abs(len(times) - expected) < 0.02 * expected + 2 + 2 * signals.BURST


def test_a_burst_has_a_reading_each_second() -> None:
    times = list(signals.moments(Random(1), END - 200 * DAY, END, 3600 * SECOND, []))
    close = sum(later - earlier == SECOND for earlier, later in pairwise(times))
    assert close >= 5 * (signals.BURST - 1)


@pytest.mark.parametrize("quantity", [quantity for _, quantities in SENSORS for quantity in quantities])
def test_values_are_whole_steps_near_the_mean(quantity: signals.Quantity) -> None:
    times = list(range(END - 10 * DAY, END, 600 * SECOND))
    values = signals.values(Random(1), quantity, times)
    assert all(abs(value / quantity.step - round(value / quantity.step)) < 1e-6 for value in values)
    assert all(abs(value - quantity.mean) <= 2 * quantity.swing for value in values)
    assert len(set(values)) > 3
    assert len({repr(value) for value in values}) == len(set(values))
    assert max(len(repr(value)) for value in values) <= 8  # quantized, as real values are


def test_pauses_are_of_both_kinds_and_the_same_for_a_seed() -> None:
    pauses = signals.pauses(Random(1), END - 365 * DAY, END)
    assert {pause.restart for pause in pauses} == {True, False}
    assert pauses == signals.pauses(Random(1), END - 365 * DAY, END) != signals.pauses(Random(2), END - 365 * DAY, END)


def test_sensors_have_different_names() -> None:
    assert [signals.sensor_name(number) for number in range(5)] == ["climate", "power", "drive", "tank", "climate-2"]


@pytest.fixture
async def fleet(cloud: MemoryCloud) -> tuple[MemoryCloud, SimulationProgress]:
    """Add a fleet of three machines with 60 days of data to a cloud, and return it as its owner."""
    pytest.importorskip("pyarrow", reason="segments need the extra `data`")
    reports = list[SimulationProgress]()
    owner = await simulate(
        cloud.cloud.store, cloud.cloud.blobs, Fleet(3, 60, 2, 3600, 5, 1), "Simulated", NOW, reports.append
    )
    assert len(reports) == 3
    return MemoryCloud(cloud.cloud, owner), reports[-1]


async def test_a_simulated_fleet_answers_like_any_other(fleet: tuple[MemoryCloud, SimulationProgress]) -> None:
    cloud, progress = fleet
    machines = [
        machine
        for location in await cloud.app("list_locations", organization_id=cloud.first.organization)
        for machine in await cloud.app("list_robots", location_id=location["id"])
    ]
    assert sorted(machine["name"] for machine in machines) == ["sim-0001", "sim-0002", "sim-0003"]
    count = await cloud.client().call(DATA, "", "tabular_data_by_filter", data_request={}, count_only=True)
    assert count["count"] == progress.readings > 3 * 2 * 24 * 50
    rows = await cloud.cloud.store.read(lambda sql: sql.rows("SELECT requested FROM readings"))
    assert rows
    assert min(row["requested"] for row in rows) >= stored(NOW - timedelta(days=1))
    figures = await cloud.cloud.store.read(listed.figures)
    assert (figures.readings, figures.segments) == (progress.readings - len(rows), progress.segments)
    request: dict[str, Any] = {"filter": {"robot_name": "sim-0002", "component_name": "power"}, "limit": 500}
    seen, last = list[tuple[datetime, float]](), ""
    while True:
        page = await cloud.client().call(DATA, "", "tabular_data_by_filter", data_request={**request, "last": last})
        seen += [(row["time_requested"], row["data"]["readings"]["voltage"]) for row in page["data"]]
        if not (last := page["last"]):
            break
    assert [moment for moment, _ in seen] == sorted({moment for moment, _ in seen})
    assert seen[-1][0] - seen[0][0] > timedelta(days=58)
    assert all(11 < voltage < 14 for _, voltage in seen)


async def test_log_lines_are_those_that_a_cloud_keeps(fleet: tuple[MemoryCloud, SimulationProgress]) -> None:
    cloud, progress = fleet
    rows = await cloud.cloud.store.read(lambda sql: sql.rows("SELECT logged FROM log_entries"))
    assert len(rows) == progress.lines >= 3 * 5 * 29
    assert min(row["logged"] for row in rows) >= stored(NOW - timedelta(days=30))


def test_the_command_fills_an_empty_folder_only(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="segments need the extra `data`")
    words = ["--data", str(tmp_path / "plan"), "simulate", "--machines", "2", "--days", "2", "--lines", "1"]
    done = CliRunner().invoke(command, words)
    assert done.exit_code == 0, done.output
    assert "readings of 2 machines" in done.output
    assert "Parquet files" in done.output
    again = CliRunner().invoke(command, words)
    assert again.exit_code == 1
    assert "already has an organization" in again.output
    assert "use a new folder" in again.output
