"""Vision service: what is in an image, or in what a camera sees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from runtime.components.camera import Image
from runtime.resource import Extra, Service
from runtime.robot.messages import Transform
from schema.geometry import Geometry
from schema.names import API


@dataclass(frozen=True, slots=True)
class Detection:
    """Something and where it is: a box in pixels, and the same as fractions (0 to 1) of the image, from the top left.

    Maxima are exclusive: x_max - x_min is the width. `confidence` is 0 to 1.
    """

    x_min: int | None = None
    y_min: int | None = None
    x_max: int | None = None
    y_max: int | None = None
    confidence: float = 0.0
    class_name: str = ""
    x_min_normalized: float | None = None
    y_min_normalized: float | None = None
    x_max_normalized: float | None = None
    y_max_normalized: float | None = None


@dataclass(frozen=True, slots=True)
class Classification:
    """What a whole image shows; `confidence` is 0 to 1."""

    class_name: str = ""
    confidence: float = 0.0


@dataclass(frozen=True, slots=True)
class Detection3D:
    """Something in space: frames with shapes, and what it may be."""

    transforms: Sequence[Transform] = ()
    classifications: Sequence[Classification] = ()
    metadata: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class GeometriesInFrame:
    """Shapes and the frame they are measured in."""

    reference_frame: str = ""
    geometries: Sequence[Geometry] = ()


@dataclass(frozen=True, slots=True)
class PointCloudObject:
    """The points of one object and the shapes around them."""

    point_cloud: bytes
    geometries: GeometriesInFrame = field(default_factory=GeometriesInFrame)


@dataclass(frozen=True, slots=True)
class ObjectPointClouds:
    """Objects, each as a point cloud of the format `mime_type`."""

    mime_type: str = "pointcloud/pcd"
    objects: Sequence[PointCloudObject] = ()


@dataclass(frozen=True, slots=True)
class VisionProperties:
    """What a vision service can do, and the camera it looks through if a call names none."""

    classifications_supported: bool = False
    detections_supported: bool = False
    object_point_clouds_supported: bool = False
    default_camera: str | None = None
    detections_3d_supported: bool = False


@dataclass(frozen=True, slots=True)
class CaptureAll:
    """One image and what was asked for of it; all of it is of that same image."""

    image: Image | None = None
    detections: Sequence[Detection] = ()
    classifications: Sequence[Classification] = ()
    objects: Sequence[PointCloudObject] = ()
    detections_3d: Sequence[Detection3D] = ()
    extra: Mapping[str, Any] | None = None


class Vision(Service):
    """Something that tells what it sees. An empty camera name means the default camera."""

    API: ClassVar[API] = API("rdk", "service", "vision")

    async def get_detections(
        self, image: bytes, width: int = 0, height: int = 0, mime_type: str = "", *, extra: Extra = None
    ) -> Sequence[Detection]:
        """Things in an encoded image, most confident first; `width` and `height` (pixels) as the caller knows them."""
        raise NotImplementedError

    async def get_detections_from_camera(self, camera_name: str = "", *, extra: Extra = None) -> Sequence[Detection]:
        """Things in the next image of a camera."""
        raise NotImplementedError

    async def get_classifications(
        self, image: bytes, width: int = 0, height: int = 0, mime_type: str = "", n: int = 0, *, extra: Extra = None
    ) -> Sequence[Classification]:
        """The `n` most likely labels of an encoded image, likeliest first; 0 means all."""
        raise NotImplementedError

    async def get_classifications_from_camera(
        self, camera_name: str = "", n: int = 0, *, extra: Extra = None
    ) -> Sequence[Classification]:
        """The `n` most likely labels of the next image of a camera; 0 means all."""
        raise NotImplementedError

    async def get_object_point_clouds(
        self, camera_name: str = "", mime_type: str = "", *, extra: Extra = None
    ) -> ObjectPointClouds:
        """Objects in the next point cloud of a camera."""
        raise NotImplementedError

    async def get_detections_3d(self, camera_name: str = "", *, extra: Extra = None) -> Sequence[Detection3D]:
        """Things in space as a camera sees them."""
        raise NotImplementedError

    async def get_properties(self, *, extra: Extra = None) -> VisionProperties:
        """What this service can do."""
        raise NotImplementedError

    async def capture_all_from_camera(
        self,
        camera_name: str = "",
        return_image: bool = False,
        return_classifications: bool = False,
        return_detections: bool = False,
        return_object_point_clouds: bool = False,
        return_detections_3d: bool = False,
        *,
        extra: Extra = None,
    ) -> CaptureAll:
        """One image of a camera and everything that is asked for of it."""
        raise NotImplementedError
