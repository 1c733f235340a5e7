"""Reading boxes, matching detections with them, and average precision."""

from __future__ import annotations

import json

import pytest

from training.trainers.detectors.boxes import (
    Box,
    Boxed,
    average_precision,
    by_threshold,
    figures,
    matched,
    overlap,
    pictures_of,
)


def box(x: float, y: float, side: float = 0.2, label: str = "a", score: float = 1.0) -> Box:
    return Box(label, x, y, x + side, y + side, score)


def test_reading_a_dataset() -> None:
    def line(name: str, *labels: str) -> str:
        edges = {"x_min_normalized": 0.1, "y_min_normalized": 0.2, "x_max_normalized": 0.3, "y_max_normalized": 0.4}
        boxes = [{"annotation_label": label, **edges} for label in labels]
        return json.dumps({"image_path": f"/{name}.png", "binary_data_id": name, "bounding_box_annotations": boxes})

    read = pictures_of([line("1", "a", "b"), line("2"), line("3", "b")], ["a"])
    assert read == [Boxed("1", "/1.png", (Box("a", 0.1, 0.2, 0.3, 0.4),)), Boxed("3", "/3.png", ())]


def test_overlap() -> None:
    assert overlap(box(0, 0), box(0, 0)) == pytest.approx(1)
    assert overlap(box(0, 0), box(0.1, 0)) == pytest.approx(1 / 3)
    assert overlap(box(0, 0), box(0.2, 0)) == 0


def test_a_box_is_detected_once_and_by_the_best_first() -> None:
    detections = [box(0, 0, score=0.5), box(0.01, 0, score=0.9), box(0, 0, label="b", score=0.8)]
    assert matched(detections, [box(0, 0)], 0.5) == [True, False, False]


def test_average_precision() -> None:
    truth = [box(0, 0), box(0.5, 0.5)]
    right, wrong = [box(0, 0, score=0.9), box(0.5, 0.5, score=0.8)], box(0, 0.5, score=0.85)
    assert average_precision([(right, truth)], 0.5) == pytest.approx(1)
    assert average_precision([(right[:1], truth)], 0.5) == pytest.approx(51 / 101)  # recalls 0 to 0.5
    assert average_precision([([*right, wrong], truth)], 0.5) == pytest.approx((51 + 50 * 2 / 3) / 101)
    assert average_precision([([], truth)], 0.5) == 0
    assert average_precision([(right, [])], 0.5) is None


def test_answers_and_right_answers_by_threshold() -> None:
    truth = [box(0, 0), box(0.5, 0.5)]
    first = [box(0, 0, score=1.0), box(0.01, 0, score=0.29)]  # the second box of one object is wrong
    answers, right = by_threshold([(first, truth), ([box(0.5, 0, score=0.0)], [])])
    assert answers == [3] + [2] * 29 + [1] * 71
    assert right == [1] * 101


def test_figures_and_worst_mistakes() -> None:
    pictures = [Boxed("good", "", (box(0, 0),)), Boxed("missed", "", (box(0, 0), box(0.5, 0.5, label="b")))]
    result = figures(pictures, [[box(0, 0, score=0.9)], [box(0.01, 0, score=0.7)]], ["a", "b", "c"])
    shares = {label: tuple(row[name] for name in ("boxes", "AP50", "AP75")) for label, row in result["labels"].items()}
    assert shares == {"a": (2, 1.0, 1.0), "b": (1, 0.0, 0.0), "c": (0, None, None)}
    assert result["labels"]["a"]["answers"] == [2] * 71 + [1] * 20 + [0] * 10
    assert result["labels"]["b"]["answers"] == [0] * 101
    assert result["mAP50"] == 0.5
    assert [(entry["id"], entry["missed"], entry["wrong"]) for entry in result["worst_mistakes"]] == [
        ("missed", 1, 0.0)
    ]
