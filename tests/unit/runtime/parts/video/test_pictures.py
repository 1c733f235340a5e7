"""Pictures of cameras as frames in I420."""

from __future__ import annotations

import io

import pytest
from PIL import Image as Pillow

from engine.components.media.camera import Image, Images
from rpc.peers.port import VideoFrame
from runtime.parts.video.pictures import MAX_SIDE, MIN_SIDE, convert, fitted, notice, size_of, sizes_of
from runtime.parts.video.source import color_of
from schema.errors import ErrorKind, MachineError

# Y, Cb and Cr of Rec. ITU-R BT.601 in the video range
COLOURS = {
    (0, 0, 0): (16, 128, 128),
    (255, 255, 255): (235, 128, 128),
    (255, 0, 0): (81, 90, 240),
    (0, 255, 0): (145, 54, 34),
    (0, 0, 255): (41, 240, 110),
}


def encoded(size: tuple[int, int], colour: object, kind: str = "JPEG", mode: str = "RGB") -> bytes:
    buffer = io.BytesIO()
    image = Pillow.new(mode, size, colour)  # type: ignore[arg-type]
    image.save(buffer, kind, **({"lossless": True} if kind == "WEBP" else {}))
    return buffer.getvalue()


def raw(size: tuple[int, int], colour: tuple[int, int, int]) -> bytes:
    head = b"RGBA" + size[0].to_bytes(4, "big") + size[1].to_bytes(4, "big")
    return head + bytes((*colour, 255)) * (size[0] * size[1])


def middle(frame: VideoFrame) -> tuple[int, int, int]:
    """Return Y, Cb and Cr in the middle of a frame."""
    width, height, size = frame.width, frame.height, frame.width * frame.height
    colour = height // 4 * (width // 2) + width // 4
    return (
        frame.planes[height // 2 * width + width // 2],
        frame.planes[size + colour],
        frame.planes[size * 5 // 4 + colour],
    )


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "RGBA"])
@pytest.mark.parametrize("colour", COLOURS)
def test_colours_are_those_of_video(kind: str, colour: tuple[int, int, int]) -> None:
    data = raw((64, 48), colour) if kind == "RGBA" else encoded((64, 48), colour, kind)
    converted = convert(data, None)
    assert (converted.frame.width, converted.frame.height, converted.taken) == (64, 48, (64, 48))
    assert middle(converted.frame) == pytest.approx(COLOURS[colour], abs=2)


@pytest.mark.parametrize(("mode", "colour"), [("L", 255), ("CMYK", (0, 0, 0, 0))])
def test_other_kinds_of_jpeg_are_converted(mode: str, colour: object) -> None:
    assert middle(convert(encoded((64, 48), colour, "JPEG", mode), None).frame) == pytest.approx((235, 128, 128), abs=2)


def test_planes_have_the_order_of_rows() -> None:
    image = Pillow.new("RGB", (64, 48), "black")
    image.paste("white", (0, 0, 64, 8))
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    frame = convert(buffer.getvalue(), None).frame
    assert frame.planes[64 * 7 + 63] > 200
    assert frame.planes[64 * 9] < 40


def test_a_picture_is_shown_at_the_size_that_is_asked_for() -> None:
    data = encoded((640, 480), (255, 0, 0))
    for size in ((320, 240), (64, 64), (800, 600)):
        converted = convert(data, size)
        assert (converted.frame.width, converted.frame.height) == size
        assert converted.taken == (640, 480)
        assert middle(converted.frame) == pytest.approx(COLOURS[255, 0, 0], abs=2)


@pytest.mark.parametrize(
    ("taken", "shown"),
    [
        ((640, 480), (640, 480)),
        ((641, 479), (640, 478)),
        ((3840, 2160), (1920, 1080)),
        ((1080, 3840), (540, 1920)),
        ((3, 5), (MIN_SIDE, MIN_SIDE)),
        ((10_000, 10), (MAX_SIDE, MIN_SIDE)),
    ],
)
def test_sizes_are_even_and_limited(taken: tuple[int, int], shown: tuple[int, int]) -> None:
    assert fitted(taken) == shown
    assert sizes_of(taken)[0] == shown


def test_smaller_sizes_are_offered() -> None:
    assert sizes_of((640, 480)) == [(640, 480), (320, 240), (160, 120), (80, 60)]
    assert sizes_of((32, 32)) == [(32, 32), (16, 16)]
    assert size_of(encoded((641, 479), "red")) == (641, 479)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"no picture",
        encoded((64, 48), "red")[:-400],
        encoded((64, 48), "red", "TIFF"),
        raw((4, 4), (1, 2, 3))[:-1],
        raw((0, 4), (1, 2, 3)),
        b"RGBA\xff\xff\xff\xff\xff\xff\xff\xff",
        encoded((4_001, 4_000), 0, "PNG", "1"),
    ],
)
def test_other_data_is_refused(data: bytes) -> None:
    with pytest.raises(MachineError) as caught:
        convert(data, None)
    assert caught.value.kind is ErrorKind.INVALID


def test_a_notice_is_a_readable_frame() -> None:
    for size in ((640, 480), (MIN_SIDE, MIN_SIDE), (1920, 1080)):
        frame = notice("front", "the camera does not answer; " * 20, size)
        luma = frame.planes[: size[0] * size[1]]
        assert (frame.width, frame.height) == size
        assert min(luma) < 60
        assert size[0] < 100 or max(luma) > 180


def test_the_first_color_picture_is_shown() -> None:
    depth, other = Image(b"DEPTHMAPxxx", "image/vnd.viam.dep"), Image(b"DEPTHMAPyyy", "")
    assert color_of(Images([depth, other, Image(b"1", "image/jpeg"), Image(b"2", "image/jpeg")])) == b"1"
    with pytest.raises(MachineError) as caught:
        color_of(Images([depth]))
    assert caught.value.kind is ErrorKind.UNSUPPORTED
