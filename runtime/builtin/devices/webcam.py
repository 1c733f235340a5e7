"""Camera `webcam`: a camera on USB, or any other that the system shows as a video device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

import trio

from catalogue.devices.webcam import WebcamConfig
from hal.errors import Fault, HalError
from hal.ports.video import Video
from runtime.components.camera import (
    Camera,
    CameraProperties,
    DistortionParameters,
    Image,
    Images,
    IntrinsicParameters,
    PointCloud,
    ResponseMetadata,
)
from runtime.resource import Attributes, Extra, Started, Unsupported
from schema.errors import ErrorKind, MachineError

SOURCE: Final = "color"
JPEG: Final = "image/jpeg"
FIRST: Final = 10.0  # seconds until the first frame, at most: some cameras adjust themselves before
STALL: Final = 5.0  # seconds, and ten frames, without a frame: then it hangs


class Webcam(Camera):
    """Frames arrive all the time; a call gets the newest. Ready when the first one has arrived."""

    Config: ClassVar[type[Attributes]] = WebcamConfig
    attributes: WebcamConfig
    _video: Video  # set by run

    async def run(self, *, task_status: Started) -> None:
        """Fails with HalError: gone when the camera vanishes, timeout when it delivers no more frames."""
        config = self.attributes
        async with self.hardware.video(config.video_path, config.settings()) as self._video:
            await self._frame(FIRST)
            self.log.info("the camera delivers", camera=self._video.name, mode=str(self._video.mode))
            task_status.started()
            rate = self._video.mode.rate
            limit = max(STALL, 10 / rate if rate else 0.0)
            while True:
                await self._frame(limit)

    async def _frame(self, limit: float) -> None:
        try:
            with trio.fail_after(limit):
                await self._video.arrived()
        except trio.TooSlowError:
            raise HalError(
                f"{self._video.name} has delivered no frame for {limit:g} s",
                Fault.TIMEOUT,
                remedy="unplug it and plug it in again; choose a smaller size or frame rate if that does not help",
            ) from None

    async def get_images(self, filter_source_names: Sequence[str] = (), *, extra: Extra = None) -> Images:
        """The newest frame, its source called `color`, and when the camera took it."""
        if filter_source_names and SOURCE not in filter_source_names:
            raise MachineError(
                f"{self.name} has no source {', '.join(map(repr, filter_source_names))}",
                kind=ErrorKind.INVALID,
                remedy=f"use {SOURCE}, or none for all",
            )
        still = await self._video.still()
        return Images([Image(still.jpeg, JPEG, SOURCE)], ResponseMetadata(still.captured_at))

    async def get_point_cloud(self, mime_type: str = "", *, extra: Extra = None) -> PointCloud:
        """It sees no depth."""
        raise Unsupported(f"{self.name} has no point cloud")

    async def get_properties(self) -> CameraProperties:
        """Parameters as configured, frame rate as agreed on with the camera."""
        await trio.lowlevel.checkpoint()
        lens, bend = self.attributes.intrinsic_parameters, self.attributes.distortion_parameters
        return CameraProperties(
            intrinsic_parameters=None
            if lens is None
            else IntrinsicParameters(lens.width_px, lens.height_px, lens.fx, lens.fy, lens.ppx, lens.ppy),
            distortion_parameters=None
            if bend is None
            else DistortionParameters("brown_conrady", (bend.rk1, bend.rk2, bend.rk3, bend.tp1, bend.tp2)),
            mime_types=(JPEG,),
            frame_rate=self._video.mode.rate or None,
        )

    async def get_status(self) -> Mapping[str, Any]:
        """Which camera it is, what was agreed on, and how many frames have arrived."""
        await trio.lowlevel.checkpoint()
        return {"camera": self._video.name, "mode": str(self._video.mode), "frames": self._video.frames}
