"""Camera `webcam`: a USB camera, or any other camera that is a video device of the system."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

import trio

from engine import (
    Attributes,
    Camera,
    CameraProperties,
    DistortionParameters,
    Extra,
    Image,
    Images,
    IntrinsicParameters,
    PointCloud,
    ResponseMetadata,
    Started,
    Unsupported,
    model,
)
from hal import Fault, HalError
from hal.ports import Video
from models.devices.webcam.attributes import WebcamConfig
from schema import ErrorKind, MachineError

SOURCE: Final = "color"
JPEG: Final = "image/jpeg"
FIRST_FRAME_LIMIT: Final = 10.0  # limit in seconds for the first frame: some cameras adjust themselves first
STALL_LIMIT: Final = 5.0  # seconds without a frame after which the camera has failed, but at least ten frame periods


@model("rdk:builtin:webcam")
class Webcam(Camera):
    """Captures continuously; a call returns the latest frame. Ready when the first frame has arrived."""

    Config: ClassVar[type[Attributes]] = WebcamConfig
    attributes: WebcamConfig
    _video: Video  # set by run

    async def run(self, *, task_status: Started) -> None:
        """Run the driver. HalError: GONE if the camera disappears, TIMEOUT if it stops delivering frames."""
        config = self.attributes
        async with self.hardware.video(config.video_path, config.settings()) as self._video:
            await self._frame(FIRST_FRAME_LIMIT)
            self.log.info("the camera delivers frames", camera=self._video.name, mode=str(self._video.mode))
            task_status.started()
            rate = self._video.mode.rate
            limit = max(STALL_LIMIT, 10 / rate if rate else 0.0)
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
        """Return the latest frame, with the source name `color` and its capture time."""
        if filter_source_names and SOURCE not in filter_source_names:
            raise MachineError(
                f"{self.name} has no source {', '.join(map(repr, filter_source_names))}",
                kind=ErrorKind.INVALID,
                remedy=f"use {SOURCE}, or no name for all sources",
            )
        still = await self._video.still()
        return Images([Image(still.jpeg, JPEG, SOURCE)], ResponseMetadata(still.captured_at))

    async def get_point_cloud(self, mime_type: str = "", *, extra: Extra = None) -> PointCloud:
        """Raise Unsupported: the camera has no depth."""
        raise Unsupported(f"{self.name} has no point cloud")

    async def get_properties(self) -> CameraProperties:
        """Return the configured camera parameters and the frame rate negotiated with the camera."""
        await trio.lowlevel.checkpoint()
        lens, distortion = self.attributes.intrinsic_parameters, self.attributes.distortion_parameters
        return CameraProperties(
            intrinsic_parameters=None
            if lens is None
            else IntrinsicParameters(lens.width_px, lens.height_px, lens.fx, lens.fy, lens.ppx, lens.ppy),
            distortion_parameters=None
            if distortion is None
            else DistortionParameters(
                "brown_conrady", (distortion.rk1, distortion.rk2, distortion.rk3, distortion.tp1, distortion.tp2)
            ),
            mime_types=(JPEG,),
            frame_rate=self._video.mode.rate or None,
        )

    async def get_status(self) -> Mapping[str, Any]:
        """Return the camera, the negotiated mode, and the number of frames received."""
        await trio.lowlevel.checkpoint()
        return {"camera": self._video.name, "mode": str(self._video.mode), "frames": self._video.frames}
