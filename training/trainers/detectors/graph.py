"""ONNX files of the detector: from a picture to the maps of the backbone, and from a picture to boxes. Pure.

The second has everything inside: preparation of the picture, backbone, head, decoding, and suppression of boxes that
overlap a better one of the same label. It gives a row for each box that is left, best first: `location` [1, n, 4] as
fractions x_min, y_min, x_max, y_max; `category` [1, n]; `score` [1, n].
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any, Final

from training.trainers import onnx_messages as onnx
from training.trainers.backbone import Backbone, prepared
from training.trainers.detectors.network import BLOCKS, LONGEST, WIDTH, Weights

CANDIDATES: Final = 100  # most boxes of a picture
OVERLAP: Final = 0.5  # from which on a worse box is suppressed
LEAST: Final = 0.02  # score of a box
MIN_CELLS: Final = 8  # in each direction of the finest map


def maps_of(backbone: Backbone) -> list[tuple[str, int]]:
    """Return name and side of the maps that the detector uses, the finest first; ValueError if they do not fit."""
    maps = []
    for output in backbone.model.graph.output:
        sizes = [dimension.dim_value for dimension in output.type.tensor_type.shape.dim]
        if len(sizes) != 4:
            continue
        height, width = sizes[2:] if backbone.planar else sizes[1:3]
        if height != width or height < 1 or backbone.height != backbone.width:
            raise ValueError(f"its output {output.name!r} is not a square map of a square picture")
        maps.append((str(output.name), int(height)))
    maps.sort(key=lambda entry: -entry[1])
    if not maps or maps[0][1] < MIN_CELLS:
        raise ValueError(f"it has no output that is a map of at least {MIN_CELLS} x {MIN_CELLS} cells")
    if any(maps[0][1] % side for _, side in maps):
        raise ValueError("the sides of its maps are not multiples of each other")
    return maps


def extractor(backbone: Backbone) -> bytes:
    """Return a model from `image` to the maps [1, height, width, channels], the finest first."""
    model, names = _maps(backbone)
    for number, name in enumerate(names):
        model.graph.node.append(onnx.node("Transpose", [name], f"maps/{number}", perm=[0, 2, 3, 1]))
        model.graph.output.append(_open(f"maps/{number}", ("one", "height", "width", f"channels{number}")))
    return bytes(model.SerializeToString())


def _maps(backbone: Backbone) -> tuple[Any, list[str]]:
    """Return a model without outputs, and the names of its maps [1, channels, height, width]."""
    model, names = prepared(backbone), []
    for number, (name, _) in enumerate(maps_of(backbone)):
        last = backbone.inside(name)
        if not backbone.planar:
            model.graph.node.append(onnx.node("Transpose", [last], f"trained/map{number}", perm=[0, 3, 1, 2]))
            last = f"trained/map{number}"
        names.append(last)
    return model, names


def _open(name: str, dimensions: Sequence[str], kind: int = onnx.FLOAT) -> Any:
    result = onnx.value(name, ())
    result.type.tensor_type.elem_type = kind
    for text in dimensions:
        result.type.tensor_type.shape.dim.add(dim_param=text)
    return result


class _Builder:
    """Appends nodes; each method returns the name of its result."""

    def __init__(self, graph: Any) -> None:
        self._graph = graph
        self._count = 0

    def node(self, operator: str, *inputs: str, **attributes: Any) -> str:
        self._count += 1
        name = f"detector/{self._count}"
        self._graph.node.append(onnx.node(operator, inputs, name, **attributes))
        return name

    def floats(self, numbers: Sequence[float], *dims: int) -> str:
        return self.constant(struct.pack(f"<{len(numbers)}f", *numbers), dims)

    def integers(self, numbers: Sequence[int], *dims: int) -> str:
        return self.constant(struct.pack(f"<{len(numbers)}q", *numbers), dims, onnx.INT64)

    def constant(self, raw: bytes, dims: Sequence[int], kind: int = onnx.FLOAT) -> str:
        self._count += 1
        name = f"detector/{self._count}"
        self._graph.initializer.append(onnx.tensor(name, dims, raw, kind))
        return name

    def array(self, values: Any) -> str:
        return self.constant(values.astype("<f4").tobytes(), values.shape)

    def convolution(self, source: str, weights: Any, bias: Any, **attributes: Any) -> str:
        return self.node("Conv", source, self.array(weights), self.array(bias), **attributes)


def detector(backbone: Backbone, weights: Weights, labels: int, metadata: Mapping[str, str]) -> bytes:
    """Return the detector. `weights` are those of `network`, for maps as the backbone gives them."""
    model, names = _maps(backbone)
    graph, cells = model.graph, maps_of(backbone)[0][1]
    build = _Builder(graph)
    total = ""
    for number, (name, (_, side)) in enumerate(zip(names, maps_of(backbone), strict=True)):
        kernel = weights[f"map{number}"].T[:, :, None, None]
        part = build.convolution(name, kernel, weights["bias"] if not number else 0 * weights["bias"])
        if side != cells:
            scales = build.floats([1, 1, cells // side, cells // side], 4)
            how = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
            part = build.node("Resize", part, build.floats([], 0), scales, **how)
        total = build.node("Add", total, part) if total else part
    current = build.node("Relu", total)
    for block in BLOCKS:
        kernel = weights[f"deep{block}"].transpose(2, 0, 1)[:, None]
        mixed = build.convolution(current, kernel, 0 * weights["bias"], group=WIDTH, pads=[1, 1, 1, 1])
        point = weights[f"point{block}"].T[:, :, None, None]
        raised = build.node("Relu", build.convolution(mixed, point, weights[f"shift{block}"]))
        current = build.node("Add", current, raised)
    out, bias = weights["out"].T[:, :, None, None], weights["out_bias"]
    scores = build.node("Sigmoid", build.convolution(current, out[:labels], bias[:labels]))
    distances = build.convolution(current, out[labels:], bias[labels:])
    _decode(build, graph, scores, distances, labels, cells)
    graph.name = "detector"
    for name, shape in (
        ("location", ("one", "boxes", "edges")),
        ("category", ("one", "boxes")),
        ("score", ("one", "boxes")),
    ):
        graph.output.append(_open(name, shape))
    for key, text in metadata.items():
        model.metadata_props.add(key=key, value=text)
    return bytes(model.SerializeToString())


def _decode(build: _Builder, graph: Any, scores: str, distances: str, labels: int, cells: int) -> None:
    """Append the nodes from the maps of the head to the outputs."""
    candidates = min(CANDIDATES, labels * cells**2)
    highest = build.node("MaxPool", scores, kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[1, 1])
    peaks = build.node("Mul", scores, build.node("Cast", build.node("Equal", scores, highest), to=onnx.FLOAT))
    flat = build.node("Reshape", peaks, build.integers([-1], 1))
    best, places = "detector/best", "detector/places"
    graph.node.append(
        onnx.MESSAGES["Node"](op_type="TopK", input=[flat, build.integers([candidates], 1)], output=[best, places])
    )
    area = build.integers([cells**2], 1)
    label = build.node("Div", places, area)
    cell = build.node("Sub", places, build.node("Mul", label, area))
    row = build.node("Div", cell, build.integers([cells], 1))
    column = build.node("Sub", cell, build.node("Mul", row, build.integers([cells], 1)))
    half = build.floats([0.5], 1)
    x, y = (build.node("Add", build.node("Cast", part, to=onnx.FLOAT), half) for part in (column, row))
    column_shape = build.integers([-1, 1], 2)
    x, y = (build.node("Reshape", part, column_shape) for part in (x, y))
    middles = build.node("Concat", x, y, x, y, axis=1)
    rows = build.node("Transpose", build.node("Reshape", distances, build.integers([4, -1], 2)), perm=[1, 0])
    chosen = build.node(
        "Clip", build.node("Gather", rows, cell, axis=0), build.floats([-LONGEST]), build.floats([LONGEST])
    )
    offsets = build.node("Mul", build.node("Exp", chosen), build.floats([-1, -1, 1, 1], 1, 4))
    edges = build.node("Div", build.node("Add", middles, offsets), build.floats([cells], 1))
    location = build.node("Clip", edges, build.floats([0]), build.floats([1]))
    category = build.node("Cast", label, to=onnx.FLOAT)
    apart = build.node("Mul", build.node("Reshape", category, column_shape), build.floats([2], 1))  # of other labels
    moved = build.node("Reshape", build.node("Add", location, apart), build.integers([1, -1, 4], 3))
    kept = build.node(
        "NonMaxSuppression", moved, build.node("Reshape", best, build.integers([1, 1, -1], 3)),
        build.integers([candidates], 1), build.floats([OVERLAP], 1), build.floats([LEAST], 1),
    )  # fmt: skip
    indices = build.node("Gather", kept, build.integers([2]), axis=1)
    for name, source, shape in (
        ("location", location, (1, -1, 4)),
        ("category", category, (1, -1)),
        ("score", best, (1, -1)),
    ):
        picked = build.node("Gather", source, indices, axis=0)
        graph.node.append(onnx.node("Reshape", [picked, build.integers(shape, len(shape))], name))
