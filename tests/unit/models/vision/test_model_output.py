"""The meaning of output tensors: roles, boxes of every layout, probabilities."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from engine.services.mlmodel import FlatTensor, TensorInfo
from models.vision.mlmodel.layouts import LAYOUTS
from models.vision.mlmodel.model_output import MAX_BOXES, Roles, TensorReading, boxes, probabilities, roles_of
from schema.errors import ErrorKind, MachineError
from tests.unit.models.vision.drawn import floats


def infos(**shapes: Sequence[int]) -> list[TensorInfo]:
    return [TensorInfo(name, "", "float32", shape) for name, shape in shapes.items()]


@pytest.mark.parametrize(
    ("outputs", "labels", "layout", "names"),
    [
        ({"Location": [], "Category": [], "Score": []}, 0, "boxes", {"Location", "Category", "Score"}),
        ({"boxes": [1, 9, 4], "scores": [1, 9, 2]}, 0, "boxes", {"boxes", "scores"}),
        ({"probability": []}, 0, "", {"probability"}),
        ({"logits": [1, 1000]}, 0, "", {"logits"}),
        ({"logits": [1, 1000, 1, 1]}, 0, "", {"logits"}),
        ({"logits": [1, 1, 1000]}, 0, "", {"logits"}),
        ({"logits": []}, 0, "", {"logits"}),
        ({"output0": [1, 84, 8400]}, 0, "yolov8", {"output0"}),
        ({"output0": [1, 84, 8400]}, 80, "yolov8", {"output0"}),
        ({"output0": [1, -1, -1]}, 0, "yolov8", {"output0"}),
        ({"output0": [1, 25200, 85]}, 0, "yolov5", {"output0"}),
        ({"output0": [1, 25200, 6]}, 1, "yolov5", {"output0"}),
        ({"output0": [1, 300, 6]}, 80, "yolov10", {"output0"}),
        ({"output0": [1, 6, 20]}, 2, "yolov8", {"output0"}),
    ],
)
def test_roles_are_found(outputs: dict[str, list[int]], labels: int, layout: str, names: set[str]) -> None:
    result = roles_of(infos(**outputs), {}, labels)
    assert (result.layout, set(result.tensors.values())) == (layout, names)
    assert result.detects is bool(layout)
    assert result.classifies is not bool(layout)


def test_roles_can_be_given() -> None:
    outputs = infos(a=[1, 9, 4], b=[1, 9], c=[1, 9], count=[1])
    result = roles_of(outputs, {"a": "location", "b": "category", "c": "score"}, 0)
    assert result.tensors == {"location": "a", "category": "b", "score": "c"}
    assert roles_of(infos(x=[1, 6, 20]), {}, 0, "yolov5").layout == "yolov5"
    both = roles_of(infos(location=[], score=[], probability=[]), {}, 0)
    assert (both.detects, both.classifies) == (True, True)


@pytest.mark.parametrize("layout", ["", "boxes"])
def test_unrecognized_outputs_are_reported_with_names_and_shapes(layout: str) -> None:
    with pytest.raises(MachineError, match=r"a \[1, 4\], b \[1\]") as caught:
        roles_of(infos(a=[1, 4], b=[1]), {}, 0, layout)
    assert caught.value.kind is ErrorKind.PRECONDITION
    assert "remap_output_names" in caught.value.remedy
    with pytest.raises(MachineError, match=r"\(no outputs\)"):
        roles_of([], {}, 0, layout)


def rounded(result: Sequence[object]) -> list[tuple[float, ...]]:
    return [
        tuple(round(getattr(item, name), 4) for name in ("x_min", "y_min", "x_max", "y_max", "score", "category"))
        for item in result
    ]


SEPARATE = Roles("boxes", {"location": "l", "category": "c", "score": "s"})


def test_separate_tensors() -> None:
    tensors = {
        "l": floats([1, 2, 4], 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8),
        "c": floats([1, 2], 3, 7),
        "s": floats([1, 2], 0.5, 0.75),
    }
    result = boxes(tensors, SEPARATE, TensorReading(0.0))
    assert rounded(result) == [(0.5, 0.6, 0.7, 0.8, 0.75, 7), (0.1, 0.2, 0.3, 0.4, 0.5, 3)]
    assert len(boxes(tensors, SEPARATE, TensorReading(0.6))) == 1
    swapped = boxes(tensors, SEPARATE, TensorReading(0.6, (1, 0, 3, 2)))
    assert rounded(swapped) == [(0.6, 0.5, 0.8, 0.7, 0.75, 7)]


def test_separate_tensors_in_pixels_with_scores_of_every_class() -> None:
    roles = Roles("boxes", {"location": "l", "score": "s"})
    tensors = {"l": floats([1, 1, 4], 32, 16, 64, 32), "s": floats([1, 1, 3], 0.1, 0.2, 0.6)}
    assert rounded(boxes(tensors, roles, TensorReading(0.0, size=(320, 160)))) == [(0.1, 0.1, 0.2, 0.2, 0.6, 2)]
    assert boxes({"l": floats([1, 0, 4]), "s": floats([1, 0])}, roles, TensorReading(0.0)) == []


def test_tensors_that_do_not_belong_together() -> None:
    tensors = {"l": floats([1, 2, 4], *range(8)), "c": floats([1]), "s": floats([1, 1], 0.5)}
    with pytest.raises(MachineError, match="8 box coordinates and 1 scores"):
        boxes({**tensors, "c": floats([1], 0)}, SEPARATE, TensorReading(0.0))
    with pytest.raises(MachineError, match="returned no tensor 's'"):
        boxes({"l": tensors["l"], "c": floats([1], 0)}, SEPARATE, TensorReading(0.0))


# A box of class 1 in the middle of an input of 100 x 200, and a box of class 0 with low confidence.
CENTRED = [(50, 100, 20, 40, 0.2, 0.75), (10, 10, 4, 4, 0.1, 0.0)]
EXPECTED = [(0.4, 0.4, 0.6, 0.6, 0.75, 1)]
IN_INPUT = TensorReading(0.5, size=(100, 200))


def test_yolov8_has_a_row_for_each_attribute() -> None:
    columns = [row[index] for index in range(6) for row in CENTRED]
    roles = Roles("yolov8", {"yolo": "o"})
    assert rounded(boxes({"o": floats([1, 6, 2], *columns)}, roles, IN_INPUT)) == EXPECTED


def test_yolov5_has_a_row_for_each_box_and_the_chance_that_there_is_one() -> None:
    rows = [value for row in CENTRED for value in (*row[:4], 1.0, *row[4:])]
    roles = Roles("yolov5", {"yolo": "o"})
    assert rounded(boxes({"o": floats([1, 2, 7], *rows)}, roles, IN_INPUT)) == EXPECTED
    unlikely = [value for row in CENTRED for value in (*row[:4], 0.5, *row[4:])]
    assert boxes({"o": floats([1, 2, 7], *unlikely)}, roles, IN_INPUT) == []


def test_yolov10_has_corners_score_and_class() -> None:
    rows = [40, 80, 60, 120, 0.75, 1, 0, 0, 5, 5, 0.1, 0]
    roles = Roles("yolov10", {"yolo": "o"})
    assert rounded(boxes({"o": floats([1, 2, 6], *rows)}, roles, IN_INPUT)) == EXPECTED


def test_of_a_crowd_the_most_confident_count() -> None:
    count = MAX_BOXES + 50
    scores = [index / 1000 for index in range(count)]
    tensors = {"l": floats([1, count, 4], *[0.1, 0.1, 0.2, 0.2] * count), "c": floats([1, count], *[0] * count)}
    result = boxes({**tensors, "s": floats([1, count], *scores)}, SEPARATE, TensorReading(0.0))
    assert [round(item.score, 3) for item in result] == [round(score, 3) for score in scores[: -MAX_BOXES - 1 : -1]]


@pytest.mark.parametrize("layout", [name for name in LAYOUTS if name != "boxes"])
def test_a_tensor_that_holds_no_boxes(layout: str) -> None:
    with pytest.raises(MachineError, match=r"shape \[1, 2\] does not contain boxes"):
        boxes({"o": floats([1, 2], 1, 2)}, Roles(layout, {"yolo": "o"}), IN_INPUT)


def test_probabilities() -> None:
    assert list(probabilities(floats([1, 2], 0.25, 0.75), "p")) == pytest.approx([0.25, 0.75])
    assert list(probabilities(FlatTensor([1, 2], uint8_tensor=bytes([0, 255])), "p")) == [0, 1]
    softened = probabilities(floats([1, 3], 1000.0, 1000.0, -1000.0), "p")
    assert list(softened) == pytest.approx([0.5, 0.5, 0])
    assert list(probabilities(floats([1, 0]), "p")) == []
