"""Attributes of `image_file`. Pure."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from schema import Attributes

Size = Annotated[int, msgspec.Meta(ge=1)]

Focal = Annotated[float, msgspec.Meta(gt=0)]


class Intrinsics(msgspec.Struct, kw_only=True, frozen=True):
    """Parameters of a pinhole camera model, in pixels."""

    width_px: Size  # width of the image
    height_px: Size  # height of the image
    fx: Focal  # focal length along the width
    fy: Focal  # focal length along the height
    ppx: float  # center along the width
    ppy: float  # center along the height


class Distortion(msgspec.Struct, kw_only=True, frozen=True):
    """Parameters of Brown-Conrady lens distortion."""

    rk1: float = 0.0  # radial
    rk2: float = 0.0  # radial
    rk3: float = 0.0  # radial
    tp1: float = 0.0  # tangential
    tp2: float = 0.0  # tangential


class ImageFileConfig(Attributes, kw_only=True, frozen=True):
    """Attributes of the image file camera. Paths may begin with ~."""

    color_image_file_path: str = ""  # a color image
    color_path: str = ""  # another name of color_image_file_path
    depth_image_file_path: str = ""  # a depth image
    depth_path: str = ""  # another name of depth_image_file_path
    pointcloud_file_path: str = ""  # a PCD file
    pointcloud_path: str = ""  # another name of pointcloud_file_path
    camera_parameters: Intrinsics | None = None  # reported by get_properties
    intrinsic_parameters: Intrinsics | None = None  # another name of camera_parameters
    distortion_parameters: Distortion | None = None  # reported by get_properties
    preloaded_image: Literal["", "pizza", "dog", "crowd"] = ""  # a built-in image instead of a file

    def sources(self) -> dict[str, str]:
        """Return the paths of the images by source name."""
        paths = {
            "color": self.color_image_file_path or self.color_path,
            "depth": self.depth_image_file_path or self.depth_path,
        }
        return {name: path for name, path in paths.items() if path}

    @property
    def point_cloud(self) -> str:
        """Path of the point cloud; empty if not configured."""
        return self.pointcloud_file_path or self.pointcloud_path
