"""The table of the quadrature decoder against a decoder that is nothing but the definition."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from hal.control.quadrature import Quadrature, ticks_between

TRACKS = ((False, False), (True, False), (True, True), (False, True))  # turning forward, A leads


def state(position: int) -> tuple[bool, bool]:
    return TRACKS[position % 4]


def edges(path: list[int]) -> list[tuple[int, bool]]:
    """What a disc does to its tracks on the way from position to position, in single ticks."""
    found = []
    for before, after in itertools.pairwise(path):
        assert abs(after - before) == 1
        one, two = state(before), state(after)
        track = 0 if one[0] != two[0] else 1
        found.append((track, two[track]))
    return found


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
    told = sum(decoder.edge(*edge) for edge in edges(path))
    assert told == decoder.ticks
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
    for edge in heard:
        decoder.edge(*edge)
    gone = len(edges(path)) - len(heard)
    assert decoder.missed <= gone
    last = dict(heard)
    if (last[0], last[1]) == state(path[-1]):
        assert (decoder.ticks - (path[-1] - path[0])) % 4 == 0


def test_an_edge_that_comes_twice_is_counted_as_missed_once() -> None:
    decoder = Quadrature()
    for track, high in ((0, True), (1, True), (0, False), (1, False)):
        decoder.edge(track, high)
    assert decoder.ticks == 4
    assert decoder.edge(1, False) == 0
    assert decoder.missed == 1
    assert decoder.edge(0, True) == 1
