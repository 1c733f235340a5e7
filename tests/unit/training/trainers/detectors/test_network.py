"""The head of the detector: its gradients, its targets, and the ONNX file that computes the same."""

from __future__ import annotations

import random
from typing import Any

import numpy
import pytest
from PIL import Image

from training.trainers.detectors import network, targets
from training.trainers.detectors.boxes import Box

CHANNELS = [3, 5]


def example() -> tuple[network.Weights, list[Any], dict[str, Any]]:
    chance = numpy.random.default_rng(0)
    weights = {name: value.astype(float) for name, value in network.initial(numpy, CHANNELS, 2, 1).items()}
    weights["out_bias"] += 3  # away from the flat part of the loss
    maps = [chance.normal(size=(2, 8, 8, 3)), chance.normal(size=(2, 4, 4, 5))]
    boxes = [Box("a", 0.1, 0.1, 0.5, 0.6), Box("b", 0.4, 0.5, 0.9, 0.9)]
    rows = [targets.target(numpy, boxes[:count], ["a", "b"], 8) for count in (1, 2)]
    return weights, maps, {name: numpy.stack([row[name] for row in rows]).astype(float) for name in rows[0]}


@pytest.mark.parametrize("name", sorted(network.initial(numpy, CHANNELS, 2, 1)))
def test_gradients(name: str) -> None:
    """They equal the change of the loss for a small change of each kind of weight."""
    weights, maps, target = example()
    importance = numpy.array([1.0, 2.0])

    def value(changed: Any) -> float:
        output, _ = network.forward(numpy, {**weights, name: changed}, maps)
        return network.loss(numpy, output, target, importance)[0]

    output, kept = network.forward(numpy, weights, maps)
    _, slope = network.loss(numpy, output, target, importance)
    gradient = network.backward(numpy, weights, maps, kept, slope.astype(float))[name]
    direction = numpy.random.default_rng(3).normal(size=weights[name].shape)
    small = 1e-6
    measured = (value(weights[name] + small * direction) - value(weights[name] - small * direction)) / (2 * small)
    assert (gradient * direction).sum() == pytest.approx(measured, rel=1e-3, abs=1e-5)


def test_the_gradient_near_the_right_box() -> None:
    """There the loss is a parabola, so that the steps become smaller."""
    weights, maps, target = example()
    output, _ = network.forward(numpy, weights, maps)
    target["distances"] = output[..., 2:] + 0.05
    small = numpy.zeros_like(output)
    small[..., 2:] = 1e-6
    (before, _), (after, _) = (
        network.loss(numpy, output + sign * small, target, numpy.ones(2)) for sign in (-1.0, 1.0)
    )
    slope = network.loss(numpy, output, target, numpy.ones(2))[1]
    assert slope[..., 2:].sum() == pytest.approx((after - before) / 2e-6, rel=1e-3)


def test_targets() -> None:
    result = targets.target(numpy, [Box("b", 0.25, 0.25, 0.75, 0.5)], ["a", "b"], 8)
    assert result["heat"][..., 0].max() == 0
    assert numpy.argwhere(result["heat"][..., 1] == 1).tolist() == [[3, 4]]  # row and column of the center
    assert numpy.exp(result["distances"][3, 4]) == pytest.approx([2.5, 1.5, 1.5, 0.5], rel=1e-5)
    assert result["weight"][3, 4] == 1
    assert result["weight"][0, 0] == 0


def test_changed_copies_show_what_the_boxes_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(targets, "LIGHTS", (1.0, 1.0))  # so that the box can be found by its brightness
    image = Image.new("RGB", (100, 100), (0, 0, 0))
    image.paste((255, 255, 255), (40, 30, 60, 70))
    for seed in range(20):
        copy, boxes = targets.changed(image, [Box("a", 0.4, 0.3, 0.6, 0.7)], random.Random(seed))
        bright = numpy.argwhere(numpy.asarray(copy.convert("L")) > 140)
        if not boxes:
            continue
        (top, left), (bottom, right) = bright.min(axis=0), bright.max(axis=0) + 1
        edges = (boxes[0].x_min, boxes[0].y_min, boxes[0].x_max, boxes[0].y_max)
        assert edges == pytest.approx((left / 100, top / 100, right / 100, bottom / 100), abs=0.03)


def test_a_box_that_is_hardly_visible_is_left_out() -> None:
    image = Image.new("RGB", (100, 100))
    copies = [targets.changed(image, [Box("a", 0.0, 0.0, 0.1, 0.1)], random.Random(seed))[1] for seed in range(300)]
    assert {len(boxes) for boxes in copies} == {0, 1}
    assert all(0 <= box.x_min < box.x_max <= 1 for boxes in copies for box in boxes)
    least = targets.VISIBLE * 0.01 / targets.ZOOMS[1] ** 2
    assert min(box.area for boxes in copies for box in boxes) >= 0.99 * least
