"""The report of a trainer about its model, `report.json`, as far as pages show it. Pure.

Reports are written by programs of tenants, too: everything is optional, unknown fields are ignored, and a report with
fields of other types is no report.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from training.jobs.events import printable
from training.jobs.submission import ModelType

MAX_SIZE: Final = 4 << 20  # bytes of a report that is kept
CONTRADICTED: Final = 0.6  # score from which a model contradicts a label


class LabelFigures(msgspec.Struct, frozen=True):
    """Figures of one label; `pictures` have it.

    Those of a detector are `boxes`, average precisions, and for scores of at least 0, 0.01, ... 1 the number of its
    answers, and of the right ones among them.
    """

    pictures: int = 0
    precision: float | None = None
    recall: float | None = None
    boxes: int = 0
    ap50: float | None = msgspec.field(default=None, name="AP50")
    ap75: float | None = msgspec.field(default=None, name="AP75")
    answers: list[int] = []
    right: list[int] = []


class PlacedBox(msgspec.Struct, frozen=True):
    """A box in fractions of a picture; one that a model has found has a score."""

    label: str = ""
    x_min: float = 0.0
    y_min: float = 0.0
    x_max: float = 0.0
    y_max: float = 0.0
    score: float | None = None


class Mistake(msgspec.Struct, frozen=True):
    """A picture on which the model and the labels differ. The fields from `missed` on are those of a detector."""

    id: str
    labels: list[str] = []
    predicted: list[str] = []
    probabilities: dict[str, float] = {}
    missed: int = 0  # boxes that the model does not find
    wrong: float | None = None  # score of the surest box that is not labelled, 0 without one
    boxes: list[PlacedBox] = []  # of people
    detections: list[PlacedBox] = []

    @property
    def score(self) -> float:
        """How sure the model is of the difference, 0 to 1."""
        if self.wrong is not None:
            return min(1.0, max(0.0, self.wrong))
        said, labelled = set(self.predicted), set(self.labels)
        more = [self.probabilities.get(label, 0.0) for label in said - labelled]
        less = [1 - self.probabilities.get(label, 1.0) for label in labelled - said]
        return min(1.0, max([0.0, *(more or less)]))


class Scored(msgspec.Struct, frozen=True):
    """What the model says about a picture that it was not fitted to: a probability for each label of the model."""

    id: str
    labels: list[str] = []
    probabilities: list[float] = []


class Figures(msgspec.Struct, frozen=True):
    """What the model does on pictures that it was not fitted to."""

    pictures: int = 0
    accuracy: float | None = None
    accuracy_of_the_most_frequent_answer: float | None = None
    map50: float | None = msgspec.field(default=None, name="mAP50")
    map75: float | None = msgspec.field(default=None, name="mAP75")
    labels: dict[str, LabelFigures] = {}
    confusion: list[list[int]] = []
    worst_mistakes: list[Mistake] = []
    scores: list[Scored] = []


class Pictures(msgspec.Struct, frozen=True):
    """The pictures of the training, by id."""

    used: int = 0
    training: list[str] = []
    test: list[str] = []
    unreadable: list[str] = []
    duplicates: list[str] = []


class Report(msgspec.Struct, frozen=True):
    """A report."""

    model_type: str = ""
    labels: list[str] = []
    remarks: list[str] = []
    pictures: Pictures = Pictures()
    cross_validation: Figures = Figures()
    test: Figures = Figures()
    processor_seconds: float | None = None

    @property
    def detects(self) -> bool:
        """Whether it is about a detector."""
        return self.model_type == ModelType.OBJECT_DETECTION.name.lower()

    def contradicted(self) -> Iterator[Mistake]:
        """Yield the mistakes with a score of at least CONTRADICTED, each picture once."""
        seen = set()
        for mistake in (*self.test.worst_mistakes, *self.cross_validation.worst_mistakes):
            if mistake.id not in seen and mistake.score >= CONTRADICTED:
                seen.add(mistake.id)
                yield mistake


_decoder: Final = msgspec.json.Decoder(Report)


def read_report(content: bytes) -> Report | None:
    """Parse a report; None if it is none, or larger than MAX_SIZE."""
    if len(content) > MAX_SIZE:
        return None
    try:
        report = _decoder.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return msgspec.structs.replace(report, remarks=[printable(remark) for remark in report.remarks])


def encode_report(report: Report) -> str:
    """Return the stored form, which `read_report` reads."""
    return msgspec.json.encode(report).decode()
