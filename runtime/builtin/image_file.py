"""Camera `image_file`: what it sees is in files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, ClassVar, Final

import msgspec
import trio

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
from runtime.resource import Attributes, Context, Extra, Unsupported
from schema.errors import ErrorKind, MachineError

PCD: Final = "pointcloud/pcd"
LARGEST: Final = 64 * 1024 * 1024  # bytes of a file that is still an image
_MAGIC: Final = (
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"RGBA", "image/vnd.viam.rgba"),
    (b"DEPTHMAP", "image/vnd.viam.dep"),
    (b"GIF8", "image/gif"),
    (b"qoif", "image/qoi"),
)

Size = Annotated[int, msgspec.Meta(ge=1)]
Focal = Annotated[float, msgspec.Meta(gt=0)]


class Intrinsics(msgspec.Struct, kw_only=True, frozen=True):
    """Pin-hole model in pixels."""

    width_px: Size  # width of the image
    height_px: Size  # height of the image
    fx: Focal  # focal length along the width
    fy: Focal  # focal length along the height
    ppx: float  # centre along the width
    ppy: float  # centre along the height


class Distortion(msgspec.Struct, kw_only=True, frozen=True):
    """Brown-Conrady lens distortion."""

    rk1: float = 0.0  # radial
    rk2: float = 0.0  # radial
    rk3: float = 0.0  # radial
    tp1: float = 0.0  # tangential
    tp2: float = 0.0  # tangential


class ImageFileConfig(Attributes, kw_only=True, frozen=True):
    """Attributes of the image file camera. Paths may begin with ~."""

    color_image_file_path: str = ""  # a colour image
    color_path: str = ""  # the same by its shorter name
    depth_image_file_path: str = ""  # a depth image
    depth_path: str = ""  # the same by its shorter name
    pointcloud_file_path: str = ""  # a PCD file
    pointcloud_path: str = ""  # the same by its shorter name
    camera_parameters: Intrinsics | None = None  # told by get_properties
    intrinsic_parameters: Intrinsics | None = None  # the same by its other name
    distortion_parameters: Distortion | None = None  # told by get_properties

    def __post_init__(self) -> None:
        if not (self.sources() or self.point_cloud):
            raise ValueError("no file is named; give color_path, depth_path or pointcloud_path")

    def sources(self) -> dict[str, str]:
        """Paths of the images by source name."""
        paths = {
            "color": self.color_image_file_path or self.color_path,
            "depth": self.depth_image_file_path or self.depth_path,
        }
        return {name: path for name, path in paths.items() if path}

    @property
    def point_cloud(self) -> str:
        """Path of the point cloud; empty if there is none."""
        return self.pointcloud_file_path or self.pointcloud_path


@dataclass(slots=True)
class WatchedFile:
    """A file's content, read again when its time, size or inode is another."""

    path: Path
    _stamp: tuple[int, int, int] | None = None
    _data: bytes = b""
    changed: datetime = datetime.min

    def read(self) -> bytes:
        """The content now; MachineError if it cannot be read."""
        try:
            stat = os.stat(self.path)
            stamp = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
            if stamp != self._stamp:
                if stat.st_size > LARGEST:
                    raise MachineError(
                        f"{self.path} has {stat.st_size} bytes",
                        kind=ErrorKind.PRECONDITION,
                        remedy=f"use at most {LARGEST}",
                    )
                self._data = self.path.read_bytes()
                self._stamp = stamp
                self.changed = datetime.fromtimestamp(stat.st_mtime, UTC)
        except OSError as error:
            raise MachineError(
                f"{self.path}: {error.strerror}", kind=ErrorKind.UNAVAILABLE, remedy="put a readable file there"
            ) from error
        return self._data


def mime_type(data: bytes) -> str:
    """By the first bytes; application/octet-stream if unknown."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((mime for magic, mime in _MAGIC if data.startswith(magic)), "application/octet-stream")


class ImageFile(Camera):
    """Images are handed out as they are in the files; captured_at is when the newest of them was written."""

    Config: ClassVar[type[Attributes]] = ImageFileConfig

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        config: ImageFileConfig = self.attributes
        self._files = {name: WatchedFile(Path(path).expanduser()) for name, path in config.sources().items()}
        self._cloud = WatchedFile(Path(config.point_cloud).expanduser()) if config.point_cloud else None

    async def get_images(self, filter_source_names: Sequence[str] = (), *, extra: Extra = None) -> Images:
        """Sources are `color` and `depth`."""
        await trio.lowlevel.checkpoint()
        for name in filter_source_names:
            if name not in self._files:
                raise MachineError(
                    f"{self.name} has no source {name!r}",
                    kind=ErrorKind.INVALID,
                    remedy=f"use one of: {', '.join(self._files)}",
                )
        chosen = [name for name in self._files if not filter_source_names or name in filter_source_names]
        images = []
        for name in chosen:
            data = self._files[name].read()
            images.append(Image(data, mime_type(data), name))
        newest = max((self._files[name].changed for name in chosen), default=None)
        return Images(images, ResponseMetadata(newest))

    async def get_point_cloud(self, mime_type: str = "", *, extra: Extra = None) -> PointCloud:
        """The configured file."""
        await trio.lowlevel.checkpoint()
        if self._cloud is None:
            raise Unsupported(f"{self.name} has no point cloud", remedy="configure pointcloud_path")
        if mime_type not in ("", PCD):
            raise MachineError(f"{mime_type} is not supported", kind=ErrorKind.INVALID, remedy=f"use {PCD}")
        return PointCloud(self._cloud.read(), PCD)

    async def get_properties(self) -> CameraProperties:
        """Parameters as configured, mime types as the files are now."""
        await trio.lowlevel.checkpoint()
        config: ImageFileConfig = self.attributes
        lens = config.camera_parameters or config.intrinsic_parameters
        bend = config.distortion_parameters
        return CameraProperties(
            supports_pcd=self._cloud is not None,
            intrinsic_parameters=None
            if lens is None
            else IntrinsicParameters(lens.width_px, lens.height_px, lens.fx, lens.fy, lens.ppx, lens.ppy),
            distortion_parameters=None
            if bend is None
            else DistortionParameters("brown_conrady", (bend.rk1, bend.rk2, bend.rk3, bend.tp1, bend.tp2)),
            mime_types=tuple(dict.fromkeys(mime_type(file.read()) for file in self._files.values())),
        )
