"""What a detector learns from: changed copies of pictures, and the values that the head shall give for them."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

from PIL import Image, ImageEnhance, ImageOps

from training.trainers.detectors.boxes import Box

ZOOMS: Final = (0.7, 1.35)  # side of the part that a copy shows, in sides of the picture
LIGHTS: Final = (0.7, 1.3)  # factors of brightness and contrast
VISIBLE: Final = 0.4  # share of a box that must be visible in a copy
SPREAD: Final = 0.22  # deviation of the peak around a center, in sides of the box
NEAREST: Final = 0.1  # smallest distance of an edge, in cells
_GREY: Final = (124, 124, 124)


def changed(image: Image.Image, boxes: Iterable[Box], chance: random.Random) -> tuple[Image.Image, tuple[Box, ...]]:
    """Return a copy that shows another part in another light, mirrored or not, and the boxes that are visible in it."""
    side = chance.uniform(*ZOOMS)
    x, y = (chance.uniform(min(0.0, 1 - side), max(0.0, 1 - side)) for _ in range(2))
    window = (x * image.width, y * image.height, (x + side) * image.width, (y + side) * image.height)
    whole = image.transform(image.size, Image.Transform.EXTENT, window, Image.Resampling.BILINEAR, fillcolor=_GREY)
    visible = []
    for box in boxes:
        cut = Box(
            box.label,
            _inside((box.x_min - x) / side),
            _inside((box.y_min - y) / side),
            _inside((box.x_max - x) / side),
            _inside((box.y_max - y) / side),
        )
        if cut.area * side**2 >= VISIBLE * box.area and cut.area > 0:
            visible.append(cut)
    if chance.random() < 0.5:
        whole = ImageOps.mirror(whole)
        visible = [replace(box, x_min=1 - box.x_max, x_max=1 - box.x_min) for box in visible]
    whole = ImageEnhance.Brightness(whole).enhance(chance.uniform(*LIGHTS))
    return ImageEnhance.Contrast(whole).enhance(chance.uniform(*LIGHTS)), tuple(visible)


def _inside(edge: float) -> float:
    return min(1.0, max(0.0, edge))


def target(arrays: Any, boxes: Iterable[Box], labels: Sequence[str], cells: int) -> dict[str, Any]:
    """Return `heat` [cells, cells, labels], `distances` [cells, cells, 4] and their `weight` [cells, cells]."""
    heat = arrays.zeros((cells, cells, len(labels)), "float32")
    distances = arrays.zeros((cells, cells, 4), "float32")
    weight = arrays.zeros((cells, cells), "float32")
    middles = arrays.arange(cells) + 0.5
    for box in sorted(boxes, key=lambda box: -box.area):  # a small box in front of a large one wins
        left, top, right, bottom = (edge * cells for edge in (box.x_min, box.y_min, box.x_max, box.y_max))
        x, y = (left + right) / 2, (top + bottom) / 2
        across = ((middles - x) / max(0.5, SPREAD * (right - left))) ** 2
        down = ((middles - y) / max(0.5, SPREAD * (bottom - top))) ** 2
        apart = down[:, None] + across[None, :]
        peak = arrays.exp(-apart / 2)
        row, column = (min(cells - 1, math.floor(at)) for at in (y, x))
        peak[row, column] = 1
        label = labels.index(box.label)
        heat[..., label] = arrays.maximum(heat[..., label], peak)
        near = apart < 1
        near[row, column] = True
        wide, high = (
            arrays.broadcast_to(middles[None, :], near.shape),
            arrays.broadcast_to(middles[:, None], near.shape),
        )
        edges = arrays.stack([wide - left, high - top, right - wide, bottom - high], axis=-1)
        distances[near] = arrays.log(arrays.maximum(edges[near], NEAREST))
        weight[near] = peak[near]
    return {"heat": heat, "distances": distances, "weight": weight}
