"""The effect of a transform camera's steps on coordinates in a picture. Pure, except for Pillow.

Angles are in degrees, counterclockwise. Coordinates are in pixels from the top left, x to the right, y down.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from engine import Annotations, BoundingBox, IntrinsicParameters
from models.vision.transform.steps import Moved, Size, Step


def moved_lens(lens: IntrinsicParameters, steps: Sequence[Step]) -> IntrinsicParameters | None:
    """Return the parameters of a lens for the picture after the steps; None if the size of the picture is unknown."""
    if not lens.width_px or not lens.height_px:
        return None
    for step in steps:
        try:
            to = step.moved((lens.width_px, lens.height_px))
        except ValueError:
            return None
        x, y = to.at(lens.center_x_px, lens.center_y_px)
        lens = IntrinsicParameters(
            *to.size,
            math.hypot(to.a * lens.focal_x_px, to.b * lens.focal_y_px),
            math.hypot(to.d * lens.focal_x_px, to.e * lens.focal_y_px),
            x,
            y,
        )
    return lens


def moved_annotations(annotations: Annotations, step: Step, size: Size) -> Annotations:
    """Transform the annotations of a picture of that size; boxes that are cut off completely are dropped."""
    to = step.moved(size)
    boxes = (_moved_box(box, to, size) for box in annotations.bboxes)
    return replace(annotations, bboxes=tuple(box for box in boxes if box is not None))


def _moved_box(box: BoundingBox, to: Moved, size: Size) -> BoundingBox | None:
    corners = [
        to.at(x * size[0], y * size[1])
        for x in (box.x_min_normalized, box.x_max_normalized)
        for y in (box.y_min_normalized, box.y_max_normalized)
    ]
    xs = [min(1.0, max(0.0, x / to.size[0])) for x, _ in corners]
    ys = [min(1.0, max(0.0, y / to.size[1])) for _, y in corners]
    if min(xs) >= max(xs) or min(ys) >= max(ys):
        return None
    return BoundingBox(box.id, box.label, min(xs), min(ys), max(xs), max(ys), box.confidence)
