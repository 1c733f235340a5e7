"""Encoded images: supported formats and refusals."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from models.vision.common import pictures
from models.vision.common.pictures import JPEG, PNG, decode, encode
from schema.errors import ErrorKind, MachineError
from tests.unit.models.vision.drawn import BLUE, RED, encoded, picture

DRAWN = picture((40, 20), {(0, 0, 20, 20): RED, (20, 0, 40, 20): BLUE})


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "GIF", "BMP", "QOI"])
def test_usual_formats_are_read(kind: str) -> None:
    decoded = decode(encoded(DRAWN, kind), "image/whatever")
    assert (decoded.size, decoded.mode) == ((40, 20), "RGB")
    red, green, blue = decoded.getpixel((3, 10))  # type: ignore[misc]
    assert (red > 240, green < 15, blue < 15) == (True, True, True)


def test_raw_pixels_are_read() -> None:
    data = b"RGBA" + struct.pack(">II", 40, 20) + DRAWN.convert("RGBA").tobytes()
    assert decode(data).tobytes() == DRAWN.tobytes()
    with pytest.raises(MachineError, match="not 40 x 20 pixels"):
        decode(data[:-1])
    with pytest.raises(MachineError, match="not 0 x 0 pixels"):
        decode(b"RGBA")


@pytest.mark.parametrize(
    ("data", "mime_type", "words"),
    [
        (b"", "", "0 bytes are not a readable image: unknown format"),
        (b"nonsense", JPEG, r"8 bytes \(image/jpeg\)"),
        (encoded(DRAWN)[:60], PNG, "not a readable image"),
        (encoded(DRAWN, "JPEG")[:-40], JPEG, "truncated"),
        (encoded(DRAWN, "TIFF"), "image/tiff", "unknown format"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\n", "", "unknown format"),
        (b"DEPTHMAP....", "", "depth map"),
        (b"", pictures.DEPTH, "depth map"),
    ],
)
def test_data_that_is_not_a_colour_image_is_refused(data: bytes, mime_type: str, words: str) -> None:
    with pytest.raises(MachineError, match=words) as caught:
        decode(data, mime_type)
    assert caught.value.kind is ErrorKind.INVALID


def test_an_image_that_would_need_too_much_memory_is_refused() -> None:
    with pytest.raises(MachineError, match="8001 x 8000 pixels"):
        decode(encoded(Image.new("1", (8001, 8000))))
    with pytest.raises(MachineError, match="4294967295 x 4294967295"):
        decode(b"RGBA" + b"\xff" * 8)


def test_png_stays_png_and_everything_else_becomes_jpeg() -> None:
    data, mime_type = encode(DRAWN, PNG)
    assert (mime_type, decode(data).tobytes()) == (PNG, DRAWN.tobytes())
    data, mime_type = encode(DRAWN, "image/webp")
    assert (mime_type, decode(data).size) == (JPEG, (40, 20))


FILES = [encoded(DRAWN, kind) for kind in ("PNG", "JPEG", "WEBP", "GIF", "BMP", "QOI")]


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::PIL.Image.DecompressionBombWarning")
@given(
    st.sampled_from(FILES), st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), max_size=8), st.integers(0)
)
def test_a_damaged_file_is_decoded_or_refused(data: bytes, changes: list[tuple[int, int]], length: int) -> None:
    damaged = bytearray(data)
    for index, value in changes:
        damaged[index % len(damaged)] = value
    del damaged[length % len(damaged) if length % 3 == 0 else len(damaged) :]
    kind = ErrorKind.INVALID
    try:
        assert decode(bytes(damaged)).mode == "RGB"
    except MachineError as error:
        kind = error.kind
    assert kind is ErrorKind.INVALID
