"""Query and messages of the labelling pages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final
from urllib.parse import urlencode

import msgspec

from cloud.domain.data.labels import Edges
from cloud.domain.labelling.palette import LabelCount
from cloud.domain.labelling.picture_labels import Annotations, Box
from cloud.domain.labelling.pictures import LabellingProgress, PictureFilter, Suspicion
from cloud.services.labelling.labelling import Labelled
from cloud.web.views.log_view import time_of
from schema import ErrorKind, MachineError

PROGRESS: Final = (
    (LabellingProgress.ALL.value, "all"),
    (LabellingProgress.UNLABELLED.value, "without labels"),
    (LabellingProgress.LABELLED.value, "with labels"),
    (LabellingProgress.SUGGESTED.value, "with suggestions of a model"),
    (LabellingProgress.SUSPICIOUS.value, "suspicious"),
)


@dataclass(frozen=True, slots=True)
class PictureQuery:
    """The filter in the address; times are UTC, such as `2026-01-31T12:00`."""

    show: str = ""
    label: str = ""
    machine: str = ""
    start: str = ""
    end: str = ""

    @classmethod
    def of(cls, query: Mapping[str, str]) -> PictureQuery:
        """Parse a query; unknown fields are ignored."""
        return cls(**{name: query.get(name, "").strip() for name in cls.__slots__})

    def filter(self) -> PictureFilter:
        """Return the filter. INVALID if a time or `show` is not valid."""
        if self.show not in dict(PROGRESS):
            raise MachineError(
                f"show={self.show[:40]!r} is not valid",
                kind=ErrorKind.INVALID,
                remedy=f"use one of {', '.join(value for value, _ in PROGRESS if value)}",
            )
        start, end = time_of(self.start, "from"), time_of(self.end, "to")
        return PictureFilter(LabellingProgress(self.show), self.label, self.machine, start, end)

    def encoded(self, **changes: str) -> str:
        """Return the query with changes, without empty fields."""
        return urlencode({name: value for name, value in {**asdict(self), **changes}.items() if value})

    @property
    def narrowed(self) -> bool:
        """Whether any filter is set."""
        return any(asdict(self).values())


def choices(names: Iterable[str]) -> list[tuple[str, str]]:
    """Return the options of a selection, which begins with all."""
    return [("", "all"), *((name, name) for name in names)]


# ---- messages between the labeller and the cloud


class BoxMessage(msgspec.Struct, frozen=True):
    """A box; edges are fractions of the picture's width and height."""

    id: str
    label: str
    x_min: float
    y_min: float
    x_max: float
    y_max: float
    suggested: bool = False


class AnnotationsMessage(msgspec.Struct, frozen=True):
    """The labels of a picture."""

    tags: list[str]
    boxes: list[BoxMessage]

    def annotations(self) -> Annotations:
        """Convert. INVALID for a box outside of the picture, or an id that is there twice."""
        boxes = {
            box.id: Box(box.label, Edges(box.x_min, box.y_min, box.x_max, box.y_max), box.suggested)
            for box in self.boxes
        }
        if len(boxes) < len(self.boxes):
            raise MachineError("two boxes have the same id", kind=ErrorKind.INVALID, remedy="use random UUIDs")
        return Annotations(frozenset(self.tags), boxes)


class SaveMessage(msgspec.Struct, frozen=True):
    """A request to save: the annotations that the page started from, and what they should be."""

    base: AnnotationsMessage
    mine: AnnotationsMessage


_save: Final = msgspec.json.Decoder(SaveMessage)


def save_message(body: bytes) -> SaveMessage:
    """Parse a request to save; INVALID with the path of the mistake."""
    try:
        return _save.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise MachineError(
            f"the annotations are not valid: {error}", kind=ErrorKind.INVALID, remedy="reload the page"
        ) from None


def annotations_json(annotations: Annotations) -> dict[str, Any]:
    """Return annotations for the page's script."""
    boxes = [
        {"id": box_id, "label": box.label, "suggested": box.suggested, **asdict(box.edges)}
        for box_id, box in sorted(annotations.boxes.items())
    ]
    return {"tags": sorted(annotations.tags), "boxes": boxes}


def labels_json(labels: list[LabelCount]) -> list[dict[str, Any]]:
    """Return the labels of a dataset for the page's script."""
    return [asdict(label) for label in labels]


def picture_json(labelled: Labelled, labels: list[LabelCount] | None) -> dict[str, Any]:
    """Return a picture with everything that the page shows about it, for the page's script."""
    picture, around = labelled.picture, labelled.neighbours
    return {
        "id": picture.id,
        "name": picture.name,
        "where": " · ".join(text for text in (picture.machine, picture.component) if text),
        "captured": picture.captured.isoformat(),
        "previous": around.previous,
        "next": around.following,
        "position": around.position,
        "count": around.count,
        "suspicion": suspicion_text(picture.suspicion),
        "suggested": list(labelled.annotations.suggested),
        "annotations": annotations_json(labelled.annotations),
        **({"labels": labels_json(labels)} if labels is not None else {}),
    }


def suspicion_text(suspicion: Suspicion | None) -> str:
    """Return what the newest model says about a picture; empty if it does not contradict the labels."""
    if suspicion is None:
        return ""
    said = " and ".join(suspicion.predicted) or "none of the labels"
    return f"The newest model says {said} (score {suspicion.score:.2f})."
