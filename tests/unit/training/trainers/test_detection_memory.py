"""What the trainer of detectors keeps in memory, and what it says about labels that it does not find."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest

from training.trainers.detection import CHANNELS, remarks, standardize
from training.trainers.detectors import targets
from training.trainers.detectors.boxes import Box
from training.trainers.detectors.fitting import Data

numpy = pytest.importorskip("numpy", reason="the extra ml is not installed")


def test_channels_are_standardized_in_place_as_all_at_once() -> None:
    values = numpy.random.default_rng(1).normal(3, 2, (40, 4, 4, 2 * CHANNELS + 5)).astype(numpy.float16)
    numbers = values.astype(numpy.float32).reshape(-1, values.shape[-1])
    center, spread = numbers.mean(axis=0), numbers.std(axis=0) + 1e-3
    expected = ((values - center) / spread).astype(numpy.float16)
    centers, spreads = standardize(numpy, values)
    assert numpy.array_equal(centers, center)
    assert numpy.array_equal(spreads, spread)
    assert numpy.array_equal(values, expected)


def test_the_memory_for_targets_does_not_grow_with_labels_and_pictures() -> None:
    labels = [f"label {number}" for number in range(500)]  # with 8,000 pictures, the limits of a job
    boxes = [
        (Box(labels[number % 500], 0.1, 0.1, 0.5, 0.5), Box(labels[0], 0.4, 0.2, 0.9, 1.0)) for number in range(8000)
    ]
    maps = numpy.zeros((8000, 1, 1, 1), numpy.float16)
    tracemalloc.start()
    try:
        data = Data((maps,), boxes, labels, 28, numpy.ones(500))
        for chosen in ([0, 501], [7999, 3]):
            _, target = data.batch(numpy, chosen)
            for place, number in enumerate(chosen):
                alone = targets.target(numpy, boxes[number], labels, 28)
                assert all(numpy.array_equal(target[name][place], alone[name]) for name in alone)
        assert tracemalloc.get_traced_memory()[1] < 32 << 20
    finally:
        tracemalloc.stop()


def figures(pictures: int = 30, **labels: float | None) -> dict[str, Any]:
    by_label = {name: {"boxes": 0 if value is None else 5, "AP50": value} for name, value in labels.items()}
    values = [value for value in labels.values() if value is not None]
    return {"pictures": pictures, "mAP50": sum(values) / len(values) if values else None, "labels": by_label}


def test_a_strong_detector_has_no_remark() -> None:
    assert remarks(figures(nut=0.9, bolt=0.8)) == []
    assert remarks(figures(nut=0.9, absent=None)) == []


def test_a_weak_detector_has_remarks() -> None:
    weak, missed = remarks(figures(nut=0.6, bolt=0.0))
    assert "mAP50 is 0.30" in weak
    assert "The backbone is weak" in weak
    assert missed == "These labels were never found in the test: bolt."
    (few,) = remarks(figures(5, nut=0.9))
    assert "only 5 pictures" in few
