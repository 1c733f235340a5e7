"""The decoder of all pictures: for vision, video, training, thumbnails and labelling. Uses Pillow, on first use.

A box that a person draws on a picture in a browser must mean the same place for training and on a machine, so all of
them see the same pixels: upright, in color, and with 16-bit grey scaled instead of cut off. Decoding takes
milliseconds: call it in a worker.
"""

from __future__ import annotations

import io
import struct
from typing import TYPE_CHECKING, Final, Literal

from schema import ErrorKind, MachineError

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

FORMATS: Final = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "QOI")
"""Formats that are decoded. Pillow knows more, some of which run other programs, such as PostScript."""

MAX_PIXELS: Final = 64_000_000
"""Pixels of a picture unless the caller sets another limit; larger ones are mistakes or attacks."""

DRAFT: Final = 8
"""How many times MAX_PIXELS a JPEG may have that is reduced while it is decoded: its data are read completely."""

RGBA: Final = b"RGBA"
"""Beginning of a picture without compression, followed by width, height and four bytes for each pixel."""

_RAW: Final = struct.Struct(">4sII")
_ORIENTATION: Final = 0x0112  # tag of Exif 2.32, 4.6.4
_TURNS: Final = {
    2: "FLIP_LEFT_RIGHT", 3: "ROTATE_180", 4: "FLIP_TOP_BOTTOM", 5: "TRANSPOSE", 6: "ROTATE_270", 7: "TRANSVERSE",
    8: "ROTATE_90",
}  # fmt: skip
_TURNED: Final = frozenset({5, 6, 7, 8})  # width and height change places
_DEEP: Final = ("I", "I;16", "I;16B", "I;16L", "I;16N")  # modes of grey with more than 8 bits


def decode(
    data: bytes,
    *,
    max_pixels: int = MAX_PIXELS,
    near: tuple[int, int] | None = None,
    mode: Literal["RGB", "YCbCr"] = "RGB",
    stated: str = "",
) -> Picture:
    """Decode a picture, upright. With `near`, a JPEG may have a fraction of its size, but not less than this.

    What is transparent becomes white. `max_pixels` is the limit after a JPEG was reduced; before, it may have DRAFT
    times as many. `stated` is the media type that the sender gave, for errors.

    Raises MachineError (INVALID) with the reason if the data are not a picture in one of FORMATS, are damaged, or have
    too many pixels.
    """
    from PIL import Image

    try:
        if data.startswith(RGBA):
            return _color(_raw(data, max_pixels), mode)
        Image.MAX_IMAGE_PIXELS = None  # the check below is exact, and knows that a JPEG is reduced
        with Image.open(io.BytesIO(data), formats=FORMATS) as picture:
            _check(picture.size, max_pixels if near is None else DRAFT * max_pixels)
            orientation = _orientation(picture)
            picture.draft(mode, picture.size if near is None else _turned(near, orientation))
            _check(picture.size, max_pixels)
            picture.load()
            color = _color(picture, mode)
    except MachineError:
        raise
    except Exception as error:  # decoders raise whatever their libraries do for damaged data
        raise _unreadable(data, error, stated) from error
    turn = _TURNS.get(orientation)
    return color.transpose(Image.Transpose[turn]) if turn is not None else color


def size_of(data: bytes, *, max_pixels: int = MAX_PIXELS) -> tuple[int, int]:
    """Return width and height of the upright picture without decoding it. Raises MachineError like `decode`."""
    from PIL import Image

    try:
        if data.startswith(RGBA):
            return _raw(data, max_pixels).size
        Image.MAX_IMAGE_PIXELS = None  # the check below is exact, and knows that a JPEG is reduced
        with Image.open(io.BytesIO(data), formats=FORMATS) as picture:
            _check(picture.size, max_pixels)
            return _turned(picture.size, _orientation(picture))
    except MachineError:
        raise
    except Exception as error:  # see decode
        raise _unreadable(data, error) from error


def _raw(data: bytes, max_pixels: int) -> Picture:
    from PIL import Image

    width, height = _RAW.unpack_from(data)[1:] if len(data) >= _RAW.size else (0, 0)
    _check((width, height), max_pixels)
    if not width or not height or len(data) - _RAW.size != 4 * width * height:
        raise MachineError(
            f"{len(data)} bytes of an RGBA picture are not {width} x {height} pixels of 4 bytes", kind=ErrorKind.INVALID
        )
    return Image.frombytes("RGBA", (width, height), data[_RAW.size :])


def _turned(size: tuple[int, int], orientation: int) -> tuple[int, int]:
    return (size[1], size[0]) if orientation in _TURNED else size


def _color(picture: Picture, mode: str) -> Picture:
    """Return a loaded picture in `mode`."""
    from PIL import Image

    if picture.mode in _DEEP:  # Pillow's own conversion makes all values above 255 white
        picture = picture.convert("I").point(lambda value: value * (255 / 65535) + 0.5).convert("L")
    if picture.has_transparency_data:
        picture = picture.convert("RGBA")
        background = Image.new("RGBA", picture.size, "white")
        picture = Image.alpha_composite(background, picture)
    return picture if picture.mode == mode else picture.convert("RGB").convert(mode)


def _orientation(picture: Picture) -> int:
    """Return the orientation in the picture's Exif data; 1 (upright) if it has none, or if they are damaged."""
    try:
        orientation = picture.getexif().get(_ORIENTATION, 1)
    except Exception:  # the picture is good even if its Exif data are not
        return 1
    return orientation if orientation in _TURNS else 1


def _check(size: tuple[int, int], max_pixels: int) -> None:
    if size[0] * size[1] > max_pixels:
        raise MachineError(
            f"the image has {size[0]} x {size[1]} pixels",
            kind=ErrorKind.INVALID,
            remedy=f"use at most {max_pixels:,} pixels",
        )


def _unreadable(data: bytes, error: Exception, stated: str = "") -> MachineError:
    text = str(error)
    reason = "unknown format" if "cannot identify" in text else text.partition("\n")[0] or type(error).__name__
    return MachineError(
        f"{len(data)} bytes{f' ({stated})' if stated else ''} are not a readable image: {reason}",
        kind=ErrorKind.INVALID,
        remedy="use JPEG or PNG",
    )
