"""Images as input tensors, and the mapping of places back to the image."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.services.mlmodel import TensorInfo
from models.mlmodel.tensors import values
from models.vision.common.results import Box
from models.vision.mlmodel.model_input import GREY, InputShape, Scale, fill, place, shape_of
from schema.errors import ErrorKind, MachineError
from tests.unit.models.vision.drawn import BLUE, RED, picture


@pytest.mark.parametrize(
    ("data_type", "shape", "expected"),
    [
        ("uint8", [1, 320, 640, 3], InputShape("i", "uint8", 640, 320)),
        ("float32", [1, 3, 320, 640], InputShape("i", "float32", 640, 320, planar=True)),
        ("float16", [1, 1, 28, 28], InputShape("i", "float32", 28, 28, channels=1, planar=True)),
        ("float32", [-1, 28, 28, 1], InputShape("i", "float32", 28, 28, channels=1)),
        ("uint8", [1, -1, -1, 3], InputShape("i", "uint8")),
        ("float32", [-1, 3, -1, -1], InputShape("i", "float32", planar=True)),
        ("uint8", [24, 32, 3], InputShape("i", "uint8", 32, 24, batched=False)),
        ("float32", [3, 24, 32], InputShape("i", "float32", 32, 24, planar=True, batched=False)),
        ("", [], InputShape("i", "uint8")),
    ],
)
def test_shapes_of_models(data_type: str, shape: list[int], expected: InputShape) -> None:
    assert shape_of(TensorInfo("i", "", data_type, shape)) == expected


@pytest.mark.parametrize(
    ("data_type", "shape", "words"),
    [
        ("int64", [1, 8, 8, 3], "its type is int64"),
        ("float32", [2, 8, 8, 3], "2 images at once"),
        ("float32", [1, 1000], "its shape is"),
        ("float32", [1, 8, 8, 4], "4 channels"),
    ],
)
def test_models_that_take_no_picture(data_type: str, shape: list[int], words: str) -> None:
    with pytest.raises(MachineError, match=words) as caught:
        shape_of(TensorInfo("i", "", data_type, shape))
    assert caught.value.kind is ErrorKind.PRECONDITION


TWO = picture((2, 1), {(0, 0, 1, 1): (10, 20, 30), (1, 0, 2, 1): (40, 50, 60)})


@pytest.mark.parametrize(
    ("shape", "bgr", "expected"),
    [
        (InputShape("i"), False, [10, 20, 30, 40, 50, 60]),
        (InputShape("i"), True, [30, 20, 10, 60, 50, 40]),
        (InputShape("i", planar=True), False, [10, 40, 20, 50, 30, 60]),
        (InputShape("i", planar=True), True, [30, 60, 20, 50, 10, 40]),
        (InputShape("i", channels=1), False, [18, 48]),
        (InputShape("i", channels=1, planar=True), False, [18, 48]),
    ],
)
@pytest.mark.parametrize("data_type", ["uint8", "float32"])
@pytest.mark.parametrize("batched", [True, False])
def test_the_order_of_values(shape: InputShape, bgr: bool, expected: list[int], data_type: str, batched: bool) -> None:
    shape = InputShape("i", data_type, 0, 0, shape.channels, shape.planar, batched)
    result = fill(TWO, shape, Scale(), bgr=bgr)
    assert list(values(result, "i")) == pytest.approx(expected)
    sizes = [shape.channels, 1, 2] if shape.planar else [1, 2, shape.channels]
    assert list(result.shape) == ([1, *sizes] if batched else sizes)


def test_values_are_scaled_in_each_channel() -> None:
    scale = Scale((10.0, 0.0, 127.5), (10.0, 255.0, 127.5))
    result = fill(TWO, InputShape("i", "float32"), scale)
    assert list(values(result, "i")) == pytest.approx([0, 20 / 255, 30 / 127.5 - 1, 3, 50 / 255, 60 / 127.5 - 1])
    planar = fill(TWO, InputShape("i", "float32", planar=True), scale)
    assert list(values(planar, "i")) == pytest.approx([0, 3, 20 / 255, 50 / 255, 30 / 127.5 - 1, 60 / 127.5 - 1])


def test_stretched_or_letterboxed() -> None:
    drawn = picture((200, 100), {(0, 0, 100, 100): RED, (100, 0, 200, 100): BLUE})
    shape = InputShape("i", width=80, height=80)
    stretched, placement = place(drawn, shape, letterbox=False)
    assert (stretched.size, placement.x, placement.y) == ((80, 80), 0, 0)
    assert stretched.getpixel((10, 2)) == RED
    boxed, placement = place(drawn, shape, letterbox=True)
    assert (boxed.size, placement.x, placement.y) == ((80, 80), 0, 0.25)
    assert (boxed.getpixel((10, 19)), boxed.getpixel((10, 20)), boxed.getpixel((70, 59))) == (GREY, RED, BLUE)
    tall, placement = place(picture((50, 100)), shape, letterbox=True)
    assert (tall.getpixel((19, 40)), placement.x, placement.y) == (GREY, 0.25, 0)
    free, _ = place(drawn, InputShape("i"), letterbox=True)
    assert free is drawn


@given(
    st.tuples(st.integers(1, 400), st.integers(1, 400)),
    st.tuples(st.integers(8, 400), st.integers(8, 400)),
    st.booleans(),
)
def test_the_whole_picture_comes_back_as_the_whole_picture(
    size: tuple[int, int], inner: tuple[int, int], letterbox: bool
) -> None:
    shape = InputShape("i", width=inner[0], height=inner[1])
    placed, placement = place(picture(size), shape, letterbox=letterbox)
    assert placed.size == inner
    shown = Box(placement.x, placement.y, 1 - placement.x, 1 - placement.y, 1, 0)
    back = placement.back(shown)
    assert (back.x_min, back.y_min, back.x_max, back.y_max) == pytest.approx((0, 0, 1, 1))
