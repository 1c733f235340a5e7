"""Boxes: overlap, duplicates, and how they are reported."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.engine.services.vision import Classification
from runtime.models.vision.results import Box, ConfidenceFilter, detection, most_likely, overlap, without_duplicates

sides = st.floats(-0.5, 1.5)
boxes = st.builds(
    lambda x, y, w, h, score, category: Box(x, y, x + w, y + h, score, category),
    sides,
    sides,
    st.floats(0.01, 1),
    st.floats(0.01, 1),
    st.floats(0, 1),
    st.integers(0, 2),
)


@given(boxes, boxes)
def test_overlap_is_symmetric_and_a_share(a: Box, b: Box) -> None:
    assert overlap(a, b) == pytest.approx(overlap(b, a))
    assert 0 <= overlap(a, b) <= 1 + 1e-9
    assert overlap(a, a) == pytest.approx(1)


def test_overlap_by_hand() -> None:
    assert overlap(Box(0, 0, 1, 1, 1, 0), Box(0.5, 0, 1.5, 1, 1, 0)) == pytest.approx(1 / 3)
    assert overlap(Box(0, 0, 1, 1, 1, 0), Box(1, 0, 2, 1, 1, 0)) == 0


@given(st.lists(boxes, max_size=20), st.floats(0, 1))
def test_what_is_left_out_has_a_better_one_of_its_class_over_it(found: list[Box], limit: float) -> None:
    kept = without_duplicates(found, limit)
    assert [one.score for one in kept] == sorted((one.score for one in kept), reverse=True)
    for one in found:
        over = [other for other in kept if other.category == one.category and overlap(one, other) > limit]
        assert one in kept or any(other.score >= one.score for other in over)
    for index, one in enumerate(kept):
        assert all(one.category != other.category or overlap(one, other) <= limit for other in kept[:index])


def test_a_box_is_cut_at_the_edges() -> None:
    known = detection(Box(-0.5, 0.25, 0.5, 2.0, 0.75, 0), "thing", 200, 100)
    assert known is not None
    assert (known.x_min, known.y_min, known.x_max, known.y_max) == (0, 25, 100, 100)
    assert (known.x_min_normalized, known.y_min_normalized) == (0.0, 0.25)
    assert (known.x_max_normalized, known.y_max_normalized) == (0.5, 1.0)
    assert (known.class_name, known.confidence) == ("thing", 0.75)
    assert detection(Box(1.1, 0.1, 1.5, 0.5, 1, 0), "outside", 200, 100) is None
    assert detection(Box(0.5, 0.5, 0.4, 0.6, 1, 0), "inside out", 200, 100) is None


def test_the_sieve() -> None:
    assert ConfidenceFilter(0.5).passes("any", 0.5)
    assert not ConfidenceFilter(0.5).passes("any", 0.49)
    named = ConfidenceFilter(0.9, {"dog": 0.3, "cat": 0.6})
    assert named.passes("Dog", 0.3)
    assert not named.passes("cat", 0.59)
    assert not named.passes("bird", 1.0)
    assert (named.lowest, ConfidenceFilter(0.2).lowest) == (0.3, 0.2)


def test_the_likeliest_come_first() -> None:
    given_labels = [Classification("a", 0.1), Classification("b", 0.8), Classification("c", 0.1)]
    assert [one.class_name for one in most_likely(given_labels, 0)] == ["b", "a", "c"]
    assert [one.class_name for one in most_likely(given_labels, 2)] == ["b", "a"]
    assert [one.class_name for one in most_likely(given_labels, 9)] == ["b", "a", "c"]
