"""Camera `transform`: images of another camera, cropped, resized, rotated, or with results of vision services."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final

import trio

from engine import (
    Annotations,
    Attributes,
    BoundingBox,
    Camera,
    CameraProperties,
    Context,
    Detection,
    DistortionParameters,
    Extra,
    Image,
    ImageClassification,
    Images,
    IntrinsicParameters,
    PointCloud,
    Started,
    Unsupported,
    Vision,
    model,
)
from models.vision.common.pictures import DEPTH, JPEG, PNG, decode, encode
from models.vision.transform.coordinates import moved_annotations, moved_lens
from models.vision.transform.overlay import draw_classifications, draw_detections
from models.vision.transform.steps import Classifications, Detections, Rotate, Step
from schema import ErrorKind, MachineError
from support import Worker

if TYPE_CHECKING:
    from PIL.Image import Image as Picture
from models.vision.transform.attributes import TransformConfig

NO_ANNOTATIONS: Final = Annotations()


@model("rdk:builtin:transform")
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
        source_images = await self._source.get_images(filter_source_names, extra=extra)
        pictures = [image for image in source_images.images if image.mime_type != DEPTH]
        if source_images.images and not pictures:
            raise Unsupported(f"{self._source.name} returned only depth maps, which cannot be transformed")
        return Images([await self._transform(image) for image in pictures], source_images.response_metadata)

    async def _transform(self, image: Image) -> Image:
        if not self._steps:
            return image
        picture = await self._worker.run(partial(decode, image.image, image.mime_type))
        annotations = image.annotations or NO_ANNOTATIONS
        for step in self._steps:
            if isinstance(step, Detections):
                picture, annotations = await self._detect(step, picture, annotations)
            elif isinstance(step, Classifications):
                picture, annotations = await self._classify(step, picture, annotations)
            else:
                picture, annotations = await self._worker.run(partial(self._apply, step, picture, annotations))
        data, mime_type = await self._worker.run(partial(encode, picture, PNG if image.mime_type == PNG else JPEG))
        return Image(data, mime_type, image.source_name, None if annotations == NO_ANNOTATIONS else annotations)

    def _apply(self, step: Step, picture: Picture, annotations: Annotations) -> tuple[Picture, Annotations]:
        try:
            return step.apply(picture), moved_annotations(annotations, step, picture.size)
        except ValueError as error:
            raise MachineError(
                f"{self.name}: {error}", kind=ErrorKind.PRECONDITION, remedy="correct the pipeline"
            ) from error

    async def _detect(
        self, step: Detections, picture: Picture, annotations: Annotations
    ) -> tuple[Picture, Annotations]:
        data, mime_type = await self._worker.run(partial(encode, picture, JPEG))
        service = self.dependency(Vision, step.detector_name)
        results = await service.get_detections(data, picture.width, picture.height, mime_type)
        detections = [detection for detection in results if _passes(step, detection.class_name, detection.confidence)]
        detections = [_in_pixels(detection, picture.size) for detection in detections]
        boxes = [_bounding_box(detection, picture.size) for detection in detections]
        drawn = await self._worker.run(partial(draw_detections, picture, detections))
        return drawn, replace(annotations, bboxes=(*annotations.bboxes, *boxes))

    async def _classify(
        self, step: Classifications, picture: Picture, annotations: Annotations
    ) -> tuple[Picture, Annotations]:
        data, mime_type = await self._worker.run(partial(encode, picture, JPEG))
        service = self.dependency(Vision, step.classifier_name)
        results = await service.get_classifications(data, picture.width, picture.height, mime_type, 0)
        classifications = [
            classification
            for classification in results
            if _passes(step, classification.class_name, classification.confidence)
        ][: step.max_classifications]
        labels = [
            ImageClassification(label=classification.class_name, confidence=classification.confidence)
            for classification in classifications
        ]
        drawn = await self._worker.run(partial(draw_classifications, picture, classifications))
        return drawn, replace(annotations, classifications=(*annotations.classifications, *labels))

    async def get_point_cloud(self, mime_type: str = "", *, extra: Extra = None) -> PointCloud:
        """Raise Unsupported: the pipeline processes only pictures."""
        raise Unsupported(f"{self.name} has no point cloud", remedy=f"request it from {self._source.name}")

    async def get_properties(self) -> CameraProperties:
        """Return the properties of the source, with the lens transformed like the images, and configured values."""
        properties = await self._source.get_properties()
        config = self.attributes
        lens_config = config.intrinsic_parameters or config.camera_parameters
        lens = properties.intrinsic_parameters and moved_lens(properties.intrinsic_parameters, self._steps)
        if lens_config is not None:
            lens = IntrinsicParameters(
                lens_config.width_px,
                lens_config.height_px,
                lens_config.fx,
                lens_config.fy,
                lens_config.ppx,
                lens_config.ppy,
            )
        rotates = any(isinstance(step, Rotate) for step in self._steps)
        # After a rotation, the tangential part of the distortion would have to be rotated too.
        distortion = None if rotates else properties.distortion_parameters
        if (distortion_config := config.distortion_parameters) is not None:
            distortion = DistortionParameters(
                "brown_conrady",
                (
                    distortion_config.rk1,
                    distortion_config.rk2,
                    distortion_config.rk3,
                    distortion_config.tp1,
                    distortion_config.tp2,
                ),
            )
        mime_types = properties.mime_types
        if self._steps:
            mime_types = tuple(
                dict.fromkeys(PNG if mime_type == PNG else JPEG for mime_type in mime_types if mime_type != DEPTH)
            )
        return replace(
            properties,
            supports_pcd=False,
            intrinsic_parameters=lens,
            distortion_parameters=distortion,
            mime_types=mime_types,
        )


def _passes(step: Detections | Classifications, label: str, confidence: float) -> bool:
    return confidence >= step.confidence_threshold and (not step.valid_labels or label in step.valid_labels)


def _in_pixels(detection: Detection, size: tuple[int, int]) -> Detection:
    """Return the detection with a box in pixels, converted from fractions if necessary."""
    if detection.x_min is not None or detection.x_min_normalized is None:
        return detection
    width, height = size
    return replace(
        detection,
        x_min=round(detection.x_min_normalized * width),
        y_min=round((detection.y_min_normalized or 0) * height),
        x_max=round((detection.x_max_normalized or 0) * width),
        y_max=round((detection.y_max_normalized or 0) * height),
    )


def _bounding_box(detection: Detection, size: tuple[int, int]) -> BoundingBox:
    width, height = size
    return BoundingBox(
        label=detection.class_name,
        x_min_normalized=(detection.x_min or 0) / width,
        y_min_normalized=(detection.y_min or 0) / height,
        x_max_normalized=(detection.x_max or 0) / width,
        y_max_normalized=(detection.y_max or 0) / height,
        confidence=detection.confidence,
    )
