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

from catalogue.vision.model_output import BOXES
from runtime.engine.services.mlmodel import FlatTensor, TensorInfo
from runtime.models.mlmodels.tensors import values
from runtime.models.vision.found import Box
from schema.errors import ErrorKind, MachineError

CROWD: Final = 300  # largest number of boxes per image; the most confident are kept
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
    found: dict[str, str] = {}
    for info in outputs:
        role = ROLES.get(renamed.get(info.name, info.name).lower())
        if role is not None:
            found.setdefault(role, info.name)
    if "location" in found and "score" in found and layout in ("", BOXES):
        return Roles(BOXES, found)
    if "probability" in found and not layout:
        return Roles("", found)
    if len(outputs) == 1 and layout != BOXES:
        only = outputs[0]
        layout = layout or _guess(only.shape, labels)
        return Roles(layout, {"yolo": only.name}) if layout else Roles("", {"probability": only.name})
    names = ", ".join(f"{info.name} {list(info.shape)}" for info in outputs)
    raise MachineError(
        f"the meaning of the model's outputs cannot be determined: {names or '(no outputs)'}",
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


def probabilities(given: FlatTensor, name: str) -> Sequence[float]:
    """Return a probability (0 to 1) per class. Bytes are divided by 255; values outside 0 to 1 pass through softmax."""
    found = values(given, name)
    if given.uint8_tensor is not None:
        return [value / 255 for value in found]
    if all(0 <= value <= 1 for value in found):
        return found
    highest = max(found)
    powers = [math.exp(value - highest) for value in found]
    total = sum(powers)
    return [power / total for power in powers]


@dataclass(frozen=True, slots=True)
class Reading:
    """Parameters for reading a detector's tensors."""

    least: float  # lowest confidence of a box
    order: Sequence[int] = (0, 1, 2, 3)  # positions of x_min, y_min, x_max and y_max in a box
    size: tuple[int, int] = (1, 1)  # width and height of the input in pixels


def boxes(tensors: Mapping[str, FlatTensor], roles: Roles, reading: Reading) -> list[Box]:
    """Return at most CROWD boxes, most confident first, including overlapping ones."""
    found = {role: _of(tensors, name) for role, name in roles.tensors.items() if role != "probability"}
    return nlargest(CROWD, _LAYOUTS[roles.layout](found, reading), key=lambda box: box.score)


_Named = Mapping[str, tuple[FlatTensor, str]]


def _of(tensors: Mapping[str, FlatTensor], name: str) -> tuple[FlatTensor, str]:
    found = tensors.get(name)
    if found is None:
        raise MachineError(f"the model returned no tensor {name!r}", kind=ErrorKind.INTERNAL)
    return found, name


def _separate(found: _Named, reading: Reading) -> Iterator[Box]:
    places, scores = values(*found["location"]), values(*found["score"])
    count = len(places) // 4
    classes = len(scores) // count if count else 0
    if count and (len(places) != 4 * count or classes < 1):
        raise MachineError(
            f"{len(places)} box coordinates and {len(scores)} scores do not match",
            kind=ErrorKind.PRECONDITION,
            remedy="check remap_output_names",
        )
    categories = values(*found["category"]) if "category" in found else None
    pixels = any(abs(value) > _PIXELS for value in places)
    width, height = reading.size if pixels else (1, 1)
    at = reading.order
    for index in range(count):
        category, score = _best(scores[index * classes : (index + 1) * classes])
        if score < reading.least:
            continue
        if categories is not None and index < len(categories):
            category = int(categories[index])
        box = places[4 * index : 4 * index + 4]
        yield Box(box[at[0]] / width, box[at[1]] / height, box[at[2]] / width, box[at[3]] / height, score, category)


def _best(scores: Sequence[float]) -> tuple[int, float]:
    highest = max(range(len(scores)), key=scores.__getitem__)
    return highest, float(scores[highest])


def _columns(found: _Named, axis: int, least: int) -> list[array[Any]]:
    """Return one array per attribute of the boxes; `axis` (of the last two) is the axis of the attributes."""
    given, name = found["yolo"]
    data = values(given, name)
    shape = list(given.shape)[-2:]
    if len(shape) != 2 or shape[axis] < least:
        raise MachineError(
            f"the tensor {name!r} of shape {list(given.shape)} does not contain boxes",
            kind=ErrorKind.PRECONDITION,
            remedy="check output_layout",
        )
    rows, across = shape
    if axis == 0:
        return [data[row * across : (row + 1) * across] for row in range(rows)]
    return [data[column::across] for column in range(across)]


def _centred(columns: Sequence[Sequence[float]], index: int, score: float, category: int, reading: Reading) -> Box:
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


def _yolov8(found: _Named, reading: Reading) -> Iterator[Box]:
    columns = _columns(found, 0, 5)
    classes = columns[4:]
    for index, score in enumerate(_highest(classes)):
        if score >= reading.least:
            category, _ = _best([column[index] for column in classes])
            yield _centred(columns, index, score, category, reading)


def _yolov5(found: _Named, reading: Reading) -> Iterator[Box]:
    columns = _columns(found, 1, 6)
    classes = columns[5:]
    for index, (presence, score) in enumerate(zip(columns[4], _highest(classes), strict=True)):
        if presence * score >= reading.least:
            category, _ = _best([column[index] for column in classes])
            yield _centred(columns, index, presence * score, category, reading)


def _yolov10(found: _Named, reading: Reading) -> Iterator[Box]:
    across, down = reading.size
    for x_min, y_min, x_max, y_max, score, category in zip(*_columns(found, 1, 6)[:6], strict=True):
        if score >= reading.least:
            yield Box(x_min / across, y_min / down, x_max / across, y_max / down, score, int(category))


def _highest(columns: Sequence[Sequence[float]]) -> Iterable[float]:
    return columns[0] if len(columns) == 1 else map(max, *columns)


_LAYOUTS: Final[Mapping[str, Callable[[_Named, Reading], Iterator[Box]]]] = {
    BOXES: _separate,
    "yolov5": _yolov5,
    "yolov8": _yolov8,
    "yolov10": _yolov10,
}
