"""Rules that a dataset must meet before a model is trained from it. Pure.

The minimums are those that the hosted service documents. A refusal lists everything that is missing, and how much.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from schema import ErrorKind, MachineError

MIN_LABELS: Final = 2  # of a classifier: with one label there is nothing to tell apart
MIN_EXAMPLES: Final = 10  # pictures of each label
MIN_LABELLED: Final = 0.8  # share of the pictures that have a label
MIN_DETECTION: Final = 15  # pictures for object detection
MAX_DETECTION: Final = 8000  # pictures with boxes: the maps of one have 213 kB, and a job has 4 GiB of memory
SHOWN: Final = 20  # entries of a list in a message
_REFUSAL: Final = "the dataset does not suffice: "
_REMEDY: Final = f"label more pictures: {MIN_EXAMPLES} of each label, and {MIN_LABELLED:.0%} of all"


class ModelType(IntEnum):
    """Kind of model, with the numbers of the published API."""

    UNSPECIFIED = 0
    SINGLE_LABEL_CLASSIFICATION = 1
    MULTI_LABEL_CLASSIFICATION = 2
    OBJECT_DETECTION = 3


@dataclass(frozen=True, slots=True)
class BoxLabel:
    """A labelled box, in fractions of the picture's width and height."""

    label: str
    x_min: float
    y_min: float
    x_max: float
    y_max: float

    @property
    def valid(self) -> bool:
        """Whether the box is inside the picture and has an area."""
        edges = (self.x_min, self.x_max), (self.y_min, self.y_max)
        return all(math.isfinite(low) and math.isfinite(high) and 0 <= low < high <= 1 for low, high in edges)


@dataclass(frozen=True, slots=True)
class TrainingPicture:
    """A picture of a dataset with everything that people said about it."""

    id: str
    labels: frozenset[str] = frozenset()  # of the whole picture
    boxes: tuple[BoxLabel, ...] = ()
    suggested: bool = False  # whether a model suggested labels that nobody has confirmed


def checked_labels(labels: Sequence[str], model_type: ModelType) -> tuple[str, ...]:
    """Return the labels to train on; INVALID if they are empty, repeated, not printable or too few."""
    if strange := [label for label in labels if not label.strip() or not label.isprintable()]:
        raise MachineError(
            f"{strange[0][:40]!r} is not a valid label",
            kind=ErrorKind.INVALID,
            remedy="use printable characters: labels.txt has a line for each label",
        )
    if repeated := [label for label, count in Counter(labels).items() if count > 1]:
        raise MachineError(
            f"the label {repeated[0][:40]!r} is given more than once",
            kind=ErrorKind.INVALID,
            remedy="name each label once",
        )
    needed = 1 if model_type is ModelType.OBJECT_DETECTION else MIN_LABELS
    if len(labels) < needed:
        raise MachineError(
            f"a model of this type needs {needed} or more labels, and the job names {len(labels)}",
            kind=ErrorKind.INVALID,
            remedy="choose the labels to train on, in the API with the field tags",
        )
    return tuple(labels)


@dataclass(frozen=True, slots=True)
class ExampleCounts:
    """Numbers of pictures. What has a label is the picture, or for object detection one of its boxes."""

    total: int
    labelled: int  # with any label
    suggested: int  # without a label, but with suggestions of a model
    used: int  # with a label of the job
    ambiguous: int  # with several labels of the job
    by_label: Mapping[str, int]  # also of labels that are not of the job
    malformed: int = 0  # with a box that is not valid


def count_examples(model_type: ModelType, labels: Sequence[str], pictures: Iterable[TrainingPicture]) -> ExampleCounts:
    """Count pictures for a job."""
    detection = model_type is ModelType.OBJECT_DETECTION
    label_set, by_label = frozenset(labels), Counter[str]()
    total = labelled = suggested = ambiguous = used = malformed = 0
    for picture in pictures:
        names = frozenset(box.label for box in picture.boxes) if detection else picture.labels
        chosen = names & label_set
        total += 1
        labelled += bool(names)
        suggested += picture.suggested and not names
        used += bool(chosen)
        ambiguous += len(chosen) > 1
        malformed += not all(box.valid for box in picture.boxes)
        by_label.update(names)
    return ExampleCounts(total, labelled, suggested, used, ambiguous, dict(by_label), malformed)


def check_examples(model_type: ModelType, labels: Sequence[str], counted: ExampleCounts) -> int:
    """Return the number of pictures to train from; PRECONDITION with every shortfall."""
    detection = model_type is ModelType.OBJECT_DETECTION
    others = Counter({label: count for label, count in counted.by_label.items() if label not in frozenset(labels)})
    used, ambiguous, suggested, malformed = counted.used, counted.ambiguous, counted.suggested, counted.malformed
    shortfalls = _too_few_pictures(counted.total, counted.labelled, MIN_DETECTION if detection else 1)
    if shortfalls and suggested:
        shortfalls.append(f"{suggested} of the others have suggestions of a model that nobody has confirmed")
    number_of = {label: counted.by_label.get(label, 0) for label in labels}
    lacking = [(label, count) for label, count in number_of.items() if count < MIN_EXAMPLES]
    shortfalls += [
        f"the label {label[:60]!r} has {_pictures(count)}, {MIN_EXAMPLES - count} more needed"
        for label, count in lacking[:SHOWN]
    ]
    if len(lacking) > SHOWN:
        shortfalls.append(f"{len(lacking) - SHOWN} more labels have too few pictures")
    if others and any(count == 0 for _, count in lacking):
        unchosen = ", ".join(repr(label[:60]) for label, _ in others.most_common(SHOWN))
        shortfalls.append(f"the labels of its pictures that were not chosen are {unchosen}")
    if ambiguous and model_type is ModelType.SINGLE_LABEL_CLASSIFICATION:
        have = "have" if ambiguous > 1 else "has"
        shortfalls.append(
            f"{_pictures(ambiguous)} {have} more than one of the labels: correct them, or train a multi-label model"
        )
    if detection and used > MAX_DETECTION:
        shortfalls.append(f"{used} pictures have boxes of these labels, {used - MAX_DETECTION} too many for the memory")
    if malformed and detection:
        have = "have" if malformed > 1 else "has"
        shortfalls.append(f"{_pictures(malformed)} {have} boxes outside of 0 to 1, or with min not below max")
    if shortfalls:
        raise MachineError(
            _REFUSAL + "; ".join(shortfalls),
            kind=ErrorKind.PRECONDITION,
            remedy=_REMEDY,
        )
    return used


def shortfalls_of(text: str) -> tuple[str, ...]:
    """Return the shortfalls in the text of a refusal by `check_examples`; empty for another text."""
    if not text.startswith(_REFUSAL):
        return ()
    return tuple(text.removeprefix(_REFUSAL).removesuffix(f": {_REMEDY}").split("; "))


def _pictures(count: int) -> str:
    return f"{count} picture" if count == 1 else f"{count} pictures"


def _too_few_pictures(total: int, labelled: int, least: int) -> list[str]:
    if total < least:
        return [f"it has {_pictures(total)}, {least - total} more needed"]
    needed = math.ceil(MIN_LABELLED * total)
    if labelled < needed:
        return [f"{labelled} of {total} pictures are labelled, {needed - labelled} more needed"]
    return []
