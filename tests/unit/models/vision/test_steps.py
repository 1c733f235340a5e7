"""Steps of a pipeline map places as they move pixels."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from engine.components.media.camera import Annotations, BoundingBox, ImageClassification, IntrinsicParameters
from models.vision.transform.coordinates import moved_annotations, moved_lens
from models.vision.transform.steps import Crop, Identity, Resize, Rotate, Step, step
from tests.unit.models.vision.drawn import RED, picture

SIZE = (120, 80)


def middle_of_red(result: Image.Image) -> tuple[float, float]:
    """Return the center of the mostly red pixels."""
    red, green, _ = result.split()
    places = [
        (x + 0.5, y + 0.5)
        for y in range(result.height)
        for x in range(result.width)
        if red.getpixel((x, y)) > 150 and green.getpixel((x, y)) < 60  # type: ignore[operator]
    ]
    return sum(x for x, _ in places) / len(places), sum(y for _, y in places) / len(places)


STEPS = st.one_of(
    st.just(Identity()),
    st.builds(Resize, st.integers(40, 300), st.integers(40, 300)),
    st.builds(Crop, st.integers(0, 10), st.integers(0, 10), st.integers(60, 200), st.integers(40, 200)),
    st.builds(Crop, st.just(0.05), st.just(0.1), st.floats(0.6, 1), st.floats(0.6, 1)),
    st.builds(Rotate, st.sampled_from([0.0, 90.0, 180.0, 270.0, -90.0, 450.0])),
    st.builds(Rotate, st.floats(-360, 360)),
)


@given(STEPS)
def test_places_move_as_the_pixels_do(item: Step) -> None:
    drawn = picture(SIZE, {(20, 16, 36, 28): RED})
    to, result = item.moved(SIZE), item.apply(drawn)
    assert result.size == to.size
    x, y = to.at(28, 22)
    seen_x, seen_y = middle_of_red(result)
    assert (seen_x, seen_y) == pytest.approx((x, y), abs=1.0 + 0.02 * max(to.size))


@given(st.floats(-720, 720))
def test_a_turn_loses_nothing(angle: float) -> None:
    to = Rotate(angle).moved(SIZE)
    for corner in ((0, 0), (SIZE[0], 0), (0, SIZE[1]), SIZE):
        x, y = to.at(*corner)
        assert -1e-6 <= x <= to.size[0] + 1e-6
        assert -1e-6 <= y <= to.size[1] + 1e-6


def test_quarter_turns_are_exact_and_counter_clockwise() -> None:
    drawn = picture((3, 2), {(2, 0, 3, 1): RED})
    turned = Rotate(90).apply(drawn)
    assert (turned.size, turned.getpixel((0, 0))) == ((2, 3), RED)
    assert Rotate(-90).apply(turned).tobytes() == drawn.tobytes()
    assert Rotate(360).apply(drawn).tobytes() == drawn.tobytes()
    assert step("rotate", {}) == Rotate(180.0)


def test_known_boxes_move_and_are_cut_off() -> None:
    present = Annotations(
        (BoundingBox("1", "in", 0.25, 0.5, 0.5, 0.75, 0.9), BoundingBox("2", "out", 0.9, 0.9, 1.0, 1.0)),
        (ImageClassification("3", "all", 0.5),),
    )
    cropped = moved_annotations(present, Crop(0, 0, 60, 60), (120, 80))
    (box,) = cropped.bboxes
    assert (box.id, box.label, box.confidence) == ("1", "in", 0.9)
    assert (box.x_min_normalized, box.y_min_normalized) == pytest.approx((0.5, 2 / 3))
    assert (box.x_max_normalized, box.y_max_normalized) == pytest.approx((1.0, 1.0))
    assert cropped.classifications == present.classifications
    turned = moved_annotations(present, Rotate(90), (120, 80)).bboxes[0]
    assert (turned.x_min_normalized, turned.y_min_normalized) == pytest.approx((0.5, 0.5))
    assert (turned.x_max_normalized, turned.y_max_normalized) == pytest.approx((0.75, 0.75))


LENS = IntrinsicParameters(120, 80, 100.0, 200.0, 50.0, 30.0)


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([], LENS),
        ([Identity()], LENS),
        ([Crop(10, 20, 110, 60)], IntrinsicParameters(100, 40, 100, 200, 40, 10)),
        ([Resize(60, 160)], IntrinsicParameters(60, 160, 50, 400, 25, 60)),
        ([Rotate(180)], IntrinsicParameters(120, 80, 100, 200, 70, 50)),
        ([Rotate(90)], IntrinsicParameters(80, 120, 200, 100, 30, 70)),
        ([Crop(10, 20, 110, 60), Resize(50, 20)], IntrinsicParameters(50, 20, 50, 100, 20, 5)),
    ],
)
def test_the_lens_moves_too(steps: list[Step], expected: IntrinsicParameters) -> None:
    result = moved_lens(LENS, steps)
    assert result is not None
    names = ("width_px", "height_px", "focal_x_px", "focal_y_px", "center_x_px", "center_y_px")
    assert [getattr(result, name) for name in names] == pytest.approx([getattr(expected, name) for name in names])


@given(st.floats(-10, 10), st.floats(-10, 10), st.floats(5, 50), st.floats(-180, 180))
def test_a_point_is_seen_where_the_moved_lens_says(x: float, y: float, z: float, angle: float) -> None:
    """With square pixels, rotating the image is the same as rotating the camera about its axis."""
    lens = IntrinsicParameters(120, 80, 100.0, 100.0, 50.0, 30.0)
    to, moved = Rotate(angle).moved((120, 80)), moved_lens(lens, [Rotate(angle)])
    assert moved is not None
    seen = to.at(lens.focal_x_px * x / z + lens.center_x_px, lens.focal_y_px * y / z + lens.center_y_px)
    cosine, sine = math.cos(math.radians(angle)), math.sin(math.radians(angle))
    turned_x, turned_y = cosine * x + sine * y, -sine * x + cosine * y
    expected = (
        moved.focal_x_px * turned_x / z + moved.center_x_px,
        moved.focal_y_px * turned_y / z + moved.center_y_px,
    )
    assert seen == pytest.approx(expected, abs=1e-6)


def test_a_lens_whose_size_is_not_known_cannot_be_moved() -> None:
    assert moved_lens(IntrinsicParameters(), [Identity()]) is None
    assert moved_lens(LENS, [Crop(200, 200, 300, 300)]) is None


def test_a_crop_without_anything_in_it() -> None:
    with pytest.raises(ValueError, match="no pixel of a picture of 120 x 80 pixels"):
        Crop(150, 0, 200, 50).moved(SIZE)
    assert Crop(100, 0, 900, 50).moved(SIZE).size == (20, 50)


@pytest.mark.parametrize(
    ("kind", "attributes", "words"),
    [
        ("undistort", {}, "'undistort' is not a step; use one of identity, resize"),
        ("resize", {"width_px": 10}, "resize: .*height_px"),
        ("resize", {"width_px": 10, "height_px": 0}, "height_px"),
        ("resize", {"width_px": 10, "height_px": 10, "depth": 1}, "depth"),
        ("crop", {"x_min_px": 5, "y_min_px": 0, "x_max_px": 5, "y_max_px": 9}, "not below its maxima"),
        ("crop", {"x_min_px": -5, "y_min_px": 0, "x_max_px": 5, "y_max_px": 9}, "x_min_px"),
        ("rotate", {"angle_degs": "much"}, "angle_degs"),
        ("detections", {}, "detector_name"),
        ("classifications", {"classifier_name": "a", "max_classifications": 0}, "max_classifications"),
    ],
)
def test_entries_that_cannot_be(kind: str, attributes: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        step(kind, attributes)


def test_a_crop_of_a_single_pixel_is_kept_and_an_empty_one_is_refused() -> None:
    assert Crop(x_min_px=0.25, y_min_px=0.25, x_max_px=0.5, y_max_px=0.5)._corners((4, 4)) == (1, 1, 2, 2)
    with pytest.raises(ValueError, match="contains no pixel of a picture of 4 x 100"):
        Crop(x_min_px=0.4, y_min_px=0.1, x_max_px=0.45, y_max_px=0.9)._corners((4, 100))
    with pytest.raises(ValueError, match="contains no pixel of a picture of 100 x 4"):
        Crop(x_min_px=0.1, y_min_px=0.4, x_max_px=0.9, y_max_px=0.45)._corners((100, 4))


@pytest.mark.parametrize("box", [(0.25, 0.75, 0.5, 1.0), (0.75, 0.25, 1.0, 0.5), (0.25, 0.5, 0.5, 0.75)])
def test_a_box_that_only_touches_the_edge_of_a_crop_is_left_out(box: tuple[float, float, float, float]) -> None:
    present = Annotations((BoundingBox("1", "a", *box, 0.9),), ())
    assert moved_annotations(present, Crop(0, 0, 60, 40), (120, 80)).bboxes == ()
