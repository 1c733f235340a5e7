"""The course of a machine's statistics: buckets, rates, gaps, clocks that are set."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Any

import pytest

from engine.metrics.history import FIELDS, LEVELS, MAX_POINTS, History
from engine.metrics.system import measure_host
from rpc.pages.plotting import STATISTICS

START = 1_699_999_200_000  # milliseconds, a full hour
HOUR = 3_600_000


def test_plots_offer_what_is_kept() -> None:
    assert max(step * count for step, count in LEVELS) == STATISTICS / timedelta(milliseconds=1)


def values(second: int, **changes: float) -> dict[str, float]:
    """Return a sample of a computer that is busy for a quarter of the time and receives 1000 bytes a second."""
    usual = {
        "host.BusySecs": 0.5 * second,
        "host.IdleSecs": 1.5 * second,
        "host.MemoryUsedPct": 40.0,
        "net.eth0.RxBytes": 1000.0 * second,
        "net.wlan0.RxBytes": 0.0,
        "net.lo.RxBytes": 1e9 * second,
        "proc.machine-server.RssMB": 48.0,
    }
    return {**usual, **{name.replace("_", "."): value for name, value in changes.items()}}


def fields(answer: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {each["name"]: each for series in answer["series"] for each in series["fields"]}


async def test_rates_and_levels() -> None:
    history = History()
    for second in range(20):
        history.add(START + 1000 * second, values(second))
    answer = await history.series(START, START + 20_000, 100)
    assert answer["step"] == 5000
    assert answer["times"] == [START, START + 5000, START + 10_000, START + 15_000]
    by_name = fields(answer)
    assert set(by_name) == {"processor_used_pct", "memory_used_pct", "network_received_bps", "server_memory_mb"}
    assert by_name["processor_used_pct"]["mean"] == pytest.approx([25] * 4)
    assert by_name["processor_used_pct"]["count"] == [4, 5, 5, 5]  # the first sample has no rate
    assert by_name["network_received_bps"]["max"] == pytest.approx([8000] * 4)
    assert by_name["server_memory_mb"]["last"] == {"time": START + 15_000, "value": pytest.approx(48 * 1.048576)}


async def test_least_and_greatest_survive_joining_and_gaps_stay_gaps() -> None:
    history = History()
    for second in [*range(60), *range(600, 660)]:
        history.add(START + 1000 * second, values(second, host_MemoryUsedPct=float(second % 60)))
    answer = await history.series(START, START + 660_000, 11)
    memory = fields(answer)["memory_used_pct"]
    assert answer["step"] == 60_000
    assert memory["min"] == [0, *[None] * 9, 0]
    assert memory["max"] == [59, *[None] * 9, 59]
    assert memory["mean"][0] == pytest.approx(29.5)
    assert sum(memory["count"]) == 120
    received = fields(answer)["network_received_bps"]
    assert received["max"][-1] == pytest.approx(8000)  # also after ten minutes without a sample


async def test_a_day_is_kept_in_minutes_and_memory_is_bounded() -> None:
    history = History()
    for minute in range(2 * 1440):
        history.add(START + 60_000 * minute, values(60 * minute))
    hour = await history.series(START + 47 * HOUR, START + 48 * HOUR, 2000)
    assert hour["step"] == 5000
    day = await history.series(START + 24 * HOUR, START + 48 * HOUR, 2000)
    assert day["step"] == 120_000  # at most MAX_POINTS
    assert sum(fields(day)["memory_used_pct"]["count"]) == 1440
    both = await history.series(START, START + 48 * HOUR, 50)
    assert both["step"] == HOUR
    assert sum(fields(both)["memory_used_pct"]["count"]) == 2880
    assert [len(level.buckets) for level in history._levels] == [720, 1440, 288]
    assert all(len(level.buckets) <= keep for level, (_, keep) in zip(history._levels, LEVELS, strict=True))


async def test_a_clock_that_is_set_and_counters_that_are_reset() -> None:
    history = History()
    history.add(START, values(100))
    history.add(START + 1000, values(101))
    history.add(START - HOUR, values(102))  # set back by an hour
    history.add(START - HOUR + 1000, values(103))
    history.add(START - HOUR + 2000, values(0))  # a driver was loaded again
    answer = await history.series(START - 2 * HOUR, START + HOUR, 100)
    assert sum(fields(answer)["memory_used_pct"]["count"]) == 3
    assert all(value is None or value >= 0 for value in fields(answer)["network_received_bps"]["min"])


async def test_a_clock_that_is_set_back_by_seconds_costs_seconds() -> None:
    history = History()
    for second in range(0, 7200, 10):
        history.add(START + 1000 * second, values(second))
    history.add(START + 1000 * (7190 - 7), values(7191))
    for points in (100, 720):
        whole = await history.series(START, START + 2 * HOUR, points)
        assert 718 <= sum(fields(whole)["memory_used_pct"]["count"]) <= 721
        assert sum(fields(whole)["network_received_bps"]["count"]) < 721


async def test_nothing_yet() -> None:
    answer = await History().series(START, START + HOUR, 2000)
    assert answer["series"] == []
    assert len(answer["times"]) <= MAX_POINTS


async def test_odd_requests_cost_little() -> None:
    history = History()
    history.add(START, values(0))
    history.add(START + 1000, values(1))
    for start, end, points in [(0, 2**53, 10**9), (START, START, 2), (START + 5, START - 5, 0), (0, 2**53, 1)]:
        assert len((await history.series(start, end, points))["times"]) <= MAX_POINTS + 1


def test_this_computer() -> None:
    measured: dict[str, float] = {}
    measure_host(measured)
    assert measured["host.BusySecs"] > 0
    assert 0 < measured["host.MemoryUsedPct"] < 100
    assert 0 <= measured["host.DiskUsedPct"] <= 100
    assert not any(math.isnan(value) for value in measured.values())
    assert len(set(FIELDS)) == len(FIELDS)
