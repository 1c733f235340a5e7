"""Pictures of cameras as frames for encoders. Imports Pillow on first use; takes milliseconds, so use a worker."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rpc.peers import VideoFrame
from schema import ErrorKind, MachineError
from support.media import pictures

if TYPE_CHECKING:
    from PIL import Image

MAX_PIXELS: Final = 16_000_000  # of a camera's picture; larger ones are mistakes or attacks
MAX_SIDE: Final = 1920  # pixels of a frame; larger pictures are scaled down
MIN_SIDE: Final = 16
_LUMA: Final = [round(16 + value * 219 / 255) for value in range(256)]
_COLOUR: Final = [round(128 + (value - 128) * 224 / 255) for value in range(256)]
_TABLE: Final = _LUMA + _COLOUR + _COLOUR
"""From the full range of JPEG to the video range of Rec. ITU-R BT.601."""

Size = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Converted:
    """A frame, and the size of the picture that the camera has taken."""

    frame: VideoFrame
    taken: Size


def convert(data: bytes, size: Size | None) -> Converted:
    """Convert an encoded picture to a frame of `size`; without one, to the size that `fitted` returns.

    Raises MachineError (INVALID) if it is not a readable color image.
    """
    try:
        taken = pictures.size_of(data, max_pixels=MAX_PIXELS)
        target = size or fitted(taken)
        return Converted(_frame(pictures.decode(data, max_pixels=MAX_PIXELS, near=target, mode="YCbCr"), target), taken)
    except MachineError as error:
        raise _unsuitable(error) from None


def size_of(data: bytes) -> Size:
    """Return the size of an encoded picture, without decoding it. Raises MachineError (INVALID), see `convert`."""
    try:
        return pictures.size_of(data, max_pixels=MAX_PIXELS)
    except MachineError as error:
        raise _unsuitable(error) from None


def _unsuitable(error: MachineError) -> MachineError:
    return MachineError(
        f"the camera's picture cannot be shown: {error.message}",
        kind=ErrorKind.INVALID,
        remedy="use a camera that returns JPEG, PNG or WebP",
    )


def fitted(size: Size) -> Size:
    """Return the size at which a picture is shown: at most MAX_SIDE, in proportion, with even sides."""
    scale = min(1.0, MAX_SIDE / max(size))
    return _even(size[0] * scale), _even(size[1] * scale)


def sizes_of(size: Size) -> list[Size]:
    """Return the sizes to offer for a picture: `fitted`, and its half, quarter and eighth."""
    width, height = fitted(size)
    sizes = [(_even(width / divisor), _even(height / divisor)) for divisor in (1, 2, 4, 8)]
    return list(dict.fromkeys(sizes))


def notice(title: str, text: str, size: Size) -> VideoFrame:
    """Return a dark frame with a message, to be shown instead of the camera's picture."""
    from PIL import Image, ImageDraw, ImageFont

    image = Image.new("RGB", size, (24, 24, 24))
    scale = max(10, size[1] // 24)
    columns = max(8, int(size[0] * 0.9 / (scale * 0.55)))
    lines = [title, *textwrap.wrap(text, columns, max_lines=6)]
    ImageDraw.Draw(image).multiline_text(
        (size[0] * 0.05, size[1] * 0.3), "\n".join(lines), fill=(230, 230, 230), font=ImageFont.load_default(scale)
    )
    return _frame(image, size)


def _frame(image: Image.Image, size: Size) -> VideoFrame:
    if image.mode != "YCbCr":
        image = image.convert("YCbCr")
    if image.size != size:
        image = image.resize(size)
    image = image.point(_TABLE)
    half = image.reduce(2)
    planes = image.getchannel(0).tobytes() + half.getchannel(1).tobytes() + half.getchannel(2).tobytes()
    return VideoFrame(*size, planes)


def _even(side: float) -> int:
    return max(MIN_SIDE, int(side) // 2 * 2)
