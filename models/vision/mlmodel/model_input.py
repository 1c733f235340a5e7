"""Conversion of a picture to the input tensor of a model, and of coordinates in the tensor back to the picture.

Pure, except for Pillow, which processes the pixels; no numeric library is needed.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from engine import FlatTensor, TensorInfo
from models.mlmodel.tensors import tensor
from models.vision.common.results import Box
from schema import ErrorKind, MachineError

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

GREY: Final = (114, 114, 114)  # of the bars of a letterboxed picture, with which YOLO models are trained
_FLOATS: Final = frozenset({"float32", "float16"})  # a float16 model receives a float32 tensor
_CHANNELS: Final = (1, 3)


@dataclass(frozen=True, slots=True)
class Scale:
    """The conversion of a pixel's value (0 to 255) in each channel: `(value - mean) / deviation`."""

    mean: tuple[float, float, float] = (0.0, 0.0, 0.0)
    deviation: tuple[float, float, float] = (1.0, 1.0, 1.0)


@dataclass(frozen=True, slots=True)
class InputShape:
    """The input format of a model; a width or height of 0 is variable."""

    name: str
    data_type: str = "uint8"
    width: int = 0
    height: int = 0
    channels: int = 3
    planar: bool = False  # channels, rows, columns; otherwise rows, columns, channels
    batched: bool = True  # with a leading dimension of 1


@dataclass(frozen=True, slots=True)
class Placement:
    """The position of the picture in the tensor: the margin on each side, as a fraction of the tensor."""

    x: float = 0.0
    y: float = 0.0

    def back(self, box: Box) -> Box:
        """Convert a box from fractions of the tensor to fractions of the picture."""
        across, down = 1 - 2 * self.x, 1 - 2 * self.y
        return Box(
            (box.x_min - self.x) / across,
            (box.y_min - self.y) / down,
            (box.x_max - self.x) / across,
            (box.y_max - self.y) / down,
            box.score,
            box.category,
        )


def shape_of(info: TensorInfo) -> InputShape:
    """Parse the metadata of an input. PRECONDITION if it does not accept a picture."""
    if info.data_type and info.data_type != "uint8" and info.data_type not in _FLOATS:
        raise _unsuitable(info, f"its type is {info.data_type}", "use a model that takes uint8 or float32")
    data_type = "float32" if info.data_type in _FLOATS else "uint8"
    sizes = list(info.shape)
    if not sizes:
        return InputShape(info.name, data_type)
    batched = len(sizes) == 4
    if batched and sizes.pop(0) > 1:
        raise _unsuitable(info, f"it takes {info.shape[0]} images at once", "use a model with a batch of one")
    if len(sizes) != 3:
        raise _unsuitable(
            info, f"its shape is {list(info.shape)}", "use [1, height, width, 3] or [1, 3, height, width]"
        )
    planar = sizes[2] not in _CHANNELS and sizes[0] in _CHANNELS
    if not planar and sizes[2] > 0 and sizes[2] not in _CHANNELS:
        raise _unsuitable(info, f"it takes {sizes[2]} channels", "use a model for images with 1 or 3 channels")
    channels, height, width = sizes if planar else (sizes[2], sizes[0], sizes[1])
    channels = channels if channels > 0 else 3
    return InputShape(info.name, data_type, max(width, 0), max(height, 0), channels, planar, batched)


def _unsuitable(info: TensorInfo, reason: str, remedy: str) -> MachineError:
    return MachineError(
        f"the model's input {info.name!r} does not accept images: {reason}", kind=ErrorKind.PRECONDITION, remedy=remedy
    )


def place(picture: Picture, shape: InputShape, *, letterbox: bool) -> tuple[Picture, Placement]:
    """Return the picture in the size of the tensor: stretched, or with its proportions kept and gray bars added."""
    from PIL import Image

    width, height = shape.width or picture.width, shape.height or picture.height
    if not letterbox or width * picture.height == height * picture.width:
        resized = picture if picture.size == (width, height) else picture.resize((width, height), _BILINEAR)
        return resized, Placement()
    factor = min(width / picture.width, height / picture.height)
    inner = max(1, round(picture.width * factor)), max(1, round(picture.height * factor))
    left, top = (width - inner[0]) // 2, (height - inner[1]) // 2
    boxed = Image.new("RGB", (width, height), GREY)
    boxed.paste(picture.resize(inner, _BILINEAR), (left, top))
    return boxed, Placement((width - inner[0]) / 2 / width, (height - inner[1]) / 2 / height)


_BILINEAR: Final = 2  # PIL.Image.Resampling.BILINEAR, without an import


def fill(picture: Picture, shape: InputShape, scale: Scale, *, bgr: bool = False) -> FlatTensor:
    """Convert a picture that already has the size of the tensor."""
    planes = [picture.convert("L")] if shape.channels == 1 else list(picture.split())
    if bgr:
        planes.reverse()
    size = [picture.height, picture.width]
    sizes = [shape.channels, *size] if shape.planar else [*size, shape.channels]
    if shape.batched:
        sizes.insert(0, 1)
    if shape.data_type == "uint8":
        return tensor("uint8", sizes, _bytes(planes, planar=shape.planar))
    return tensor("float32", sizes, _floats(planes, scale, planar=shape.planar))


def _bytes(planes: Sequence[Picture], *, planar: bool) -> bytes:
    if planar:
        return b"".join(plane.tobytes() for plane in planes)
    interleaved = bytearray(len(planes) * planes[0].width * planes[0].height)
    for index, plane in enumerate(planes):
        interleaved[index :: len(planes)] = plane.tobytes()
    return bytes(interleaved)


def _floats(planes: Sequence[Picture], scale: Scale, *, planar: bool) -> array[Any]:
    data = array("f")
    parts = []
    for plane, mean, deviation in zip(planes, scale.mean, scale.deviation, strict=False):
        factor, offset = 1 / deviation, -mean / deviation
        part = array("f")
        part.frombytes(plane.convert("F").point(lambda value, f=factor, o=offset: value * f + o).tobytes())
        parts.append(part)
    if planar:
        for part in parts:
            data.extend(part)
        return data
    data.frombytes(bytes(4 * len(parts) * len(parts[0])))
    for index, part in enumerate(parts):
        data[index :: len(parts)] = part
    return data
