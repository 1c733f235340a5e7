"""Attributes of `mlmodel`. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import msgspec

from models.vision.common.attributes import SeeingConfig
from models.vision.mlmodel.layouts import LAYOUTS

Share = Annotated[float, msgspec.Meta(ge=0, le=1)]


class ModelVisionConfig(SeeingConfig, kw_only=True, frozen=True):
    """Attributes of a vision service over an ML model."""

    mlmodel_name: str  # the mlmodel service that runs the model
    remap_input_names: dict[str, str] = msgspec.field(default_factory=dict)  # input for the picture: {"name": "image"}
    remap_output_names: dict[str, str] = msgspec.field(default_factory=dict)  # model's name -> location, category, ...
    output_layout: str = ""  # boxes, yolov5, yolov8 or yolov10; empty: detected from names and shapes
    xmin_ymin_xmax_ymax_order: tuple[int, ...] = (0, 1, 2, 3)  # positions of these values in a box
    input_image_bgr: bool | None = None  # the model expects blue first; default: the model's metadata, or false
    input_image_mean_value: tuple[float, ...] = ()  # mean, subtracted from each channel of a pixel (0 to 255)
    input_image_std_dev: tuple[float, ...] = ()  # standard deviation, by which each channel is then divided
    letterbox: bool = False  # keep the picture's proportions and add gray bars, instead of stretching it
    input_size_px: tuple[int, ...] = ()  # input size of a model that accepts any: width, height; empty: the picture's
    label_path: str = ""  # file with one label per line; empty: the labels of the model
    default_minimum_confidence: Share | None = None  # lowest confidence of a result; default: 0, yolo layouts 0.25
    label_confidences: dict[str, Share] = msgspec.field(default_factory=dict)  # allowed labels -> lowest confidence
    overlap_threshold: Share = 0.45  # boxes of a class that overlap a better one more than this are dropped (yolo)

    def __post_init__(self) -> None:
        if self.output_layout and self.output_layout not in LAYOUTS:
            raise ValueError(f"output_layout {self.output_layout!r} is not one of {', '.join(LAYOUTS)}")
        if sorted(self.xmin_ymin_xmax_ymax_order) != [0, 1, 2, 3]:
            raise ValueError("xmin_ymin_xmax_ymax_order is not 0, 1, 2 and 3 in some order")
        for name in ("input_image_mean_value", "input_image_std_dev"):
            if len(getattr(self, name)) not in (0, 3):
                raise ValueError(f"{name} has {len(getattr(self, name))} numbers; give 3, one for each channel")
        if 0 in self.input_image_std_dev:
            raise ValueError("input_image_std_dev contains 0, by which values cannot be divided")
        if self.input_size_px and (len(self.input_size_px) != 2 or min(self.input_size_px) < 1):
            raise ValueError("input_size_px is not a width and a height of at least 1")

    def requires(self) -> Iterable[str]:
        """Require the ML model service."""
        return (self.mlmodel_name,)
