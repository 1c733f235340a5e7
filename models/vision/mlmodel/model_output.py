"""Conversion of a model's output tensors to boxes and labels. Pure.

Layouts of detectors: `boxes` are separate tensors of boxes, classes and scores; `yolov5`, `yolov8` and `yolov10` are
single tensors, as the exporters of these families write them, with boxes in pixels of the model's input.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nlargest
from typing import Any, Final

from engine import FlatTensor, TensorInfo
from models.mlmodel.tensors import values
from models.vision.common.results import Box
from models.vision.mlmodel.layouts import BOXES
from schema import ErrorKind, MachineError

MAX_BOXES: Final = 300  # largest number of boxes per image; the most confident are kept
_PIXELS: Final = 2.0  # larger coordinates are pixels, not fractions

ROLES: Final[Mapping[str, str]] = {
    "location": "location",
    "boxes": "location",
    "detection_boxes": "location",
    "category": "category",
    "classes": "category",
    "labels": "category",
    "detection_classes": "category",
    "score": "score",
    "scores": "score",
    "detection_scores": "score",
    "probability": "probability",
    "probabilities": "probability",
}
"""Usual names of tensors, in lower case -> roles."""


@dataclass(frozen=True, slots=True)
class Roles:
    """The output format of a model: the layout, and the tensors by role."""

    layout: str = ""  # of a detector; empty for other models
    tensors: Mapping[str, str] = field(default_factory=dict)  # by role: location, category, score, probability, yolo

    @property
    def detects(self) -> bool:
        """Whether the model is a detector."""
        return bool(self.layout)

    @property
    def classifies(self) -> bool:
        """Whether the model classifies images."""
        return "probability" in self.tensors


def roles_of(outputs: Sequence[TensorInfo], renamed: Mapping[str, str], labels: int, layout: str = "") -> Roles:
    """Determine the roles of outputs by their names (after `renamed`), by `layout`, or by the shape of a single output.

    PRECONDITION if they cannot be determined.
    """
    tensor_names: dict[str, str] = {}
    for info in outputs:
        role = ROLES.get(renamed.get(info.name, info.name).lower())
        if role is not None:
            tensor_names.setdefault(role, info.name)
    if "location" in tensor_names and "score" in tensor_names and layout in ("", BOXES):
        return Roles(BOXES, tensor_names)
    if "probability" in tensor_names and not layout:
        return Roles("", tensor_names)
    if len(outputs) == 1 and layout != BOXES:
        output = outputs[0]
        layout = layout or _guess(output.shape, labels)
        return Roles(layout, {"yolo": output.name}) if layout else Roles("", {"probability": output.name})
    described = ", ".join(f"{info.name} {list(info.shape)}" for info in outputs)
    raise MachineError(
        f"the meaning of the model's outputs cannot be determined: {described or '(no outputs)'}",
        kind=ErrorKind.PRECONDITION,
        remedy="map them to location, category and score, or to probability, with remap_output_names",
    )


def _guess(shape: Sequence[int], labels: int) -> str:
    """Guess the layout of a single output; empty for a classifier, whose only long axis is the classes."""
    if len(shape) != 3 or sum(size != 1 for size in shape) < 2:
        return ""
    _, first, second = shape
    if labels and second == 5 + labels:
        return "yolov5"
    if labels and first == 4 + labels:
        return "yolov8"
    if second == 6:
        return "yolov10"
    return "yolov5" if 5 < second < first else "yolov8"


def probabilities(tensor: FlatTensor, name: str) -> Sequence[float]:
    """Return a probability (0 to 1) per class. Bytes are divided by 255; values outside 0 to 1 pass through softmax."""
    scores = values(tensor, name)
    if tensor.uint8_tensor is not None:
        return [value / 255 for value in scores]
    if all(0 <= value <= 1 for value in scores):
        return scores
    highest = max(scores)
    exponentials = [math.exp(value - highest) for value in scores]
    total = sum(exponentials)
    return [exponential / total for exponential in exponentials]


@dataclass(frozen=True, slots=True)
class TensorReading:
    """Parameters for reading a detector's tensors."""

    min_score: float  # lowest confidence of a box
    order: Sequence[int] = (0, 1, 2, 3)  # positions of x_min, y_min, x_max and y_max in a box
    size: tuple[int, int] = (1, 1)  # width and height of the input in pixels


def boxes(tensors: Mapping[str, FlatTensor], roles: Roles, reading: TensorReading) -> list[Box]:
    """Return at most CROWD boxes, most confident first, including overlapping ones."""
    tensors_by_role = {role: _tensor(tensors, name) for role, name in roles.tensors.items() if role != "probability"}
    return nlargest(MAX_BOXES, _LAYOUTS[roles.layout](tensors_by_role, reading), key=lambda box: box.score)


_Named = Mapping[str, tuple[FlatTensor, str]]


def _tensor(tensors: Mapping[str, FlatTensor], name: str) -> tuple[FlatTensor, str]:
    tensor = tensors.get(name)
    if tensor is None:
        raise MachineError(f"the model returned no tensor {name!r}", kind=ErrorKind.INTERNAL)
    return tensor, name


def _separate(tensors: _Named, reading: TensorReading) -> Iterator[Box]:
    coordinates, scores = values(*tensors["location"]), values(*tensors["score"])
    count = len(coordinates) // 4
    classes = len(scores) // count if count else 0
    if count and (len(coordinates) != 4 * count or classes < 1):
        raise MachineError(
            f"{len(coordinates)} box coordinates and {len(scores)} scores do not match",
            kind=ErrorKind.PRECONDITION,
            remedy="check remap_output_names",
        )
    categories = values(*tensors["category"]) if "category" in tensors else None
    pixels = any(abs(value) > _PIXELS for value in coordinates)
    width, height = reading.size if pixels else (1, 1)
    order = reading.order
    for index in range(count):
        category, score = _best(scores[index * classes : (index + 1) * classes])
        if score < reading.min_score:
            continue
        if categories is not None and index < len(categories):
            category = int(categories[index])
        box = coordinates[4 * index : 4 * index + 4]
        yield Box(
            box[order[0]] / width,
            box[order[1]] / height,
            box[order[2]] / width,
            box[order[3]] / height,
            score,
            category,
        )


def _best(scores: Sequence[float]) -> tuple[int, float]:
    highest = max(range(len(scores)), key=scores.__getitem__)
    return highest, float(scores[highest])


def _columns(tensors: _Named, axis: int, min_columns: int) -> list[array[Any]]:
    """Return one array per attribute of the boxes; `axis` (of the last two) is the axis of the attributes."""
    tensor, name = tensors["yolo"]
    data = values(tensor, name)
    shape = list(tensor.shape)[-2:]
    if len(shape) != 2 or shape[axis] < min_columns:
        raise MachineError(
            f"the tensor {name!r} of shape {list(tensor.shape)} does not contain boxes",
            kind=ErrorKind.PRECONDITION,
            remedy="check output_layout",
        )
    rows, across = shape
    if axis == 0:
        return [data[row * across : (row + 1) * across] for row in range(rows)]
    return [data[column::across] for column in range(across)]


def _centred(
    columns: Sequence[Sequence[float]], index: int, score: float, category: int, reading: TensorReading
) -> Box:
    x, y, width, height = (column[index] for column in columns[:4])
    across, down = reading.size
    return Box(
        (x - width / 2) / across,
        (y - height / 2) / down,
        (x + width / 2) / across,
        (y + height / 2) / down,
        score,
        category,
    )


def _yolov8(tensors: _Named, reading: TensorReading) -> Iterator[Box]:
    columns = _columns(tensors, 0, 5)
    classes = columns[4:]
    for index, score in enumerate(_highest(classes)):
        if score >= reading.min_score:
            category, _ = _best([column[index] for column in classes])
            yield _centred(columns, index, score, category, reading)


def _yolov5(tensors: _Named, reading: TensorReading) -> Iterator[Box]:
    columns = _columns(tensors, 1, 6)
    classes = columns[5:]
    for index, (objectness, score) in enumerate(zip(columns[4], _highest(classes), strict=True)):
        if objectness * score >= reading.min_score:
            category, _ = _best([column[index] for column in classes])
            yield _centred(columns, index, objectness * score, category, reading)


def _yolov10(tensors: _Named, reading: TensorReading) -> Iterator[Box]:
    across, down = reading.size
    for x_min, y_min, x_max, y_max, score, category in zip(*_columns(tensors, 1, 6)[:6], strict=True):
        if score >= reading.min_score:
            yield Box(x_min / across, y_min / down, x_max / across, y_max / down, score, int(category))


def _highest(columns: Sequence[Sequence[float]]) -> Iterable[float]:
    return columns[0] if len(columns) == 1 else map(max, *columns)


_LAYOUTS: Final[Mapping[str, Callable[[_Named, TensorReading], Iterator[Box]]]] = {
    BOXES: _separate,
    "yolov5": _yolov5,
    "yolov8": _yolov8,
    "yolov10": _yolov10,
}
