"""Camera `transform`: images of another camera, cropped, resized, rotated, or with results of vision services."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final

import trio

from catalogue.vision.steps import Classifications, Detections, Rotate, Step
from runtime.engine.components.media.camera import (
    Annotations,
    BoundingBox,
    Camera,
    CameraProperties,
    Classification,
    DistortionParameters,
    Image,
    Images,
    IntrinsicParameters,
    PointCloud,
)
from runtime.engine.resource import Attributes, Context, Extra, Started, Unsupported
from runtime.engine.services.vision import Detection, Vision
from runtime.models.vision.overlay import draw_classifications, draw_detections
from runtime.models.vision.pictures import DEPTH, JPEG, PNG, decode, encode
from runtime.models.vision.steps import moved_annotations, moved_lens
from schema.errors import ErrorKind, MachineError
from support.worker import Worker

if TYPE_CHECKING:
    from PIL.Image import Image as Picture
from catalogue.vision.transform import TransformConfig

NOTHING: Final = Annotations()


class TransformCamera(Camera):
    """Processes every image of the source, with its annotations, in the pipeline.

    PNG images stay PNG; all others become JPEG. Depth maps are omitted.
    """

    Config: ClassVar[type[Attributes]] = TransformConfig
    attributes: TransformConfig

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._source = self.dependency(Camera, self.attributes.source)
        self._steps = self.attributes.steps()
        self._worker = Worker(str(self.name))

    async def run(self, *, task_status: Started) -> None:
        """Run the worker thread; ready at once."""
        async with self._worker.opened():
            task_status.started()
            await trio.sleep_forever()

    async def get_images(self, filter_source_names: Sequence[str] = (), *, extra: Extra = None) -> Images:
        """Return the transformed images of the source, with its source names and time."""
        taken = await self._source.get_images(filter_source_names, extra=extra)
        pictures = [image for image in taken.images if image.mime_type != DEPTH]
        if taken.images and not pictures:
            raise Unsupported(f"{self._source.name} returned only depth maps, which cannot be transformed")
        return Images([await self._transform(image) for image in pictures], taken.response_metadata)

    async def _transform(self, image: Image) -> Image:
        if not self._steps:
            return image
        picture = await self._worker.run(partial(decode, image.image, image.mime_type))
        known = image.annotations or NOTHING
        for one in self._steps:
            if isinstance(one, Detections):
                picture, known = await self._detect(one, picture, known)
            elif isinstance(one, Classifications):
                picture, known = await self._classify(one, picture, known)
            else:
                picture, known = await self._worker.run(partial(self._apply, one, picture, known))
        data, mime_type = await self._worker.run(partial(encode, picture, PNG if image.mime_type == PNG else JPEG))
        return Image(data, mime_type, image.source_name, None if known == NOTHING else known)

    def _apply(self, one: Step, picture: Picture, known: Annotations) -> tuple[Picture, Annotations]:
        try:
            return one.apply(picture), moved_annotations(known, one, picture.size)
        except ValueError as error:
            raise MachineError(
                f"{self.name}: {error}", kind=ErrorKind.PRECONDITION, remedy="correct the pipeline"
            ) from error

    async def _detect(self, one: Detections, picture: Picture, known: Annotations) -> tuple[Picture, Annotations]:
        data, mime_type = await self._worker.run(partial(encode, picture, JPEG))
        service = self.dependency(Vision, one.detector_name)
        told = await service.get_detections(data, picture.width, picture.height, mime_type)
        found = [each for each in told if _counts(one, each.class_name, each.confidence)]
        found = [_in_pixels(each, picture.size) for each in found]
        boxes = [_bounding_box(each, picture.size) for each in found]
        drawn = await self._worker.run(partial(draw_detections, picture, found))
        return drawn, replace(known, bboxes=(*known.bboxes, *boxes))

    async def _classify(
        self, one: Classifications, picture: Picture, known: Annotations
    ) -> tuple[Picture, Annotations]:
        data, mime_type = await self._worker.run(partial(encode, picture, JPEG))
        service = self.dependency(Vision, one.classifier_name)
        told = await service.get_classifications(data, picture.width, picture.height, mime_type, 0)
        found = [each for each in told if _counts(one, each.class_name, each.confidence)][: one.max_classifications]
        labels = [Classification(label=each.class_name, confidence=each.confidence) for each in found]
        drawn = await self._worker.run(partial(draw_classifications, picture, found))
        return drawn, replace(known, classifications=(*known.classifications, *labels))

    async def get_point_cloud(self, mime_type: str = "", *, extra: Extra = None) -> PointCloud:
        """Raise Unsupported: the pipeline processes only pictures."""
        raise Unsupported(f"{self.name} has no point cloud", remedy=f"request it from {self._source.name}")

    async def get_properties(self) -> CameraProperties:
        """Return the properties of the source, with the lens transformed like the images, and configured values."""
        told = await self._source.get_properties()
        config = self.attributes
        given = config.intrinsic_parameters or config.camera_parameters
        lens = told.intrinsic_parameters and moved_lens(told.intrinsic_parameters, self._steps)
        if given is not None:
            lens = IntrinsicParameters(given.width_px, given.height_px, given.fx, given.fy, given.ppx, given.ppy)
        turned = any(isinstance(one, Rotate) for one in self._steps)
        bend = None if turned else told.distortion_parameters  # the tangential part would have to be rotated too
        if (own := config.distortion_parameters) is not None:
            bend = DistortionParameters("brown_conrady", (own.rk1, own.rk2, own.rk3, own.tp1, own.tp2))
        mime_types = told.mime_types
        if self._steps:
            mime_types = tuple(dict.fromkeys(PNG if one == PNG else JPEG for one in mime_types if one != DEPTH))
        return replace(
            told, supports_pcd=False, intrinsic_parameters=lens, distortion_parameters=bend, mime_types=mime_types
        )


def _counts(one: Detections | Classifications, label: str, confidence: float) -> bool:
    return confidence >= one.confidence_threshold and (not one.valid_labels or label in one.valid_labels)


def _in_pixels(found: Detection, size: tuple[int, int]) -> Detection:
    """Return the detection with a box in pixels, converted from fractions if necessary."""
    if found.x_min is not None or found.x_min_normalized is None:
        return found
    width, height = size
    return replace(
        found,
        x_min=round(found.x_min_normalized * width),
        y_min=round((found.y_min_normalized or 0) * height),
        x_max=round((found.x_max_normalized or 0) * width),
        y_max=round((found.y_max_normalized or 0) * height),
    )


def _bounding_box(found: Detection, size: tuple[int, int]) -> BoundingBox:
    width, height = size
    return BoundingBox(
        label=found.class_name,
        x_min_normalized=(found.x_min or 0) / width,
        y_min_normalized=(found.y_min or 0) / height,
        x_max_normalized=(found.x_max or 0) / width,
        y_max_normalized=(found.y_max or 0) / height,
        confidence=found.confidence,
    )
