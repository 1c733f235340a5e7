"""The table of the quadrature decoder, compared with a decoder that follows only the definition."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from hal.control.quadrature import WINDOW, Quadrature, ticks_between

TRACKS = ((False, False), (True, False), (True, True), (False, True))  # forward rotation, track A leading


def state(position: int) -> tuple[bool, bool]:
    return TRACKS[position % 4]


def edges(path: list[int]) -> list[tuple[int, bool]]:
    """Return the edges (track, level) that a disc produces along a path of single ticks."""
    results = []
    for before, after in itertools.pairwise(path):
        assert abs(after - before) == 1
        first, two = state(before), state(after)
        track = 0 if first[0] != two[0] else 1
        results.append((track, two[track]))
    return results


def walk(start: int, steps: list[bool]) -> list[int]:
    return list(itertools.accumulate((1 if up else -1 for up in steps), initial=start))


def test_every_pair_of_states() -> None:
    for before, after in itertools.product(range(4), repeat=2):
        way = (after - before) % 4
        assert ticks_between(state(before), state(after)) == {0: 0, 1: 1, 2: None, 3: -1}[way]


@given(st.integers(-9, 9), st.lists(st.booleans(), max_size=200))
def test_the_count_is_the_way_once_both_tracks_have_spoken(start: int, steps: list[bool]) -> None:
    path = walk(start, steps)
    decoder = Quadrature()
    for time, edge in enumerate(edges(path)):
        decoder.edge(*edge, time)
    assert decoder.missed == 0
    if len({track for track, _ in edges(path)}) == 2:
        assert decoder.ticks == path[-1] - path[0]
    else:
        assert decoder.ticks == 0


@given(st.integers(-9, 9), st.lists(st.booleans(), min_size=8, max_size=120), st.sets(st.integers(4, 119), max_size=5))
def test_lost_edges_are_noticed_and_cost_whole_cycles(start: int, steps: list[bool], lost: set[int]) -> None:
    path = walk(start, [True, True, True, True, *steps])
    heard = [edge for index, edge in enumerate(edges(path)) if index not in lost]
    decoder = Quadrature()
    for time, edge in enumerate(heard):
        decoder.edge(*edge, time)
    gone = len(edges(path)) - len(heard)
    assert decoder.missed <= gone
    last = dict(heard)
    if (last[0], last[1]) == state(path[-1]):
        assert (decoder.ticks - (path[-1] - path[0])) % 4 == 0


def test_an_edge_that_comes_twice_is_counted_as_missed_once() -> None:
    decoder = Quadrature()
    for time, (track, high) in enumerate(((0, True), (1, True), (0, False), (1, False))):
        decoder.edge(track, high, time)
    assert decoder.ticks == 4
    decoder.edge(1, False, 4)
    assert (decoder.ticks, decoder.missed) == (4, 1)
    decoder.edge(0, True, 5)
    assert decoder.ticks == 5


@given(
    st.integers(-9, 9),
    st.lists(st.booleans(), min_size=4, max_size=200),
    st.lists(st.integers(0, WINDOW // 2 - 1), min_size=200, max_size=200),
)
def test_edges_reported_track_by_track_are_put_in_order(start: int, steps: list[bool], lateness: list[int]) -> None:
    path = walk(start, [True, True, *steps])
    truth = list(enumerate(edges(path)))
    messages = sorted(truth, key=lambda item: (item[0] + lateness[item[0] % 200], item[0]))
    decoder = Quadrature()
    for time, (track, high) in messages:
        decoder.edge(track, high, time)
    assert (decoder.ticks, decoder.missed) == (path[-1] - path[0], 0)


def test_edges_of_the_same_time_keep_the_order_in_which_they_arrive() -> None:
    decoder = Quadrature()
    for track, high in ((0, True), (1, True), (0, False), (1, False)):
        decoder.edge(track, high, 0)
    assert (decoder.ticks, decoder.missed) == (4, 0)
