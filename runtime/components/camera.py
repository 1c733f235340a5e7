"""Camera: images and point clouds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import ClassVar

from runtime.resource import Component, Extra
from schema.geometry import Orientation, Vector3
from schema.names import API


@dataclass(frozen=True, slots=True)
class BoundingBox:
    """A labelled rectangle; corners are fractions of the image's width and height, 0 to 1 from the top left."""

    id: str = ""
    label: str = ""
    x_min_normalized: float = 0.0
    y_min_normalized: float = 0.0
    x_max_normalized: float = 0.0
    y_max_normalized: float = 0.0
    confidence: float | None = None


@dataclass(frozen=True, slots=True)
class Classification:
    """A label of a whole image; confidence from 0 to 1."""

    id: str = ""
    label: str = ""
    confidence: float | None = None


@dataclass(frozen=True, slots=True)
class Annotations:
    """What is known to be in an image."""

    bboxes: Sequence[BoundingBox] = ()
    classifications: Sequence[Classification] = ()


@dataclass(frozen=True, slots=True)
class Image:
    """An encoded image (`image/jpeg`, `image/png`, ...) and which sensor of the camera took it."""

    image: bytes
    mime_type: str = "image/jpeg"
    source_name: str = ""
    annotations: Annotations | None = None


@dataclass(frozen=True, slots=True)
class ResponseMetadata:
    """When the data was captured."""

    captured_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Images:
    """Images taken at one time."""

    images: Sequence[Image]
    response_metadata: ResponseMetadata = field(default_factory=ResponseMetadata)


@dataclass(frozen=True, slots=True)
class PointCloud:
    """An encoded point cloud; `pointcloud/pcd` is the usual format."""

    point_cloud: bytes
    mime_type: str = "pointcloud/pcd"


@dataclass(frozen=True, slots=True)
class IntrinsicParameters:
    """Pin-hole model of a camera, all in pixels."""

    width_px: int = 0
    height_px: int = 0
    focal_x_px: float = 0.0
    focal_y_px: float = 0.0
    center_x_px: float = 0.0
    center_y_px: float = 0.0


@dataclass(frozen=True, slots=True)
class DistortionParameters:
    """Lens distortion: a model's name (`brown_conrady`, ...) and its parameters."""

    model: str = ""
    parameters: Sequence[float] = ()


@dataclass(frozen=True, slots=True)
class ExtrinsicParameters:
    """Where the camera is relative to its reference frame: translation (mm) and orientation."""

    translation: Vector3 = field(default_factory=Vector3)
    orientation: Orientation = field(default_factory=Orientation)


@dataclass(frozen=True, slots=True)
class CameraProperties:
    """What a camera can do; `frame_rate` in images per second."""

    supports_pcd: bool = False
    intrinsic_parameters: IntrinsicParameters | None = None
    distortion_parameters: DistortionParameters | None = None
    mime_types: Sequence[str] = ()
    frame_rate: float | None = None
    extrinsic_parameters: ExtrinsicParameters | None = None
    default_reference_frame: str = ""


class Camera(Component):
    """Something that sees."""

    API: ClassVar[API] = API("rdk", "component", "camera")

    async def get_images(self, filter_source_names: Sequence[str] = (), *, extra: Extra = None) -> Images:
        """One image of each sensor named in `filter_source_names`, or of all if that is empty, taken at one time."""
        raise NotImplementedError

    async def get_point_cloud(self, mime_type: str = "", *, extra: Extra = None) -> PointCloud:
        """The next point cloud, as `mime_type` or in the camera's own format if that is empty."""
        raise NotImplementedError

    async def get_properties(self) -> CameraProperties:
        """What this camera can do."""
        raise NotImplementedError
