"""Pictures of cameras as frames for encoders. Imports Pillow on first use; takes milliseconds, so use a worker."""

from __future__ import annotations

import io
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rpc.peers.port import VideoFrame
from schema.errors import ErrorKind, MachineError

if TYPE_CHECKING:
    from PIL import Image

FORMATS: Final = ("JPEG", "PNG", "WEBP")  # Pillow supports more, some of which run other programs
MAX_PIXELS: Final = 16_000_000  # of a camera's picture; larger ones are mistakes or attacks
MAX_SIDE: Final = 1920  # pixels of a frame; larger pictures are scaled down
MIN_SIDE: Final = 16
RGBA: Final = b"RGBA"  # followed by width and height as four bytes each, and four bytes for each pixel
_RGBA_HEAD: Final = 12
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
    from PIL import UnidentifiedImageError
    from PIL.Image import DecompressionBombError

    try:
        image = _opened(data)
        taken = image.size
        target = size or fitted(taken)
        image.draft("YCbCr", target)  # a JPEG image is decoded at the next larger of its half, quarter and eighth
        return Converted(_frame(image, target), taken)
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError, DecompressionBombError) as error:
        reason = "its format is unknown" if isinstance(error, UnidentifiedImageError) else str(error).partition("\n")[0]
        raise MachineError(
            f"the camera's picture of {len(data)} bytes cannot be shown: {reason}",
            kind=ErrorKind.INVALID,
            remedy="use a camera that returns JPEG, PNG or WebP",
        ) from None


def size_of(data: bytes) -> Size:
    """Return the size of an encoded picture, without decoding it. Raises MachineError (INVALID), see `convert`."""
    return convert(data, (MIN_SIDE, MIN_SIDE)).taken


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


def _opened(data: bytes) -> Image.Image:
    from PIL import Image

    if not data.startswith(RGBA):
        image: Image.Image = Image.open(io.BytesIO(data), formats=FORMATS)
        _check(image.size)
        return image
    width, height = int.from_bytes(data[4:8], "big"), int.from_bytes(data[8:_RGBA_HEAD], "big")
    _check((width, height))
    if not width or len(data) != _RGBA_HEAD + 4 * width * height:
        raise ValueError(f"it should have {width} x {height} pixels of 4 bytes")
    return Image.frombytes("RGBA", (width, height), data[_RGBA_HEAD:])


def _check(size: Size) -> None:
    if size[0] * size[1] > MAX_PIXELS:
        raise ValueError(f"it has {size[0]} x {size[1]} pixels, more than {MAX_PIXELS}")


def _frame(image: Image.Image, size: Size) -> VideoFrame:
    if image.mode != "YCbCr":
        image = image.convert("RGB").convert("YCbCr")
    if image.size != size:
        image = image.resize(size)
    image = image.point(_TABLE)
    half = image.reduce(2)
    planes = image.getchannel(0).tobytes() + half.getchannel(1).tobytes() + half.getchannel(2).tobytes()
    return VideoFrame(*size, planes)


def _even(side: float) -> int:
    return max(MIN_SIDE, int(side) // 2 * 2)
