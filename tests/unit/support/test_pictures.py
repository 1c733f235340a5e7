"""The decoder of pictures: upright, in color, with the brightness that was meant; the same for all that use it."""

from __future__ import annotations

import io
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageOps

from cloud.web.api.thumbnails import small
from models.vision.common.pictures import decode as of_vision
from runtime.parts.video.pictures import convert
from schema.errors import ErrorKind, MachineError
from support.media.pictures import FORMATS, decode, size_of
from training.trainers.features import opened

SIZE = (64, 48)
SHADES = range(0, 65536, 256)


def corner() -> Image.Image:
    """Return a white picture whose upper left quarter is red."""
    picture = Image.new("RGB", SIZE, "white")
    picture.paste((255, 0, 0), (0, 0, SIZE[0] // 2, SIZE[1] // 2))
    return picture


def encoded(picture: Image.Image, format_: str = "PNG", **more: Any) -> bytes:
    file = io.BytesIO()
    picture.save(file, format_, **more)
    return file.getvalue()


def turned(orientation: int, format_: str) -> bytes:
    """Return a file whose Exif data say that its pixels are to be turned, so that the red corner is at the top left."""
    backwards = {6: 8, 8: 6}.get(orientation, orientation)
    probe = encoded(corner())
    picture = Image.open(io.BytesIO(probe))
    exif = Image.Exif()
    exif[0x0112] = backwards
    stored = ImageOps.exif_transpose(Image.open(io.BytesIO(encoded(picture, "PNG", exif=exif))))
    exif = Image.Exif()
    exif[0x0112] = orientation
    return encoded(stored, format_, exif=exif, **({"quality": 95} if format_ == "JPEG" else {"lossless": True}))


def of_training(data: bytes, folder: Path) -> Image.Image:
    file = folder / "picture"
    file.write_bytes(data)
    return opened(str(file))[0]


def of_video(data: bytes) -> Image.Image:
    frame = convert(data, None).frame
    luma = Image.frombytes("L", (frame.width, frame.height), frame.planes[: frame.width * frame.height])
    return luma.convert("RGB")


def of_thumbnails(data: bytes) -> Image.Image:
    return Image.open(io.BytesIO(small(data))).convert("RGB")


USERS: dict[str, Callable[[bytes, Path], Image.Image]] = {
    "vision": lambda data, folder: of_vision(data),
    "training": of_training,
    "video": lambda data, folder: of_video(data),
    "thumbnails": lambda data, folder: of_thumbnails(data),
}


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("format_", ["JPEG", "WEBP", "PNG"])
def test_everything_sees_pictures_upright(user: str, orientation: int, format_: str, tmp_path: Path) -> None:
    picture = USERS[user](turned(orientation, format_), tmp_path)
    assert picture.size == SIZE
    inside, outside = picture.getpixel((8, 8)), picture.getpixel((SIZE[0] - 8, SIZE[1] - 8))
    assert isinstance(inside, tuple)
    assert isinstance(outside, tuple)
    assert inside[1] < 100 < outside[1]
    assert size_of(turned(orientation, format_)) == SIZE


@pytest.mark.parametrize("user", USERS)
def test_grey_of_16_bits_keeps_its_shades(user: str, tmp_path: Path) -> None:
    ramp = Image.new("I;16", (len(SHADES), 16))
    ramp.putdata([shade for _ in range(16) for shade in SHADES])
    picture = USERS[user](encoded(ramp), tmp_path).convert("L")
    assert [abs(int(picture.getpixel((x, 8))) - x) <= 21 for x in range(0, len(SHADES), 8)].count(False) == 0  # type: ignore[arg-type]
    assert decode(encoded(ramp)).getpixel((255, 0)) == (254, 254, 254)  # 65280 of 65535


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P"])
def test_hidden_colors_stay_hidden(mode: str) -> None:
    if mode == "P":
        picture = Image.new("P", SIZE, 3)
        picture.putpalette([0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 9, 9])
        data = encoded(picture, transparency=3)
    else:
        data = encoded(Image.new(mode, SIZE, (9, 9, 9, 0) if mode == "RGBA" else (9, 0)))
    assert decode(data).getpixel((5, 5)) == (255, 255, 255)


def test_pictures_for_print_have_their_colors() -> None:
    data = encoded(Image.new("CMYK", SIZE, (0, 255, 255, 0)), "JPEG")
    red, green, blue = decode(data).getpixel((5, 5))  # type: ignore[misc]
    assert red > 200 > 100 > max(green, blue)


@pytest.mark.parametrize("format_", FORMATS)
def test_each_format(format_: str) -> None:
    assert decode(encoded(corner(), format_)).size == SIZE


@pytest.mark.parametrize("format_", ["EPS", "TIFF", "PDF", "PPM", "ICO"])
@pytest.mark.parametrize("user", USERS)
def test_other_formats_are_not_even_tried(format_: str, user: str, tmp_path: Path) -> None:
    with pytest.raises(Exception, match=r"unknown format|cannot be shown") as caught:
        USERS[user](encoded(corner(), format_), tmp_path)
    assert not isinstance(caught.value, AssertionError)


@pytest.mark.filterwarnings("ignore::UserWarning")  # of Pillow about Exif data
def test_damaged_orientation_does_not_cost_the_picture() -> None:
    exif = b"Exif\0\0II*\0\x08\0\0\0" + struct.pack("<HHHII", 1, 0x0112, 2, 4_000_000_000, 4_000_000_000)
    assert decode(encoded(corner(), "JPEG", exif=exif)).size == SIZE
    odd = Image.Exif()
    odd[0x0112] = 77
    assert decode(encoded(corner(), "JPEG", exif=odd)).size == SIZE


def test_large_pictures_are_refused_before_they_are_decoded() -> None:
    with pytest.raises(MachineError, match=r"has 64 x 48 pixels: use at most 3,071") as caught:
        decode(encoded(corner()), max_pixels=64 * 48 - 1)
    assert caught.value.kind is ErrorKind.INVALID
    jpeg = encoded(Image.new("RGB", (1600, 1200)), "JPEG")
    assert decode(jpeg, max_pixels=500 * 500, near=(400, 300)).size == (400, 300)
    with pytest.raises(MachineError, match="1600 x 1200"):
        decode(jpeg, max_pixels=500 * 500)
    with pytest.raises(MachineError, match="1600 x 1200"):
        decode(jpeg, max_pixels=400 * 300, near=(400, 300))
    with pytest.raises(MachineError, match="1600 x 1200"):
        decode(jpeg, max_pixels=500 * 500, near=(1600, 1200))


FILES = [encoded(corner(), kind) for kind in FORMATS]


@pytest.mark.filterwarnings("ignore::UserWarning")
@given(
    st.sampled_from(FILES),
    st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 255)), max_size=8),
    st.integers(0, 3000),
)
def test_damaged_files_are_decoded_or_refused(file: bytes, changes: list[tuple[int, int]], cut: int) -> None:
    data = bytearray(file[: max(0, len(file) - cut)])
    for place, value in changes:
        if place < len(data):
            data[place] = value
    try:
        mode = decode(bytes(data), max_pixels=1_000_000).mode
    except MachineError:
        return
    assert mode == "RGB"
