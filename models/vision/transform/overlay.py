"""Drawing of boxes and labels into a picture. Pure, except for Pillow."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from engine import Classification, Detection

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

COLORS: Final = (
    (255, 64, 64),
    (64, 160, 255),
    (64, 220, 96),
    (255, 176, 32),
    (208, 96, 255),
    (32, 216, 216),
    (255, 96, 176),
    (208, 224, 32),
)
"""Colors of labels; a label always has the same color."""


def color_of(label: str) -> tuple[int, int, int]:
    """Return the color of a label, the same on every machine."""
    return COLORS[zlib.crc32(label.encode()) % len(COLORS)]


def draw_detections(picture: Picture, detections: Sequence[Detection]) -> Picture:
    """Return a copy with a box and a label for each detection, the most confident on top."""
    from PIL import ImageDraw

    copy = picture.copy()
    draw = ImageDraw.Draw(copy)
    width = max(1, round(min(picture.size) / 200))
    for detection in sorted(detections, key=lambda detection: detection.confidence):
        left, top, right, bottom = (
            value or 0 for value in (detection.x_min, detection.y_min, detection.x_max, detection.y_max)
        )
        color = color_of(detection.class_name)
        draw.rectangle((left, top, max(left, right - 1), max(top, bottom - 1)), outline=color, width=width)
        _draw_label(copy, (left, top), _caption(detection.class_name, detection.confidence), color)
    return copy


def draw_classifications(picture: Picture, classifications: Sequence[Classification]) -> Picture:
    """Return a copy with a line for each classification in the upper left corner."""
    copy = picture.copy()
    top = 0
    for classification in classifications:
        top += _draw_label(
            copy,
            (0, top),
            _caption(classification.class_name, classification.confidence),
            color_of(classification.class_name),
        )
    return copy


def _caption(label: str, confidence: float) -> str:
    return f"{label} {confidence:.2f}"


def _draw_label(picture: Picture, corner: tuple[int, int], text: str, color: tuple[int, int, int]) -> int:
    """Draw black text on a bar of the color, within the picture; return the height of the bar in pixels."""
    from PIL import ImageDraw, ImageFont

    draw = ImageDraw.Draw(picture)
    font = ImageFont.load_default(max(10.0, min(picture.size) / 30))
    left, top, right, bottom = draw.textbbox((0, 0), text, font=font)
    width, height = round(right - left) + 4, round(bottom - top) + 4
    x, y = max(0, min(corner[0], picture.width - width)), max(0, min(corner[1], picture.height - height))
    draw.rectangle((x, y, x + width - 1, y + height - 1), fill=color)
    draw.text((x + 2 - left, y + 2 - top), text, fill=(0, 0, 0), font=font)
    return height
