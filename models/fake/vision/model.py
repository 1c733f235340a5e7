"""A simulated vision service, which sees the same object in every picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from engine import (
    Camera,
    CaptureAll,
    Classification,
    Detection,
    Detection3D,
    Extra,
    Image,
    ObjectPointClouds,
    Vision,
    VisionProperties,
    model,
)
from models.fake.common.simulated import SimulatedResource

LABEL: Final = "object"
DETECTION: Final = Detection(25, 25, 75, 75, 0.9, LABEL, 0.25, 0.25, 0.75, 0.75)  # of a picture of 100 by 100 pixels
CLASSIFICATION: Final = Classification(LABEL, 0.9)


@model("rdk:builtin:fake")
class FakeVision(SimulatedResource, Vision):
    """Needs no camera. If a call names one that is ready, `capture_all_from_camera` returns its picture."""

    async def get_detections(
        self, image: bytes = b"", width: int = 0, height: int = 0, mime_type: str = "", *, extra: Extra = None
    ) -> Sequence[Detection]:
        """Return an object in the middle; its box in pixels is that of a picture of 100 by 100."""
        await self.access()
        return [DETECTION]

    async def get_detections_from_camera(self, camera_name: str = "", *, extra: Extra = None) -> Sequence[Detection]:
        """Return an object in the middle."""
        await self.access()
        return [DETECTION]

    async def get_classifications(
        self,
        image: bytes = b"",
        width: int = 0,
        height: int = 0,
        mime_type: str = "",
        n: int = 0,
        *,
        extra: Extra = None,
    ) -> Sequence[Classification]:
        """Return one label."""
        await self.access()
        return [CLASSIFICATION]

    async def get_classifications_from_camera(
        self, camera_name: str = "", n: int = 0, *, extra: Extra = None
    ) -> Sequence[Classification]:
        """Return one label."""
        await self.access()
        return [CLASSIFICATION]

    async def get_object_point_clouds(
        self, camera_name: str = "", mime_type: str = "", *, extra: Extra = None
    ) -> ObjectPointClouds:
        """Return no objects."""
        await self.access()
        return ObjectPointClouds()

    async def get_detections_3d(self, camera_name: str = "", *, extra: Extra = None) -> Sequence[Detection3D]:
        """Return no objects."""
        await self.access()
        return []

    async def get_properties(self, *, extra: Extra = None) -> VisionProperties:
        """Report detections and classifications."""
        await self.access()
        return VisionProperties(classifications_supported=True, detections_supported=True)

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
        """Return the requested results, and the picture of the camera if there is one."""
        await self.access()
        return CaptureAll(
            await self._picture(camera_name) if return_image else None,
            [DETECTION] if return_detections else (),
            [CLASSIFICATION] if return_classifications else (),
        )

    async def _picture(self, camera_name: str) -> Image | None:
        for full, door in self.others(Camera.API).items():
            if camera_name in (full.short, str(full)):
                async with door.use() as camera:
                    assert isinstance(camera, Camera)
                    images = (await camera.get_images()).images
                return images[0] if images else None
        return None
