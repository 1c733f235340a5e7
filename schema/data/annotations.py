"""Labels and boxes of a picture, brought into the form that everything stores and trains on. Pure.

Models report boxes over the edge of the picture, empty boxes and confidences above 1 every day. The picture is what
matters: it is kept, and its annotations are mended.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

MAX_LABEL: Final = 1000
"""Characters of a label; longer ones are cut."""

MAX_ANNOTATIONS: Final = 1000
"""Labels and boxes of one picture; those after them are left out."""

Edges = tuple[float, float, float, float]
"""x_min, y_min, x_max, y_max as fractions of the width and height, 0 to 1, min before max."""


@dataclass(frozen=True, slots=True)
class Annotation:
    """A label of a picture; with `edges`, of the part in a box. `confidence` is 0 to 1, None for a person's label."""

    label: str
    edges: Edges | None = None
    confidence: float | None = None


@dataclass(frozen=True, slots=True)
class MendedAnnotations:
    """Annotations that can be stored, and how many others were changed or left out for that."""

    annotations: tuple[Annotation, ...]
    changed: int
    dropped: int

    @property
    def note(self) -> str:
        """Return in words what was changed, for a log; empty if nothing was."""
        parts = [(self.changed, "brought into the picture or cut"), (self.dropped, "left out")]
        return ", ".join(f"{count} {what}" for count, what in parts if count)


def mended(annotations: Iterable[Annotation]) -> MendedAnnotations:
    """Return what can be stored of some annotations.

    Boxes are clipped to the picture, confidences to 0 to 1, and labels to MAX_LABEL characters. Left out are boxes
    without an area in the picture, values that are not numbers, empty labels, and annotations after MAX_ANNOTATIONS.
    """
    kept: list[Annotation] = []
    changed = dropped = 0
    for annotation in annotations:
        result = _mended(annotation) if len(kept) < MAX_ANNOTATIONS else None
        if result is None:
            dropped += 1
        else:
            kept.append(result)
            changed += result != annotation
    return MendedAnnotations(tuple(kept), changed, dropped)


def _mended(annotation: Annotation) -> Annotation | None:
    label = annotation.label.replace("\0", "").strip()[:MAX_LABEL].strip()
    edges, confidence = annotation.edges, annotation.confidence
    numbers = (*(edges or ()), *(() if confidence is None else (confidence,)))
    if not label or any(math.isnan(number) for number in numbers):
        return None
    if edges is not None:
        x_min, y_min, x_max, y_max = (_share(edge) for edge in edges)
        if x_min >= x_max or y_min >= y_max:
            return None
        edges = (x_min, y_min, x_max, y_max)
    return replace(annotation, label=label, edges=edges, confidence=None if confidence is None else _share(confidence))


def _share(number: float) -> float:
    return min(1.0, max(0.0, number))
