"""Merging what two people changed about one picture: nothing is overwritten, and conflicts are reported."""

from __future__ import annotations

import random
import uuid

import pytest

from cloud.domain.data.labels import Edges
from cloud.domain.labelling.picture_labels import Annotations, Box, checked_id, merged
from schema.errors import MachineError

LEFT, RIGHT = Edges(0.1, 0.1, 0.4, 0.4), Edges(0.5, 0.5, 0.9, 0.9)


def said(*tags: str, **boxes: Box) -> Annotations:
    return Annotations(frozenset(tags), boxes)


BASE = said("day", "ok", a=Box("cat", LEFT), b=Box("dog", RIGHT))


@pytest.mark.parametrize(
    ("mine", "theirs", "both"),
    [
        (said(), said(), said()),
        (BASE, said("bad"), said("bad")),
        (said("bad"), BASE, said("bad")),
        (said("day", "bad"), said("day", "ok", "new"), said("day", "bad", "new")),
        (said("day", a=Box("cat", RIGHT)), BASE, said("day", a=Box("cat", RIGHT))),
        (said(a=Box("cow", LEFT), b=Box("dog", RIGHT)), said(a=Box("cat", LEFT)), said(a=Box("cow", LEFT))),
        (
            said(a=BASE.boxes["a"], b=BASE.boxes["b"], c=Box("x", LEFT)),
            said(d=Box("y", LEFT)),
            said(c=Box("x", LEFT), d=Box("y", LEFT)),
        ),
    ],
)  # fmt: skip
def test_changes_of_different_things_are_combined(mine: Annotations, theirs: Annotations, both: Annotations) -> None:
    result = merged(BASE, mine, theirs)
    assert result.conflicts == ()
    assert result.annotations.same(both)
    assert merged(BASE, theirs, mine).annotations.same(both)


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        (said(a=Box("cow", LEFT)), said(a=Box("pig", LEFT))),
        (said(), said(a=Box("pig", LEFT))),
        (said(a=Box("pig", LEFT)), said()),
        (said(a=Box("cat", RIGHT)), said(a=Box("pig", LEFT))),
    ],
)
def test_different_changes_of_one_box_are_a_conflict(mine: Annotations, theirs: Annotations) -> None:
    result = merged(said(a=Box("cat", LEFT)), mine, theirs)
    assert result.conflicts == ("a",)
    assert result.annotations.same(theirs)


def test_the_same_change_by_both_causes_no_conflict() -> None:
    nearly = Edges(0.1000000001, 0.1, 0.4, 0.4)
    result = merged(BASE, said("ok", a=Box("cow", LEFT)), said("day", a=Box("cow", nearly)))
    assert result.conflicts == ()
    assert result.annotations.same(said(a=Box("cow", LEFT)))


def test_a_save_that_is_repeated_changes_nothing_more() -> None:
    chance = random.Random(5)

    def state() -> Annotations:
        boxes = {
            name: Box(chance.choice("xy"), chance.choice([LEFT, RIGHT])) for name in "abcd" if chance.random() < 0.6
        }
        return Annotations(frozenset(tag for tag in "pqrs" if chance.random() < 0.5), boxes)

    combined = 0
    for _ in range(500):
        base, mine, theirs = state(), state(), state()
        first = merged(base, mine, theirs)
        if first.conflicts:
            continue
        combined += 1
        again = merged(base, mine, first.annotations)
        assert not again.conflicts
        assert again.annotations.same(first.annotations)
        assert merged(base, base, theirs).annotations.same(theirs)
    assert combined > 20


def test_ids_of_new_boxes_are_uuids() -> None:
    subject = str(uuid.UUID(int=7))
    assert checked_id(subject) == subject
    for text in ("", "x", subject.upper() + "A", f"{subject}\n", "../" + subject):
        with pytest.raises(MachineError, match="is not a valid id"):
            checked_id(text)
