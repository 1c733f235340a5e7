"""A simulated camera above the simulated world."""

from __future__ import annotations

import io
import struct
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import ClassVar, Final

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
    model,
)
from hal.sim import render_bench
from models.fake.camera.attributes import FakeCameraConfig
from models.fake.common.simulated import SimulatedResource
from schema import ErrorKind, MachineError

SOURCE: Final = "color"
PCD: Final = "pointcloud/pcd"
HEIGHT_M: Final = 1.0  # of the camera above the ground
GRID: Final = 64  # points along the longer side of a point cloud
JPEG_QUALITY: Final = 85


@model("rdk:builtin:fake")
class FakeCamera(SimulatedResource, Camera):
    """Looks straight down from one meter; the ground is a plane."""

    Config: ClassVar[type[Attributes]] = FakeCameraConfig

    _first_image: bytes | None = None

    async def get_images(self, filter_source_names: Sequence[str] = (), *, extra: Extra = None) -> Images:
        """Return an image of the current state; of the first state if `animated` is false."""
        await self.access()
        config: FakeCameraConfig = self.attributes
        stamp = ResponseMetadata(datetime.now(UTC))
        if filter_source_names and SOURCE not in filter_source_names:
            raise MachineError(
                f"{self.name} has no source {', '.join(map(repr, filter_source_names))}",
                kind=ErrorKind.INVALID,
                remedy=f"use {SOURCE}, or no name for all sources",
            )
        data = self._first_image
        if data is None or config.animated:
            buffer = io.BytesIO()
            render_bench(self.world, *config.size).save(buffer, config.format, quality=JPEG_QUALITY)
            data = self._first_image = buffer.getvalue()
        return Images([Image(data, f"image/{config.format}", SOURCE)], stamp)

    def _intrinsics(self) -> IntrinsicParameters:
        """Return the parameters of a lens for which one pixel is one millimeter wide at one meter."""
        config: FakeCameraConfig = self.attributes
        focal = HEIGHT_M * 1000.0
        width, height = config.size
        return IntrinsicParameters(width, height, focal, focal, width / 2, height / 2)

    async def get_point_cloud(self, mime_type: str = "", *, extra: Extra = None) -> PointCloud:
        """Return the ground plane in the colors of the image; meters in the camera's frame, z points away from it."""
        if mime_type not in ("", PCD):
            raise MachineError(f"{mime_type} is not supported", kind=ErrorKind.INVALID, remedy=f"use {PCD}")
        await self.access()
        lens = self._intrinsics()
        step = max(1, max(lens.width_px, lens.height_px) // GRID)
        pixels = memoryview(render_bench(self.world, lens.width_px, lens.height_px).tobytes())
        points = bytearray()
        for v in range(0, lens.height_px, step):
            for u in range(0, lens.width_px, step):
                red, green, blue = pixels[3 * (v * lens.width_px + u) :][:3]
                x = (u - lens.center_x_px) / lens.focal_x_px * HEIGHT_M
                y = (v - lens.center_y_px) / lens.focal_y_px * HEIGHT_M
                points += struct.pack("<fffI", x, y, HEIGHT_M, red << 16 | green << 8 | blue)
        return PointCloud(pcd_header(len(points) // 16) + bytes(points), PCD)

    async def get_properties(self) -> CameraProperties:
        """Return the intrinsic parameters if `model` is true; no distortion."""
        await self.access()
        config: FakeCameraConfig = self.attributes
        return CameraProperties(
            supports_pcd=True,
            intrinsic_parameters=self._intrinsics() if config.model else None,
            distortion_parameters=DistortionParameters("no_distortion") if config.model else None,
            mime_types=(f"image/{config.format}",),
        )


def pcd_header(count: int) -> bytes:
    """Return the header of a binary PCD file of `count` colored points."""
    return (
        "VERSION .7\nFIELDS x y z rgb\nSIZE 4 4 4 4\nTYPE F F F I\nCOUNT 1 1 1 1\n"
        f"WIDTH {count}\nHEIGHT 1\nVIEWPOINT 0 0 0 1 0 0 0\nPOINTS {count}\nDATA binary\n"
    ).encode()
