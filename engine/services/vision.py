"""Vision service: recognizes objects in images and in the view of a camera."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from engine.components.media.camera import Image
from engine.geometry.supplied import GeometriesInFrame, SuppliedFrame
from engine.resource import Extra, Service
from schema import API


@dataclass(frozen=True, slots=True)
class Detection:
    """A recognized object and its box, in pixels and as fractions (0 to 1) of the image, from the top left.

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
    """A label of a whole image; `confidence` is 0 to 1."""

    class_name: str = ""
    confidence: float = 0.0


@dataclass(frozen=True, slots=True)
class Detection3D:
    """An object in space: frames with shapes, and possible labels."""

    transforms: Sequence[SuppliedFrame] = ()
    classifications: Sequence[Classification] = ()
    metadata: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class PointCloudObject:
    """The points of an object, and the shapes around them."""

    point_cloud: bytes
    geometries: GeometriesInFrame = field(default_factory=GeometriesInFrame)


@dataclass(frozen=True, slots=True)
class ObjectPointClouds:
    """Objects, each a point cloud in the format `mime_type`."""

    mime_type: str = "pointcloud/pcd"
    objects: Sequence[PointCloudObject] = ()


@dataclass(frozen=True, slots=True)
class VisionProperties:
    """What a vision service supports, and the camera that it uses if a call names none."""

    classifications_supported: bool = False
    detections_supported: bool = False
    object_point_clouds_supported: bool = False
    default_camera: str | None = None
    detections_3d_supported: bool = False


@dataclass(frozen=True, slots=True)
class CaptureAll:
    """An image and the requested results, all for that same image."""

    image: Image | None = None
    detections: Sequence[Detection] = ()
    classifications: Sequence[Classification] = ()
    objects: Sequence[PointCloudObject] = ()
    detections_3d: Sequence[Detection3D] = ()
    extra: Mapping[str, Any] | None = None


class Vision(Service):
    """A service that recognizes objects. An empty camera name means the default camera."""

    API: ClassVar[API] = API("rdk", "service", "vision")

    async def get_detections(
        self, image: bytes, width: int = 0, height: int = 0, mime_type: str = "", *, extra: Extra = None
    ) -> Sequence[Detection]:
        """Detect objects in an encoded image, most confident first; `width` and `height` (pixels) may be 0."""
        raise NotImplementedError

    async def get_detections_from_camera(self, camera_name: str = "", *, extra: Extra = None) -> Sequence[Detection]:
        """Detect objects in the next image of a camera."""
        raise NotImplementedError

    async def get_classifications(
        self, image: bytes, width: int = 0, height: int = 0, mime_type: str = "", n: int = 0, *, extra: Extra = None
    ) -> Sequence[Classification]:
        """Return the `n` most likely labels of an encoded image, most likely first; 0 means all."""
        raise NotImplementedError

    async def get_classifications_from_camera(
        self, camera_name: str = "", n: int = 0, *, extra: Extra = None
    ) -> Sequence[Classification]:
        """Return the `n` most likely labels of the next image of a camera; 0 means all."""
        raise NotImplementedError

    async def get_object_point_clouds(
        self, camera_name: str = "", mime_type: str = "", *, extra: Extra = None
    ) -> ObjectPointClouds:
        """Return the objects in the next point cloud of a camera."""
        raise NotImplementedError

    async def get_detections_3d(self, camera_name: str = "", *, extra: Extra = None) -> Sequence[Detection3D]:
        """Detect objects in space, as seen by a camera."""
        raise NotImplementedError

    async def get_properties(self, *, extra: Extra = None) -> VisionProperties:
        """Return what this service can do."""
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
        """Take an image with a camera, and return the requested results for it."""
        raise NotImplementedError
