"""What the trainer of detectors keeps in memory, and what it says about labels that it does not find."""

from __future__ import annotations

from typing import Any

import pytest

from training.trainers.detection import CHANNELS, remarks, standardize

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
