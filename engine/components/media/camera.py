"""Camera: images and point clouds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import ClassVar

from engine.resource import Component, Extra
from schema import API, Orientation, Vector3


@dataclass(frozen=True, slots=True)
class BoundingBox:
    """A labelled rectangle; corners are fractions (0 to 1) of the image's width and height, from the top left."""

    id: str = ""
    label: str = ""
    x_min_normalized: float = 0.0
    y_min_normalized: float = 0.0
    x_max_normalized: float = 0.0
    y_max_normalized: float = 0.0
    confidence: float | None = None


@dataclass(frozen=True, slots=True)
class ImageClassification:
    """A label of a whole image; `confidence` is 0 to 1."""

    id: str = ""
    label: str = ""
    confidence: float | None = None


@dataclass(frozen=True, slots=True)
class Annotations:
    """Labelled objects in an image, and labels of the whole image."""

    bboxes: Sequence[BoundingBox] = ()
    classifications: Sequence[ImageClassification] = ()


@dataclass(frozen=True, slots=True)
class Image:
    """An encoded image (`image/jpeg`, `image/png`, ...) and the name of the camera's sensor that took it."""

    image: bytes
    mime_type: str = "image/jpeg"
    source_name: str = ""
    annotations: Annotations | None = None


@dataclass(frozen=True, slots=True)
class ResponseMetadata:
    """Time of capture."""

    captured_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Images:
    """Images taken at the same time."""

    images: Sequence[Image]
    response_metadata: ResponseMetadata = field(default_factory=ResponseMetadata)


@dataclass(frozen=True, slots=True)
class PointCloud:
    """An encoded point cloud; `pointcloud/pcd` is the usual format."""

    point_cloud: bytes
    mime_type: str = "pointcloud/pcd"


@dataclass(frozen=True, slots=True)
class IntrinsicParameters:
    """Pinhole model of a camera, in pixels."""

    width_px: int = 0
    height_px: int = 0
    focal_x_px: float = 0.0
    focal_y_px: float = 0.0
    center_x_px: float = 0.0
    center_y_px: float = 0.0


@dataclass(frozen=True, slots=True)
class DistortionParameters:
    """Lens distortion: the name of a model (`brown_conrady`, ...) and its parameters."""

    model: str = ""
    parameters: Sequence[float] = ()


@dataclass(frozen=True, slots=True)
class ExtrinsicParameters:
    """Pose of the camera relative to its reference frame: translation (mm) and orientation."""

    translation: Vector3 = field(default_factory=Vector3)
    orientation: Orientation = field(default_factory=Orientation)


@dataclass(frozen=True, slots=True)
class CameraProperties:
    """What a camera supports; `frame_rate` is in images per second."""

    supports_pcd: bool = False
    intrinsic_parameters: IntrinsicParameters | None = None
    distortion_parameters: DistortionParameters | None = None
    mime_types: Sequence[str] = ()
    frame_rate: float | None = None
    extrinsic_parameters: ExtrinsicParameters | None = None
    default_reference_frame: str = ""


class Camera(Component):
    """A source of images and point clouds."""

    API: ClassVar[API] = API("rdk", "component", "camera")

    async def get_images(self, filter_source_names: Sequence[str] = (), *, extra: Extra = None) -> Images:
        """Take an image with each sensor in `filter_source_names` (empty: all sensors) at the same time."""
        raise NotImplementedError

    async def get_point_cloud(self, mime_type: str = "", *, extra: Extra = None) -> PointCloud:
        """Return the next point cloud in the format `mime_type` (empty: the camera's own format)."""
        raise NotImplementedError

    async def get_properties(self) -> CameraProperties:
        """Return what this camera can do."""
        raise NotImplementedError
