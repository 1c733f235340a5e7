"""Pretrained backbones: what an ONNX file takes and gives, and the model that a linear head makes of it. Pure.

A backbone has one input for a picture, float32 [1, 3, height, width] or [1, height, width, 3], and its first output is
a row of features, or a map of features with the same layout. Further outputs that are maps are used too: those of
earlier layers, which are finer and say more about shapes and textures than about objects. Its metadata say how pictures
are prepared: `mean` and `std` for values of 0 to 255, separated by commas, or the key `Image.NominalPixelRange`.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from training.trainers import onnx_messages as onnx

IMAGE: Final = "image"  # input of the trained model: float32 [1, height, width, 3], 0 to 255
PROBABILITY: Final = "probability"  # its output: [1, labels]
RESERVED: Final = (IMAGE, PROBABILITY, "location", "category", "score")
"""Names of inputs and outputs of trained models."""
MIN_OPSET: Final = 11
MIN_IR: Final = 4  # before, constants were listed as inputs
MOST_CELLS: Final = 100
"""Largest number of cells of a picture that can be scored; a backbone with a finer grid gets averages only."""
_ROW, _MAP = 2, 4  # dimensions
_RANGES: Final[Mapping[str, tuple[float, float]]] = {  # mean and deviation
    "NominalRange_0_255": (0.0, 1.0),
    "Normalized_0_1": (0.0, 255.0),
    "Normalized_1_1": (127.5, 127.5),
}


@dataclass(frozen=True, slots=True)
class Backbone:
    """A parsed backbone."""

    model: Any
    planar: bool  # [1, 3, height, width]
    height: int
    width: int
    mean: tuple[float, float, float]
    deviation: tuple[float, float, float]

    @property
    def input(self) -> str:
        """Name of its input."""
        return str(self._inputs()[0].name)

    @property
    def outputs(self) -> tuple[tuple[str, int], ...]:
        """Name and number of dimensions of each output with features."""
        ranks = [(str(output.name), _rank(output)) for output in self.model.graph.output]
        return (ranks[0], *(output for output in ranks[1:] if output[1] == _MAP))

    @property
    def maps(self) -> tuple[tuple[int, int, int], ...]:
        """Height, width and number of channels of each output, 0 if the file does not say; () unless all are maps."""
        shapes = {str(output.name): _dimensions(output) for output in self.model.graph.output}
        if any(rank != _MAP for _, rank in self.outputs):
            return ()
        sizes = [shapes[name][1:] for name, _ in self.outputs]
        return tuple((height, width, count) for count, height, width in (self._channels_first(each) for each in sizes))

    @property
    def grid(self) -> tuple[int, int] | None:
        """Rows and columns of the cells that can be scored: those of the smallest map, into which all maps divide.

        None if there are no such cells, or only one, or too many.
        """
        sizes = self.maps
        if not sizes or not all(map(all, sizes)):
            return None
        rows, columns, _ = min(sizes)
        fits = all(height % rows == 0 and width % columns == 0 for height, width, _ in sizes)
        return (rows, columns) if fits and 1 < rows * columns <= MOST_CELLS else None

    def _channels_first(self, shape: Sequence[int]) -> Sequence[int]:
        return shape if self.planar else (shape[2], *shape[:2])

    @staticmethod
    def inside(name: str) -> str:
        """Return the name of a tensor of the backbone inside of the models that are made of it."""
        return f"backbone/{name}" if name in RESERVED else name

    def _inputs(self) -> list[Any]:
        return _inputs(self.model)


def read(content: bytes) -> Backbone:
    """Parse a file; ValueError says why it cannot be a backbone."""
    model = onnx.parse(content)
    if model.ir_version < MIN_IR:
        raise ValueError(f"its format is version {model.ir_version}, older than {MIN_IR}: export it again")
    opset = max((entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")), default=0)
    if opset < MIN_OPSET:
        raise ValueError(f"its operator set is version {opset}, older than {MIN_OPSET}: export it again")
    inputs = _inputs(model)
    sizes = [entry.dim_value for entry in inputs[0].type.tensor_type.shape.dim] if len(inputs) == 1 else []
    if len(sizes) != 4 or inputs[0].type.tensor_type.elem_type != onnx.FLOAT or sizes[0] > 1:
        raise ValueError("it does not have one input for a picture, float32 [1, 3, height, width]")
    planar = sizes[1] == 3
    channels, height, width = sizes[1:] if planar else (sizes[3], sizes[1], sizes[2])
    if channels != 3 or height < 1 or width < 1:
        raise ValueError(f"its input has the shape {sizes}: export it with a fixed height and width and 3 channels")
    if not model.graph.output or _rank(model.graph.output[0]) not in (_ROW, _MAP):
        raise ValueError("its first output is neither a row nor a map of features")
    mean, deviation = _preparation({entry.key: entry.value for entry in model.metadata_props})
    return Backbone(model, planar, height, width, mean, deviation)


def _rank(output: Any) -> int:
    return len(_dimensions(output))


def _dimensions(output: Any) -> list[int]:
    return [int(dimension.dim_value) for dimension in output.type.tensor_type.shape.dim]


def _inputs(model: Any) -> list[Any]:
    constants = {entry.name for entry in model.graph.initializer}
    return [entry for entry in model.graph.input if entry.name not in constants]


def _preparation(metadata: Mapping[str, str]) -> tuple[tuple[float, float, float], tuple[float, float, float]]:
    if "mean" in metadata and "std" in metadata:
        mean, deviation = _three(metadata["mean"]), _three(metadata["std"])
        if min(deviation) <= 0:
            raise ValueError(f"its metadata have std={metadata['std']}, which is not positive")
        return mean, deviation
    scale = _RANGES.get(metadata.get("Image.NominalPixelRange", ""))
    if scale is None:
        raise ValueError(
            "its metadata do not say how pictures are prepared: add mean and std for values of 0 to 255, "
            f"or Image.NominalPixelRange with one of {', '.join(_RANGES)}"
        )
    return (scale[0],) * 3, (scale[1],) * 3


def _three(text: str) -> tuple[float, float, float]:
    numbers = [float(word) for word in text.split(",")]
    if len(numbers) == 1:
        numbers *= 3
    if len(numbers) != 3:
        raise ValueError(f"its metadata have {text[:40]!r} in place of three numbers")
    return numbers[0], numbers[1], numbers[2]


def extractor(backbone: Backbone) -> bytes:
    """Return a model from `image` to rows of features [1, count], one for each output of the backbone.

    If the backbone has a grid, there is one output instead: [1, channels of all maps, rows, columns].
    """
    model = prepared(backbone)
    if (grid := backbone.grid) is not None:
        channels = sum(count for _, _, count in backbone.maps)
        model.graph.output.append(onnx.value(_cells(model.graph, backbone, grid), (1, channels, *grid)))
        return bytes(model.SerializeToString())
    for row in _rows(model.graph, backbone):
        model.graph.output.append(onnx.value(row, (1, 0)))
        del model.graph.output[-1].type.tensor_type.shape.dim[1]
        model.graph.output[-1].type.tensor_type.shape.dim.add(dim_param=row)
    return bytes(model.SerializeToString())


@dataclass(frozen=True, slots=True)
class Head:
    """A linear layer: float32 bytes of the weights [features, labels] and the biases [labels].

    With a `sharpness` it applies to each cell of the backbone's grid, and the scores of a label are the logarithm of
    the mean of exp(sharpness x score), divided by the sharpness: between the mean of the cells, for a sharpness of
    nearly 0, and the largest. Otherwise it applies to the averages over the picture.
    """

    weights: bytes
    biases: bytes
    features: int
    labels: Sequence[str]
    exclusive: bool  # exactly one label applies: softmax, otherwise a sigmoid for each
    sharpness: float = 0.0


def assembled(backbone: Backbone, head: Head, metadata: Mapping[str, str]) -> bytes:
    """Return the whole model as one file: preparation of the picture, backbone, head."""
    model = prepared(backbone)
    graph, count = model.graph, len(head.labels)
    graph.initializer.append(onnx.tensor("trained/biases", (count,), head.biases))
    scores = _pooled(graph, backbone, head) if head.sharpness else _averaged(graph, backbone, head)
    if head.exclusive:
        graph.node.append(onnx.node("Softmax", [scores], PROBABILITY, axis=1))
    else:
        graph.node.append(onnx.node("Sigmoid", [scores], PROBABILITY))
    graph.output.append(onnx.value(PROBABILITY, (1, count)))
    for key, text in metadata.items():
        model.metadata_props.add(key=key, value=text)
    return bytes(model.SerializeToString())


def _averaged(graph: Any, backbone: Backbone, head: Head) -> str:
    """Append the scores of the averages over the picture; return their name."""
    rows = _rows(graph, backbone)
    features = rows[0]
    if len(rows) > 1:
        features = "trained/features"
        graph.node.append(onnx.node("Concat", rows, features, axis=1))
    graph.initializer.append(onnx.tensor("trained/weights", (head.features, len(head.labels)), head.weights))
    graph.node.append(onnx.node("Gemm", [features, "trained/weights", "trained/biases"], "trained/scores"))
    return "trained/scores"


def _pooled(graph: Any, backbone: Backbone, head: Head) -> str:
    """Append the pooled scores of the cells; return their name. ValueError if the backbone has no grid."""
    if (grid := backbone.grid) is None:
        raise ValueError("it has no maps whose cells can be scored")
    cells, count = _cells(graph, backbone, grid), len(head.labels)
    weights = array("f", head.weights)
    by_label = b"".join(weights[label::count].tobytes() for label in range(count))
    graph.initializer.append(onnx.tensor("trained/weights", (count, head.features, 1, 1), by_label))
    graph.initializer.append(onnx.tensor("trained/sharpness", (1,), struct.pack("<f", head.sharpness)))
    # Global pooling, because the operators that reduce axes differ between versions of the operator set.
    for operator, inputs, output in (
        ("Conv", [cells, "trained/weights"], "scores"),
        ("Mul", ["trained/pooling/scores", "trained/sharpness"], "sharpened"),
        ("GlobalMaxPool", ["trained/pooling/sharpened"], "largest"),
        ("Sub", ["trained/pooling/sharpened", "trained/pooling/largest"], "differences"),
        ("Exp", ["trained/pooling/differences"], "powers"),
        ("GlobalAveragePool", ["trained/pooling/powers"], "mean"),
        ("Log", ["trained/pooling/mean"], "logarithm"),
        ("Add", ["trained/pooling/logarithm", "trained/pooling/largest"], "sum"),
        ("Div", ["trained/pooling/sum", "trained/sharpness"], "pooled"),
        ("Flatten", ["trained/pooling/pooled"], "row"),
        ("Add", ["trained/pooling/row", "trained/biases"], "sums"),
    ):
        graph.node.append(onnx.node(operator, inputs, f"trained/pooling/{output}"))
    return "trained/pooling/sums"


def prepared(backbone: Backbone) -> Any:
    """Return a copy of the model that takes `image`, and has no outputs yet."""
    model = onnx.MESSAGES["Model"]()
    model.CopyFrom(backbone.model)
    graph = model.graph
    _rename(graph, {name: backbone.inside(name) for name in RESERVED})
    first = backbone.inside(backbone.input)
    shape = (1, 3, 1, 1) if backbone.planar else (1, 1, 1, 3)
    before = []
    graph.initializer.append(onnx.tensor("trained/mean", shape, struct.pack("<3f", *backbone.mean)))
    graph.initializer.append(onnx.tensor("trained/deviation", shape, struct.pack("<3f", *backbone.deviation)))
    picture = IMAGE
    if backbone.planar:
        before.append(onnx.node("Transpose", [IMAGE], "trained/planes", perm=[0, 3, 1, 2]))
        picture = "trained/planes"
    before.append(onnx.node("Sub", [picture, "trained/mean"], "trained/centered"))
    before.append(onnx.node("Div", ["trained/centered", "trained/deviation"], first))
    nodes = list(graph.node)
    del graph.node[:]
    graph.node.extend([*before, *nodes])
    del graph.input[:], graph.output[:], graph.value_info[:], model.metadata_props[:]
    graph.input.append(onnx.value(IMAGE, (1, backbone.height, backbone.width, 3)))
    graph.name = "classifier"
    return model


def _rows(graph: Any, backbone: Backbone) -> list[str]:
    """Append what makes rows of features of the outputs; return their names."""
    return [_row(graph, backbone, *output, number) for number, output in enumerate(backbone.outputs)]


def _row(graph: Any, backbone: Backbone, name: str, rank: int, number: int) -> str:
    last = backbone.inside(name)
    if rank == _MAP:
        last = _planes(graph, backbone, name, number)
        graph.node.append(onnx.node("GlobalAveragePool", [last], f"trained/averages{number}"))
        last = f"trained/averages{number}"
    graph.node.append(onnx.node("Flatten", [last], f"trained/row{number}", axis=1))
    return f"trained/row{number}"


def _planes(graph: Any, backbone: Backbone, name: str, number: int) -> str:
    """Return the name of a map [1, channels, height, width], which is appended if the backbone's is not like this."""
    if backbone.planar:
        return backbone.inside(name)
    graph.node.append(onnx.node("Transpose", [backbone.inside(name)], f"trained/map{number}", perm=[0, 3, 1, 2]))
    return f"trained/map{number}"


def _cells(graph: Any, backbone: Backbone, grid: tuple[int, int]) -> str:
    """Append what averages all maps over the cells of the grid, and joins their channels; return its name."""
    names = []
    for number, ((name, _), (height, width, _)) in enumerate(zip(backbone.outputs, backbone.maps, strict=True)):
        last = _planes(graph, backbone, name, number)
        sides = [height // grid[0], width // grid[1]]
        if sides != [1, 1]:
            graph.node.append(
                onnx.node("AveragePool", [last], f"trained/cells{number}", kernel_shape=sides, strides=sides)
            )
            last = f"trained/cells{number}"
        names.append(last)
    graph.node.append(onnx.node("Concat", names, "trained/cells", axis=1))
    return "trained/cells"


def _rename(graph: Any, names: Mapping[str, str]) -> None:
    """Rename tensors of the backbone that have the name of one of ours; ValueError inside of subgraphs."""
    used = {name for node in graph.node for name in (*node.input, *node.output)}
    if used & names.keys() and any(
        attribute.type == onnx.ATTRIBUTE_GRAPH for node in graph.node for attribute in node.attribute
    ):
        raise ValueError(f"it has subgraphs, and tensors called {' or '.join(names)}: rename them")
    for node in graph.node:
        node.input[:] = [names.get(name, name) for name in node.input]
        node.output[:] = [names.get(name, name) for name in node.output]
    for constant in graph.initializer:
        constant.name = names.get(constant.name, constant.name)
