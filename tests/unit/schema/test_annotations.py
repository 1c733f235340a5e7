"""Annotations of pictures are mended, so that none can cost its picture."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schema.data.annotations import MAX_ANNOTATIONS, MAX_LABEL, Annotation, mended

BOX = (0.1, 0.2, 0.5, 0.6)


@pytest.mark.parametrize(
    ("annotation", "result"),
    [
        (Annotation("cat", BOX, 0.5), Annotation("cat", BOX, 0.5)),
        (Annotation("cat", (-0.15, 0.2, 0.5, 1.2)), Annotation("cat", (0.0, 0.2, 0.5, 1.0))),
        (Annotation("cat", BOX, 1.02), Annotation("cat", BOX, 1.0)),
        (Annotation("cat", BOX, -0.1), Annotation("cat", BOX, 0.0)),
        (Annotation("cat", (-math.inf, 0.0, math.inf, 1.0)), Annotation("cat", (0.0, 0.0, 1.0, 1.0))),
        (Annotation(" a\0b "), Annotation("ab")),
        (Annotation("x" * 5000), Annotation("x" * MAX_LABEL)),
        (Annotation("cat", (0.1, 0.2, 0.1, 0.6)), None),  # without a width
        (Annotation("cat", (0.5, 0.2, 0.1, 0.6)), None),
        (Annotation("cat", (1.1, 0.2, 1.5, 0.6)), None),  # outside
        (Annotation("cat", (math.nan, 0.2, 0.5, 0.6)), None),
        (Annotation("cat", BOX, math.nan), None),  # without a confidence, it would count as a person's
        (Annotation(" "), None),
    ],
)
def test_each_kind(annotation: Annotation, result: Annotation | None) -> None:
    changed = mended([annotation])
    assert changed.annotations == (() if result is None else (result,))
    assert (changed.changed, changed.dropped) == (result is not None and result != annotation, result is None)
    assert bool(changed.note) is (result != annotation)


def test_only_as_many_as_can_be_stored() -> None:
    changed = mended(Annotation(f"{number}") for number in range(MAX_ANNOTATIONS + 5))
    assert len(changed.annotations) == MAX_ANNOTATIONS
    assert changed.note == "5 left out"


numbers = st.floats(allow_nan=True, allow_infinity=True)


@given(st.lists(st.builds(Annotation, st.text(), st.none() | st.tuples(*[numbers] * 4), st.none() | numbers)))
def test_every_result_can_be_stored(annotations: list[Annotation]) -> None:
    first = mended(annotations)
    assert mended(first.annotations).annotations == first.annotations
    assert len(first.annotations) + first.dropped == len(annotations)
    for annotation in first.annotations:
        assert 0 < len(annotation.label) <= MAX_LABEL
        if annotation.edges is not None:
            x_min, y_min, x_max, y_max = annotation.edges
            assert 0 <= x_min < x_max <= 1
            assert 0 <= y_min < y_max <= 1
