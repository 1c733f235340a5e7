"""Signals: counting edges and finding the next edge agree with each other and with the level."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hal.sim.gpio.signal import HIGH, LOW, Constant, Signal, Square
from hal.sim.mechanics.phase import Phase
from hal.sim.mechanics.shaft import Shaft


def walk(signal: Signal, start: float, end: float) -> list[tuple[float, bool]]:
    """Return every edge within (start, end], found one at a time."""
    edges = []
    at = start
    while (edge := signal.next_edge(at)) is not None and edge[0] <= end:
        edges.append(edge)
        at = edge[0]
    return edges


@given(st.floats(0.5, 200), st.floats(0.01, 0.99), st.floats(0, 10), st.floats(0, 10), st.floats(0.0, 2.0))
def test_a_wave_counts_the_edges_that_one_would_meet(
    frequency: float, duty: float, since: float, wait: float, span: float
) -> None:
    wave = Square(since, frequency, duty)
    start, end = since + wait, since + wait + span
    edges = walk(wave, start, end)
    rises = sum(high for _, high in edges)
    assert wave.edges(start, end) == (rises, len(edges) - rises)
    assert all(wave.level(when) == high for when, high in edges)
    assert all(high != after for (_, high), (_, after) in itertools.pairwise(edges))


@given(st.floats(0.5, 1000), st.floats(0.01, 0.99), st.lists(st.floats(0.001, 5), min_size=2, max_size=8))
def test_counting_in_parts_is_counting_at_once(frequency: float, duty: float, parts: list[float]) -> None:
    wave = Square(0.0, frequency, duty)
    times = [sum(parts[:n]) for n in range(len(parts) + 1)]
    rises = sum(wave.edges(a, b)[0] for a, b in itertools.pairwise(times))
    assert rises == wave.edges(times[0], times[-1])[0]


def test_a_wave_starts_high_and_has_its_duty_as_mean() -> None:
    wave = Square(1.0, 10.0, 0.25)
    assert wave.level(1.0)
    assert wave.level(1.02)
    assert not wave.level(1.03)
    assert wave.mean(1.03) == 0.25
    assert wave.next_edge(1.0) == (pytest.approx(1.025), False)
    assert wave.next_edge(1.05) == (pytest.approx(1.1), True)
    assert wave.edges(1.0, 2.0) == (10, 10)


def test_a_constant_never_changes() -> None:
    assert LOW.next_edge(0) is None
    assert HIGH.edges(0, 1e9) == (0, 0)
    assert HIGH.level(5)
    assert not LOW.level(5)
    assert Constant(0.3).mean(0) == 0.3


commands = st.lists(st.tuples(st.floats(-1, 1), st.floats(0.05, 1.5)), min_size=1, max_size=5)


@given(commands, st.sampled_from([0, 1]))
def test_a_track_counts_the_edges_that_one_would_meet(drives: list[tuple[float, float]], parity: int) -> None:
    shaft = Shaft(60.0, 0.0)
    track = Phase(shaft, 24, parity)
    now = 0.0
    for power, span in drives:
        shaft.drive(power, now)
        edges = walk(track, now, now + span)
        rises = sum(high for _, high in edges)
        counted = track.edges(now, now + span)
        # Because of rounding, a turning point exactly on a boundary may be counted or not.
        assert abs(counted[0] - rises) <= 1
        assert abs(counted[1] - (len(edges) - rises)) <= 1
        assert all(track.level(when) == high for when, high in edges if abs(shaft.speed(when)) > 0.01)
        now += span


@given(st.floats(0.02, 1), st.sampled_from([4, 40, 2000]), st.sampled_from([0, 1]))
def test_an_edge_is_the_first_moment_at_which_the_level_differs(power: float, ticks: int, parity: int) -> None:
    shaft = Shaft(60.0, 0.0)
    track = Phase(shaft, ticks, parity)
    shaft.drive(power, 0.0)
    at, edges = 0.0, 0
    while edges < 20 and (edge := track.next_edge(at)) is not None:
        when, high = edge
        assert track.level(when) is high
        assert track.level(math.nextafter(when, 0.0)) is not high
        at, edges = when, edges + 1
    assert edges == 20


def test_a_quarter_of_the_ticks_rise_on_each_track() -> None:
    shaft = Shaft(60.0, 0.0)
    shaft.drive(1.0, 0.0)
    shaft.stop_at(10.0, 0.0)
    for parity in (0, 1):
        assert Phase(shaft, 40, parity).edges(0.0, 100.0) == (100, 100)


def test_tracks_are_a_quarter_apart_and_tell_the_direction() -> None:
    shaft = Shaft(60.0, 0.0)
    a, b = Phase(shaft, 40, 1), Phase(shaft, 40, 0)
    shaft.drive(1.0, 0.0)
    first_a, first_b = a.next_edge(0.0), b.next_edge(0.0)
    assert first_a is not None
    assert first_b is not None
    assert first_a[0] < first_b[0]
    assert first_a[1]
    assert first_b[1]
