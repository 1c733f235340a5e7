"""Base of the vision services: access to cameras, a worker thread for pictures, and the calls of the API."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeVar

import trio

from engine import (
    Attributes,
    Camera,
    CaptureAll,
    Classification,
    Context,
    Detection,
    Detection3D,
    Extra,
    Image,
    ObjectPointClouds,
    ResourceAccess,
    Started,
    Unsupported,
    Vision,
    VisionProperties,
)
from models.vision.common.attributes import SeeingConfig
from models.vision.common.pictures import DEPTH
from models.vision.common.results import most_likely
from schema import ErrorKind, MachineError
from schema.decoding import did_you_mean
from support import Worker

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Abilities:
    """The supported requests of a service."""

    detects: bool = False
    classifies: bool = False


class VisionService(Vision):
    """Base class of vision services. Derived classes set `abilities` and process one encoded image at a time."""

    Config: ClassVar[type[Attributes]] = SeeingConfig

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.abilities = Abilities()
        self._worker = Worker(str(self.name))

    async def prepare(self) -> None:
        """Set `abilities`, before the service is ready."""

    async def detect(self, image: bytes, mime_type: str) -> Sequence[Detection]:
        """Return the detections in an image, most confident first."""
        raise NotImplementedError

    async def classify(self, image: bytes, mime_type: str) -> Sequence[Classification]:
        """Return the labels of an image."""
        raise NotImplementedError

    async def run(self, *, task_status: Started) -> None:
        """Run the service; ready after `prepare`."""
        async with self._worker.opened():
            await self.prepare()
            task_status.started()
            await trio.sleep_forever()

    async def work(self, function: Callable[[], T]) -> T:
        """Run a blocking function in the worker thread."""
        return await self._worker.run(function)

    def _camera(self, name: str) -> ResourceAccess:
        camera_name: str = name or self.attributes.camera_name
        cameras = {full.short: door for full, door in self.others(Camera.API).items()}
        if not camera_name:
            raise MachineError(
                f"{self.name}: no camera is selected",
                kind=ErrorKind.INVALID,
                remedy="name a camera, or configure camera_name",
            )
        camera = cameras.get(camera_name.removeprefix(f"{Camera.API}/"))
        if camera is None:
            raise MachineError(
                f"{self.name}: no camera {camera_name!r} is ready",
                kind=ErrorKind.NOT_FOUND,
                remedy=did_you_mean(camera_name, cameras) or "check its state with `machine status`",
            )
        return camera

    async def _image(self, camera_name: str) -> Image:
        """Return the first color image of a camera. UNAVAILABLE if it returns none."""
        async with self._camera(camera_name).use() as camera:
            assert isinstance(camera, Camera)
            images = (await camera.get_images()).images
        for image in images:
            if image.mime_type != DEPTH:
                return image
        raise MachineError(f"{camera.name} returned no color image", kind=ErrorKind.UNAVAILABLE)

    def _require_detection(self) -> None:
        if not self.abilities.detects:
            raise Unsupported(f"{self.name} does not detect objects in images", remedy="request classifications")

    def _require_classification(self) -> None:
        if not self.abilities.classifies:
            raise Unsupported(f"{self.name} does not classify images", remedy="request detections")

    async def get_detections(
        self, image: bytes, width: int = 0, height: int = 0, mime_type: str = "", *, extra: Extra = None
    ) -> Sequence[Detection]:
        """Return the detections in an image, most confident first. Unsupported if the service only classifies."""
        self._require_detection()
        return await self.detect(image, mime_type)

    async def get_detections_from_camera(self, camera_name: str = "", *, extra: Extra = None) -> Sequence[Detection]:
        """Return the detections in an image of a camera, most confident first."""
        self._require_detection()
        image = await self._image(camera_name)
        return await self.detect(image.image, image.mime_type)

    async def get_classifications(
        self, image: bytes, width: int = 0, height: int = 0, mime_type: str = "", n: int = 0, *, extra: Extra = None
    ) -> Sequence[Classification]:
        """Return the `n` most likely labels of an image (0: all), best first. Unsupported if it only detects."""
        self._require_classification()
        return most_likely(await self.classify(image, mime_type), n)

    async def get_classifications_from_camera(
        self, camera_name: str = "", n: int = 0, *, extra: Extra = None
    ) -> Sequence[Classification]:
        """Return the `n` most likely labels of an image of a camera (0: all), best first."""
        self._require_classification()
        image = await self._image(camera_name)
        return most_likely(await self.classify(image.image, image.mime_type), n)

    async def get_object_point_clouds(
        self, camera_name: str = "", mime_type: str = "", *, extra: Extra = None
    ) -> ObjectPointClouds:
        """Raise Unsupported."""
        raise Unsupported(f"{self.name} does not process point clouds", remedy="request detections")

    async def get_detections_3d(self, camera_name: str = "", *, extra: Extra = None) -> Sequence[Detection3D]:
        """Raise Unsupported."""
        raise Unsupported(f"{self.name} processes images without depth", remedy="request detections")

    async def get_properties(self, *, extra: Extra = None) -> VisionProperties:
        """Return the abilities and the default camera."""
        await trio.lowlevel.checkpoint()
        return VisionProperties(
            classifications_supported=self.abilities.classifies,
            detections_supported=self.abilities.detects,
            default_camera=self.attributes.camera_name or None,
        )

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
        """Return the requested results for one image; unsupported ones are empty."""
        image = await self._image(camera_name)
        detections: Sequence[Detection] = ()
        labels: Sequence[Classification] = ()
        if return_detections and self.abilities.detects:
            detections = await self.detect(image.image, image.mime_type)
        if return_classifications and self.abilities.classifies:
            labels = most_likely(await self.classify(image.image, image.mime_type), 0)
        return CaptureAll(image if return_image else None, detections, labels)
