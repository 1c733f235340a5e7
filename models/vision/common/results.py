"""Detections and classifications, as types of the vision API. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from engine import Classification, Detection


@dataclass(frozen=True, slots=True)
class Box:
    """A detected box: corners as fractions of the image, number of the class, confidence (0 to 1)."""

    x_min: float
    y_min: float
    x_max: float
    y_max: float
    score: float
    category: int

    @property
    def area(self) -> float:
        """The area as a share of the image; 0 if a maximum is below its minimum."""
        return max(0.0, self.x_max - self.x_min) * max(0.0, self.y_max - self.y_min)


def overlap(a: Box, b: Box) -> float:
    """Return the intersection over union, 0 to 1."""
    width = min(a.x_max, b.x_max) - max(a.x_min, b.x_min)
    height = min(a.y_max, b.y_max) - max(a.y_min, b.y_min)
    if width <= 0 or height <= 0:
        return 0.0
    return width * height / (a.area + b.area - width * height)


def without_duplicates(boxes: Iterable[Box], limit: float) -> list[Box]:
    """Return boxes by confidence, without those that overlap a better one of their class by more than `limit`."""
    kept: list[Box] = []
    for box in sorted(boxes, key=lambda candidate: -candidate.score):
        if all(box.category != other.category or overlap(box, other) <= limit for other in kept):
            kept.append(box)
    return kept


def detection(box: Box, label: str, width: int, height: int) -> Detection | None:
    """Create a detection, with the box clipped to an image of that size; None if the box is outside."""
    x_min, x_max = (min(1.0, max(0.0, value)) for value in (box.x_min, box.x_max))
    y_min, y_max = (min(1.0, max(0.0, value)) for value in (box.y_min, box.y_max))
    if x_min >= x_max or y_min >= y_max:
        return None
    return Detection(
        x_min=round(x_min * width),
        y_min=round(y_min * height),
        x_max=round(x_max * width),
        y_max=round(y_max * height),
        confidence=box.score,
        class_name=label,
        x_min_normalized=x_min,
        y_min_normalized=y_min,
        x_max_normalized=x_max,
        y_max_normalized=y_max,
    )


@dataclass(frozen=True, slots=True)
class ConfidenceFilter:
    """A filter of labels by confidence.

    With `by_label` (keys in lower case), only its labels pass, each from its own lowest confidence.
    """

    minimum: float = 0.0
    by_label: Mapping[str, float] | None = None

    def passes(self, label: str, confidence: float) -> bool:
        """Return whether a label with this confidence passes."""
        if self.by_label:
            return confidence >= self.by_label.get(label.lower(), float("inf"))
        return confidence >= self.minimum

    @property
    def lowest(self) -> float:
        """The lowest confidence with which any label passes."""
        return min(self.by_label.values()) if self.by_label else self.minimum


def most_likely(classifications: Iterable[Classification], n: int) -> Sequence[Classification]:
    """Return the `n` most confident, best first; 0 means all."""
    ranked = sorted(classifications, key=lambda classification: -classification.confidence)
    return ranked[:n] if n > 0 else ranked
