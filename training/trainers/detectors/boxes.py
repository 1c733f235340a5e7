"""Boxes: reading them from a dataset, overlaps, and the figures of a detector. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

WORST: Final = 50  # pictures with mistakes in a report
RECALLS: Final = 101  # points at which the precision is averaged
THRESHOLDS: Final = 101  # of a report: scores from 0 to 1
SHOWN: Final = 0.3  # score from which on a detection counts as a mistake in the report


@dataclass(frozen=True, slots=True)
class Box:
    """A box in fractions of the picture, and its label; of a detection also the score."""

    label: str
    x_min: float
    y_min: float
    x_max: float
    y_max: float
    score: float = 1.0

    @property
    def area(self) -> float:
        """Share of the picture."""
        return (self.x_max - self.x_min) * (self.y_max - self.y_min)


@dataclass(frozen=True, slots=True)
class Boxed:
    """A picture and the boxes in it. A picture without boxes shows none of the labels."""

    id: str
    path: str
    boxes: tuple[Box, ...]


def pictures_of(lines: Iterable[str], labels: Sequence[str]) -> list[Boxed]:
    """Return the pictures of `dataset.jsonl` that have boxes, with those of `labels`.

    A picture without any box may not have been looked at yet, so it is left out.
    """
    result = []
    for line in lines:
        entry = json.loads(line)
        annotations = entry.get("bounding_box_annotations") or ()
        boxes = tuple(
            Box(
                annotation["annotation_label"],
                *(float(annotation[f"{edge}_normalized"]) for edge in ("x_min", "y_min", "x_max", "y_max")),
            )
            for annotation in annotations
        )
        if boxes:
            path = str(entry["image_path"])
            chosen = tuple(box for box in boxes if box.label in labels)
            result.append(Boxed(str(entry.get("binary_data_id") or path), path, chosen))
    return result


def overlap(first: Box, second: Box) -> float:
    """Return the area that both cover, divided by the area that at least one covers."""
    across = min(first.x_max, second.x_max) - max(first.x_min, second.x_min)
    down = min(first.y_max, second.y_max) - max(first.y_min, second.y_min)
    if across <= 0 or down <= 0:
        return 0.0
    both = across * down
    return both / (first.area + second.area - both)


def matched(detections: Sequence[Box], truth: Sequence[Box], least: float) -> list[bool]:
    """Return for each detection, best score first, whether it is right; each true box can be detected once."""
    free, result = list(truth), []
    for detection in sorted(detections, key=lambda box: -box.score):
        candidates = [box for box in free if box.label == detection.label]
        nearest = max(candidates, key=lambda box: overlap(detection, box), default=None)
        right = nearest is not None and overlap(detection, nearest) >= least
        if right and nearest is not None:
            free.remove(nearest)
        result.append(right)
    return result


def average_precision(pairs: Sequence[tuple[Sequence[Box], Sequence[Box]]], least: float) -> float | None:
    """Return the mean precision over recalls from 0 to 1, for detections and true boxes of one label in each picture.

    None if there are no true boxes.
    """
    count = sum(len(truth) for _, truth in pairs)
    if not count:
        return None
    curve, right = [], 0
    for number, (_, hit) in enumerate(_scored(pairs, least), 1):
        right += hit
        curve.append((right / count, right / number))
    best, envelope = 0.0, []
    for recall, precision in reversed(curve):
        best = max(best, precision)
        envelope.append((recall, best))
    envelope.reverse()
    total, position = 0.0, 0
    for step in range(RECALLS):
        while position < len(envelope) and envelope[position][0] < step / (RECALLS - 1) - 1e-9:
            position += 1
        total += envelope[position][1] if position < len(envelope) else 0.0
    return total / RECALLS


def _scored(pairs: Sequence[tuple[Sequence[Box], Sequence[Box]]], least: float) -> list[tuple[float, bool]]:
    """Return the score of each detection of the pairs, and whether it is right; the best first."""
    scored: list[tuple[float, bool]] = []
    for detections, truth in pairs:
        ordered = sorted(detections, key=lambda box: -box.score)
        scored += zip((box.score for box in ordered), matched(ordered, truth, least), strict=True)
    return sorted(scored, key=lambda entry: -entry[0])


def by_threshold(pairs: Sequence[tuple[Sequence[Box], Sequence[Box]]]) -> tuple[list[int], list[int]]:
    """Return how many detections have at least a score of 0, 0.01, ... 1, and how many of them are right.

    Right ones overlap a true box by half. Which box a detection gets does not depend on those with lower scores.
    """
    answers, right = [0] * THRESHOLDS, [0] * THRESHOLDS
    for score, hit in _scored(pairs, 0.5):
        for step in range(min(THRESHOLDS, int((THRESHOLDS - 1) * score + 1e-6) + 1)):
            answers[step] += 1
            right[step] += hit
    return answers, right


def figures(pictures: Sequence[Boxed], detections: Sequence[Sequence[Box]], labels: Sequence[str]) -> dict[str, Any]:
    """Return mAP50, mAP75, the figures of each label, and the pictures with the worst mistakes."""
    by_label: dict[str, dict[str, Any]] = {}
    for label in labels:
        pairs = [
            ([box for box in own if box.label == label], [box for box in picture.boxes if box.label == label])
            for picture, own in zip(pictures, detections, strict=True)
        ]
        answers, right = by_threshold(pairs)
        by_label[label] = {
            "boxes": sum(len(truth) for _, truth in pairs),
            "AP50": average_precision(pairs, 0.5),
            "AP75": average_precision(pairs, 0.75),
            "answers": answers,
            "right": right,
        }
    return {
        "pictures": len(pictures),
        "mAP50": _mean([row["AP50"] for row in by_label.values()]),
        "mAP75": _mean([row["AP75"] for row in by_label.values()]),
        "labels": by_label,
        "worst_mistakes": _worst(pictures, detections),
    }


def _mean(values: Sequence[float | None]) -> float | None:
    present = [value for value in values if value is not None]
    return sum(present) / len(present) if present else None


def _worst(pictures: Sequence[Boxed], detections: Sequence[Sequence[Box]]) -> list[dict[str, Any]]:
    rows: list[tuple[float, int, list[float], Boxed, list[Box]]] = []
    for picture, own in zip(pictures, detections, strict=True):
        shown = sorted((box for box in own if box.score >= SHOWN), key=lambda box: -box.score)
        hits = matched(shown, picture.boxes, 0.5)
        wrong = [box.score for box, hit in zip(shown, hits, strict=True) if not hit]
        missed = len(picture.boxes) - sum(hits)
        if missed or wrong:
            rows.append((missed + sum(wrong), missed, wrong, picture, shown))
    rows.sort(key=lambda row: -row[0])
    return [
        {
            "id": picture.id,
            "labels": sorted({box.label for box in picture.boxes}),
            "predicted": sorted({box.label for box in shown}),
            "missed": missed,
            "wrong": round(max(wrong, default=0.0), 4),
            "boxes": [_plain(box) for box in picture.boxes],
            "detections": [{**_plain(box), "score": round(box.score, 4)} for box in shown],
        }
        for _, missed, wrong, picture, shown in rows[:WORST]
    ]


def _plain(box: Box) -> dict[str, Any]:
    edges = ("x_min", "y_min", "x_max", "y_max")
    return {"label": box.label, **{edge: round(getattr(box, edge), 4) for edge in edges}}
