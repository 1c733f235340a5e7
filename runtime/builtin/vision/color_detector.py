"""Vision service `color_detector`: things of one color, without any model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

import trio

from catalogue.vision.color_detector import ColorDetectorConfig
from runtime.builtin.vision.colors import found_in
from runtime.builtin.vision.found import Box, detection
from runtime.builtin.vision.pictures import decode
from runtime.builtin.vision.service import Abilities, Seeing
from runtime.resource import Attributes
from runtime.services.vision import Detection


class ColorDetector(Seeing):
    """Each region is a detection of confidence 1, largest first."""

    Config: ClassVar[type[Attributes]] = ColorDetectorConfig
    attributes: ColorDetectorConfig

    async def prepare(self) -> None:
        """It only detects."""
        self.abilities = Abilities(detects=True)

    async def detect(self, image: bytes, mime_type: str) -> Sequence[Detection]:
        """Boxes around the regions."""
        return await self.work(partial(_detect, self.attributes, image, mime_type))

    async def get_status(self) -> Mapping[str, Any]:
        """The color, and the hue that it means in degrees."""
        await trio.lowlevel.checkpoint()
        return {"color": self.attributes.detect_color, "hue": round(self.attributes.hues().middle * 360, 1)}


def _detect(config: ColorDetectorConfig, image: bytes, mime_type: str) -> list[Detection]:
    picture = decode(image, mime_type)
    width, height = picture.size
    found = []
    for one in found_in(picture, config.hues(), config.segment_size_px):
        box = Box(one.x_min / width, one.y_min / height, one.x_max / width, one.y_max / height, 1.0, 0)
        if (known := detection(box, config.label or config.detect_color, width, height)) is not None:
            found.append(known)
    return found
