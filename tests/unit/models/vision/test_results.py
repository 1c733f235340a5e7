"""Boxes: overlap, duplicates, and how they are reported."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.services.vision import Classification
from models.vision.common.results import Box, ConfidenceFilter, detection, most_likely, overlap, without_duplicates

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
def test_suppressed_boxes_overlap_a_better_box_of_their_class(result: list[Box], limit: float) -> None:
    kept = without_duplicates(result, limit)
    assert [element.score for element in kept] == sorted((entry.score for entry in kept), reverse=True)
    for item in result:
        over = [other for other in kept if other.category == item.category and overlap(item, other) > limit]
        assert item in kept or any(other.score >= item.score for other in over)
    for index, item in enumerate(kept):
        assert all(item.category != other.category or overlap(item, other) <= limit for other in kept[:index])


def test_a_box_is_cut_at_the_edges() -> None:
    result = detection(Box(-0.5, 0.25, 0.5, 2.0, 0.75, 0), "thing", 200, 100)
    assert result is not None
    assert (result.x_min, result.y_min, result.x_max, result.y_max) == (0, 25, 100, 100)
    assert (result.x_min_normalized, result.y_min_normalized) == (0.0, 0.25)
    assert (result.x_max_normalized, result.y_max_normalized) == (0.5, 1.0)
    assert (result.class_name, result.confidence) == ("thing", 0.75)
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
    assert [item.class_name for item in most_likely(given_labels, 0)] == ["b", "a", "c"]
    assert [element.class_name for element in most_likely(given_labels, 2)] == ["b", "a"]
    assert [result.class_name for result in most_likely(given_labels, 9)] == ["b", "a", "c"]
