"""Vision service `color_detector`: detects regions of one color, without an ML model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

import trio

from engine import Attributes, Detection, model
from models.vision.color_detector.attributes import ColorDetectorConfig
from models.vision.color_detector.regions import regions_of_hues
from models.vision.common.pictures import decode
from models.vision.common.results import Box, detection
from models.vision.common.service import Abilities, VisionService


@model("rdk:builtin:color_detector")
class ColorDetector(VisionService):
    """Each region is a detection with confidence 1, largest first."""

    Config: ClassVar[type[Attributes]] = ColorDetectorConfig
    attributes: ColorDetectorConfig

    async def prepare(self) -> None:
        """Set the abilities: detections only."""
        self.abilities = Abilities(detects=True)

    async def detect(self, image: bytes, mime_type: str) -> Sequence[Detection]:
        """Return boxes around the regions, largest first."""
        return await self.work(partial(_detect, self.attributes, image, mime_type))

    async def get_status(self) -> Mapping[str, Any]:
        """Return the color and its hue in degrees."""
        await trio.lowlevel.checkpoint()
        return {"color": self.attributes.detect_color, "hue": round(self.attributes.hues().middle * 360, 1)}


def _detect(config: ColorDetectorConfig, image: bytes, mime_type: str) -> list[Detection]:
    picture = decode(image, mime_type)
    width, height = picture.size
    detections = []
    for region in regions_of_hues(picture, config.hues(), config.segment_size_px):
        box = Box(region.x_min / width, region.y_min / height, region.x_max / width, region.y_max / height, 1.0, 0)
        if (detected := detection(box, config.label or config.detect_color, width, height)) is not None:
            detections.append(detected)
    return detections
