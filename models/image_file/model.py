"""Camera `image_file`: a camera that returns the content of image files."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import ClassVar, Final

import trio

from engine import (
    Attributes,
    Camera,
    CameraProperties,
    Context,
    DistortionParameters,
    Extra,
    Image,
    Images,
    IntrinsicParameters,
    PointCloud,
    ResponseMetadata,
    Unsupported,
    mime_type,
    model,
)
from models.image_file.attributes import ImageFileConfig
from schema import ErrorKind, MachineError

NO_FILE: Final = (
    "configure color_image_file_path (or color_path), depth_image_file_path (or depth_path), or preloaded_image"
)
PRELOADED: Final = "preloaded"  # source name of a built-in image
PCD: Final = "pointcloud/pcd"
LARGEST: Final = 64 * 1024 * 1024  # bytes; larger files are rejected


@dataclass(slots=True)
class WatchedFile:
    """The content of a file, read again when its time, size or inode changes."""

    path: Path
    _stamp: tuple[int, int, int] | None = None
    _data: bytes = b""
    changed: datetime = datetime.min

    def read(self) -> bytes:
        """Return the current content. MachineError if it is too large or cannot be read."""
        try:
            stat = os.stat(self.path)
            stamp = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
            if stamp != self._stamp:
                if stat.st_size > LARGEST:
                    raise MachineError(
                        f"{self.path} is too large: {stat.st_size} bytes",
                        kind=ErrorKind.PRECONDITION,
                        remedy=f"use at most {LARGEST} bytes",
                    )
                self._data = self.path.read_bytes()
                self._stamp = stamp
                self.changed = datetime.fromtimestamp(stat.st_mtime, UTC)
        except OSError as error:
            raise MachineError(
                f"{self.path}: {error.strerror}", kind=ErrorKind.UNAVAILABLE, remedy="put a readable file there"
            ) from error
        return self._data


def drawn(name: str) -> bytes:
    """Return a built-in image as PNG: a drawing in place of the photograph of the reference."""
    from PIL import Image as Picture
    from PIL import ImageDraw

    picture = Picture.new("RGB", (640, 480), "#d9d4c7")
    draw = ImageDraw.Draw(picture)
    for shape, box, colour in DRAWINGS[name]:
        (draw.ellipse if shape == "ellipse" else draw.rectangle)(box, fill=colour)
    buffer = io.BytesIO()
    picture.save(buffer, "png")
    return buffer.getvalue()


_PERSON: Final = (("ellipse", (30, 0, 70, 40), "#c58c6d"), ("rectangle", (20, 45, 80, 150), "#46618c"))
DRAWINGS: Final[Mapping[str, Sequence[tuple[str, tuple[int, int, int, int], str]]]] = {
    "pizza": (
        ("ellipse", (120, 40, 520, 440), "#b5762f"),
        ("ellipse", (145, 65, 495, 415), "#e8b64c"),
        *(
            ("ellipse", (x, y, x + 50, y + 50), "#a8321f")
            for x, y in ((200, 130), (370, 130), (290, 220), (200, 310), (370, 310))
        ),
    ),
    "dog": (
        ("rectangle", (200, 220, 460, 340), "#8a5a33"),
        ("ellipse", (130, 140, 260, 270), "#8a5a33"),
        ("ellipse", (160, 180, 180, 200), "#1c1410"),
        ("ellipse", (125, 215, 150, 235), "#1c1410"),
        *(("rectangle", (x, 340, x + 25, 430), "#6f4727") for x in (210, 260, 380, 430)),
    ),
    "crowd": tuple(
        (shape, (box[0] + x, box[1] + y, box[2] + x, box[3] + y), colour)
        for y in (40, 240)
        for x in range(20, 600, 110)
        for shape, box, colour in _PERSON
    ),
}
"""Shapes of each drawing; coordinates in pixels."""


@model("rdk:builtin:image_file")
class ImageFile(Camera):
    """Returns images unchanged from the files; captured_at is the time when the newest of them was written."""

    Config: ClassVar[type[Attributes]] = ImageFileConfig

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        config: ImageFileConfig = self.attributes
        self._files = {name: WatchedFile(Path(path).expanduser()) for name, path in config.sources().items()}
        self._preloaded = drawn(config.preloaded_image) if config.preloaded_image else b""
        self._sources = [*([PRELOADED] if self._preloaded else []), *self._files]
        self._cloud = WatchedFile(Path(config.point_cloud).expanduser()) if config.point_cloud else None

    async def get_images(self, filter_source_names: Sequence[str] = (), *, extra: Extra = None) -> Images:
        """Return images of the sources `color`, `depth` and `preloaded`."""
        await trio.lowlevel.checkpoint()
        if not self._sources and self._cloud is None:
            raise Unsupported(f"{self.name} has no image", remedy=NO_FILE)
        for name in filter_source_names:
            if name not in self._sources:
                raise MachineError(
                    f"{self.name} has no source {name!r}",
                    kind=ErrorKind.INVALID,
                    remedy=f"use one of: {', '.join(self._sources)}",
                )
        chosen = [name for name in self._files if not filter_source_names or name in filter_source_names]
        images = []
        if self._preloaded and (not filter_source_names or PRELOADED in filter_source_names):
            images.append(Image(self._preloaded, "image/png", PRELOADED))
        for name in chosen:
            data = self._files[name].read()
            images.append(Image(data, mime_type(data), name))
        newest = max((self._files[name].changed for name in chosen), default=None)
        return Images(images, ResponseMetadata(newest))

    async def get_point_cloud(self, mime_type: str = "", *, extra: Extra = None) -> PointCloud:
        """Return the content of the configured file."""
        await trio.lowlevel.checkpoint()
        if self._cloud is None:
            raise Unsupported(f"{self.name} has no point cloud", remedy="configure pointcloud_file_path")
        if mime_type not in ("", PCD):
            raise MachineError(f"{mime_type} is not supported", kind=ErrorKind.INVALID, remedy=f"use {PCD}")
        return PointCloud(self._cloud.read(), PCD)

    async def get_properties(self) -> CameraProperties:
        """Return the configured parameters and the MIME types of the current files."""
        await trio.lowlevel.checkpoint()
        config: ImageFileConfig = self.attributes
        lens = config.camera_parameters or config.intrinsic_parameters
        distortion = config.distortion_parameters
        return CameraProperties(
            supports_pcd=self._cloud is not None,
            intrinsic_parameters=None
            if lens is None
            else IntrinsicParameters(lens.width_px, lens.height_px, lens.fx, lens.fy, lens.ppx, lens.ppy),
            distortion_parameters=None
            if distortion is None
            else DistortionParameters(
                "brown_conrady", (distortion.rk1, distortion.rk2, distortion.rk3, distortion.tp1, distortion.tp2)
            ),
            mime_types=tuple(
                dict.fromkeys(
                    mime_type(data)
                    for data in (self._preloaded, *(file.read() for file in self._files.values()))
                    if data
                )
            ),
        )
