"""Images drawn for tests, a camera that shows one, and a model whose answers the test sets."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, ClassVar

from PIL import Image as Pillow
from PIL import ImageDraw

from engine.components.media.camera import (
    Annotations,
    Camera,
    CameraProperties,
    DistortionParameters,
    Image,
    Images,
    IntrinsicParameters,
    ResponseMetadata,
)
from engine.resource import Attributes, Extra
from engine.services.mlmodel import FlatTensor, FlatTensors, Metadata, MLModel
from models.mlmodel.tensors import tensor

RED, GREEN, BLUE, GREY = (255, 0, 0), (0, 255, 0), (0, 0, 255), (90, 90, 90)
Color = tuple[int, int, int]
Box = tuple[int, int, int, int]


def picture(size: tuple[int, int] = (200, 100), boxes: Mapping[Box, Color] | None = None) -> Pillow.Image:
    """Draw filled boxes on grey; the maxima of a box are exclusive."""
    image = Pillow.new("RGB", size, GREY)
    draw = ImageDraw.Draw(image)
    for (left, top, right, bottom), color in (boxes or {}).items():
        draw.rectangle((left, top, right - 1, bottom - 1), fill=color)
    return image


def encoded(drawn: Pillow.Image, kind: str = "PNG") -> bytes:
    buffer = io.BytesIO()
    drawn.save(buffer, kind)
    return buffer.getvalue()


def opened(data: bytes) -> Pillow.Image:
    return Pillow.open(io.BytesIO(data)).convert("RGB")


WHEN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
LENS = IntrinsicParameters(200, 100, 150.0, 160.0, 90.0, 40.0)


class DrawnCamera(Camera):
    """Show `images`: by default, one with a red and a blue box."""

    Config: ClassVar[type[Attributes]] = Attributes
    images: Sequence[Image] = (
        Image(encoded(picture(boxes={(20, 30, 60, 50): RED, (120, 10, 130, 20): BLUE})), "image/png", "color"),
    )
    annotations: Annotations | None = None

    async def get_images(self, filter_source_names: Sequence[str] = (), *, extra: Extra = None) -> Images:
        chosen = [image for image in self.images if not filter_source_names or image.source_name in filter_source_names]
        return Images(chosen, ResponseMetadata(WHEN))

    async def get_properties(self) -> CameraProperties:
        return CameraProperties(
            supports_pcd=True,
            intrinsic_parameters=LENS,
            distortion_parameters=DistortionParameters("brown_conrady", (0.1, 0.2, 0.3, 0.4, 0.5)),
            mime_types=("image/png", "image/vnd.viam.dep"),
            frame_rate=12.5,
        )


class StaticModel(MLModel):
    """Return `answers`, record the inputs in `shown`; `described` is the metadata."""

    Config: ClassVar[type[Attributes]] = Attributes
    described: ClassVar[Metadata] = Metadata()
    answers: ClassVar[Mapping[str, FlatTensor]] = {}

    def __init__(self, context: Any) -> None:
        super().__init__(context)
        self.shown: list[FlatTensors] = []

    async def infer(self, input_tensors: FlatTensors, *, extra: Extra = None) -> FlatTensors:
        self.shown.append(input_tensors)
        return FlatTensors(self.answers)

    async def metadata(self, *, extra: Extra = None) -> Metadata:
        return self.described


def floats(shape: Sequence[int], *values: float) -> FlatTensor:
    from array import array

    return tensor("float32", shape, array("f", values))


def model(described: Metadata, answers: Mapping[str, FlatTensor] | None = None) -> type[StaticModel]:
    """Return a model class for one test."""
    return type("Static", (StaticModel,), {"described": described, "answers": answers or {}})
