"""A dataset that does not suffice is refused with everything that is missing."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from schema.errors import ErrorKind, MachineError
from training.jobs.submission import (
    MAX_DETECTION,
    BoxLabel,
    ModelType,
    TrainingPicture,
    check_examples,
    checked_labels,
    count_examples,
)

SINGLE, MULTI = ModelType.SINGLE_LABEL_CLASSIFICATION, ModelType.MULTI_LABEL_CLASSIFICATION
DETECTION = ModelType.OBJECT_DETECTION


def labelled(count: int, *labels: str) -> list[TrainingPicture]:
    return [TrainingPicture(f"{'+'.join(labels)}{number}", frozenset(labels)) for number in range(count)]


def boxed(count: int, box: BoxLabel) -> list[TrainingPicture]:
    return [TrainingPicture(f"b{number}", boxes=(box,)) for number in range(count)]


def suggested(count: int) -> list[TrainingPicture]:
    return [TrainingPicture(f"s{number}", suggested=True) for number in range(count)]


def judged(model_type: ModelType, labels: Sequence[str], pictures: list[TrainingPicture]) -> int:
    return check_examples(model_type, labels, count_examples(model_type, labels, pictures))


GOOD = BoxLabel("a", 0.1, 0.1, 0.9, 1.0)


@pytest.mark.parametrize(
    ("model_type", "labels", "pictures", "used"),
    [
        (SINGLE, ("a", "b"), labelled(10, "a") + labelled(10, "b"), 20),
        (SINGLE, ("a", "b"), labelled(10, "a") + labelled(10, "b") + labelled(5), 20),  # 80 % are labelled
        (SINGLE, ("a", "b"), labelled(10, "a") + labelled(10, "b") + labelled(9, "other"), 20),
        (SINGLE, ("a", "b"), labelled(10, "a", "other") + labelled(10, "b"), 20),
        (MULTI, ("a", "b"), labelled(10, "a", "b"), 10),
        (DETECTION, ("a",), boxed(15, GOOD), 15),
    ],
)
def test_a_sufficient_dataset(
    model_type: ModelType, labels: tuple[str, ...], pictures: list[TrainingPicture], used: int
) -> None:
    assert judged(model_type, labels, pictures) == used


@pytest.mark.parametrize(
    ("model_type", "labels", "pictures", "missing"),
    [
        (SINGLE, ("a", "b"), [], ["0 pictures, 1 more needed", "'a' has 0 pictures, 10 more needed", "'b'"]),
        (SINGLE, ("a", "b"), labelled(10, "a") + labelled(7, "b"), ["'b' has 7 pictures, 3 more needed"]),
        (SINGLE, ("a", "b"), labelled(10, "a") + labelled(10, "b") + labelled(6), ["20 of 26", "1 more needed"]),
        (
            SINGLE,
            ("a", "b"),
            labelled(10, "a") + labelled(10, "b") + suggested(6),
            ["1 more needed", "6 of the others have"],
        ),
        (SINGLE, ("a", "b"), labelled(10, "a", "b"), ["10 pictures have more than one", "multi-label"]),
        (SINGLE, ("a", "b"), labelled(10, "a") + labelled(10, "b") + labelled(1, "a", "b"), ["1 picture has"]),
        (
            SINGLE,
            ("a", "B"),
            labelled(10, "a") + labelled(1, "b") + labelled(2, "c"),
            ["'B' has 0", "the labels of its pictures that were not chosen are 'c', 'b'"],
        ),
        (DETECTION, ("a",), boxed(14, GOOD), ["14 pictures, 1 more needed"]),
        (DETECTION, ("a",), boxed(1, GOOD), ["it has 1 picture, 14 more needed", "'a' has 1 picture, 9 more needed"]),
        (DETECTION, ("a",), boxed(15, GOOD) + labelled(5, "a"), ["15 of 20", "1 more needed"]),
        (DETECTION, ("a",), boxed(15, GOOD) + boxed(1, BoxLabel("a", 0.5, 0, 0.5, 1)), ["1 picture has boxes outside"]),
        (
            DETECTION,
            ("a",),
            boxed(15, GOOD) + boxed(2, BoxLabel("a", 0, 0, float("nan"), 1)),
            ["2 pictures have boxes"],
        ),
        (DETECTION, ("a",), boxed(15, GOOD) + boxed(2, BoxLabel("a", 0, 0, 1.01, 1)), ["2 pictures have boxes"]),
    ],
)
def test_a_refusal_says_what_is_missing(
    model_type: ModelType, labels: tuple[str, ...], pictures: list[TrainingPicture], missing: list[str]
) -> None:
    with pytest.raises(MachineError) as caught:
        judged(model_type, labels, pictures)
    assert caught.value.kind is ErrorKind.PRECONDITION
    assert [part for part in missing if part not in caught.value.message] == []


def test_a_refusal_stays_short() -> None:
    others = [f"{number} other".ljust(200, "x") for number in range(1000)]
    with pytest.raises(MachineError) as caught:
        judged(SINGLE, [str(number) * 60 for number in range(1000)], labelled(10, "a", *others))
    assert len(caught.value.message) < 4000
    assert "980 more labels" in caught.value.message


def test_other_labels_are_named_only_if_a_chosen_one_is_unknown() -> None:
    with pytest.raises(MachineError) as caught:
        judged(SINGLE, ("a", "b"), labelled(10, "a") + labelled(9, "b") + labelled(2, "c"))
    assert "'c'" not in caught.value.message


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["a", ""], "''"),
        (["a", "b\nc"], "valid label"),
        (["a", "b", "a"], "more than once"),
        (["a"], "needs 2 or more labels"),
    ],
)
def test_labels_that_no_model_can_have(labels: list[str], message: str) -> None:
    with pytest.raises(MachineError, match=message) as caught:
        checked_labels(labels, SINGLE)
    assert caught.value.kind is ErrorKind.INVALID


def test_a_detector_needs_one_label() -> None:
    assert checked_labels(["a"], DETECTION) == ("a",)


def test_more_pictures_with_boxes_than_fit_into_memory_are_refused() -> None:
    box = BoxLabel("a", 0.1, 0.1, 0.5, 0.5)
    pictures = [TrainingPicture(str(number), boxes=(box,)) for number in range(MAX_DETECTION + 2)]
    with pytest.raises(MachineError, match="8002 pictures have boxes of these labels, 2 too many"):
        judged(DETECTION, ("a",), pictures)
    assert judged(DETECTION, ("a",), pictures[2:]) == MAX_DETECTION
