"""A backbone as tensors of PyTorch: a small interpreter of the operators in our ONNX file, which can be trained.

`torch` and `arrays` are the modules PyTorch and numpy, which are not imported at the top: checks run without them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from training.trainers import onnx_messages as onnx
from training.trainers.backbone import Backbone

_TYPES: Final[Mapping[int, str]] = {onnx.FLOAT: "<f4", onnx.FLOAT16: "<f2"}
Operator = Callable[[Any, Sequence[Any], Mapping[str, Any]], Any]


def _conv(torch: Any, values: Sequence[Any], attributes: Mapping[str, Any]) -> Any:
    top, left, bottom, right = attributes.get("pads", (0, 0, 0, 0))
    picture = values[0]
    padding: tuple[int, int] = (top, left)
    if (top, left) != (bottom, right):
        picture = torch.nn.functional.pad(picture, (left, right, top, bottom))
        padding = (0, 0)
    bias = values[2] if len(values) > 2 else None
    strides, dilations = attributes.get("strides", (1, 1)), attributes.get("dilations", (1, 1))
    group = attributes.get("group", 1)
    return torch.nn.functional.conv2d(picture, values[1], bias, strides, padding, dilations, group)


def _clip(torch: Any, values: Sequence[Any], attributes: Mapping[str, Any]) -> Any:
    return torch.clamp(values[0], *attributes["bounds"])  # numbers, because gradients of tensors take longer


def _bounded(node: Any, constants: Mapping[str, str]) -> bool:
    return len(node.input) == 3 and all(name in constants for name in node.input[1:])


OPERATORS: Final[Mapping[str, Operator]] = {
    "Add": lambda torch, values, attributes: values[0] + values[1],
    "Clip": _clip,
    "Conv": _conv,
    "Identity": lambda torch, values, attributes: values[0],
}


class FeatureNetwork:
    """Rows of features of pictures. `trained` has the tensors that can change, by the names of their initializers.

    `layers` is how many of the last convolutions can change. ValueError if the backbone has another operator than the
    file that is shipped, or another layout than [1, 3, height, width].
    """

    def __init__(self, torch: Any, arrays: Any, backbone: Backbone, layers: int, device: str) -> None:
        if not backbone.planar:
            raise ValueError("its input is [1, height, width, 3]: only [1, 3, height, width] can be fine-tuned")
        self._torch, self._backbone, self.device = torch, backbone, device
        self._constants: dict[str, Any] = {}
        for entry in backbone.model.graph.initializer:
            if entry.data_type not in _TYPES or not (entry.raw_data or 0 in entry.dims):
                raise ValueError(f"its constant {entry.name} is not stored as bytes of float32 or float16")
            numbers = arrays.frombuffer(entry.raw_data, _TYPES[entry.data_type]).reshape(tuple(entry.dims))
            self._constants[entry.name] = torch.tensor(numbers.astype(arrays.float32), device=device)
        sources = {name: name for name in self._constants}
        self._steps: list[tuple[Operator, list[str], str, dict[str, Any]]] = []
        parameters: list[list[str]] = []
        for node in backbone.model.graph.node:
            if node.op_type == "Cast" and node.input[0] in sources:  # all constants are float32 here
                sources[node.output[0]] = sources[node.input[0]]
                continue
            if node.op_type not in OPERATORS or (node.op_type == "Clip" and not _bounded(node, sources)):
                raise ValueError(
                    f"its operator {node.op_type} cannot be fine-tuned: only {', '.join(sorted(OPERATORS))}, and Cast"
                    " of constants"
                )
            attributes = {each.name: list(each.ints) or each.i for each in node.attribute}
            inputs = [sources.get(name, name) for name in node.input]
            if node.op_type == "Clip":
                attributes["bounds"] = [self._constants[name].item() for name in inputs[1:]]
            self._steps.append((OPERATORS[node.op_type], inputs, node.output[0], attributes))
            if node.op_type == "Conv":
                parameters.append([name for name in inputs[1:] if name in self._constants])
        chosen = parameters[-layers:] if layers else []
        self.trained: dict[str, Any] = {name: self._constants[name] for names in chosen for name in names}
        for tensor in self.trained.values():
            tensor.requires_grad_(True)
        self._mean = torch.tensor(backbone.mean, device=device).reshape(1, 3, 1, 1)
        self._deviation = torch.tensor(backbone.deviation, device=device).reshape(1, 3, 1, 1)

    def groups(self, pictures: Any) -> list[Any]:
        """Return the rows of each output for pictures [count, height, width, 3] with values of 0 to 255."""
        maps = self.outputs(pictures).values()
        return [each.mean((2, 3)) if each.dim() == 4 else each for each in maps]

    def outputs(self, pictures: Any) -> dict[str, Any]:
        """Return what the backbone gives for such pictures, by the names of its outputs: rows, and maps by channels."""
        first = (pictures.permute(0, 3, 1, 2).float() - self._mean) / self._deviation
        values = {**self._constants, self._backbone.input: first}
        for operator, inputs, output, attributes in self._steps:
            values[output] = operator(self._torch, [values[name] for name in inputs], attributes)
        return {name: values[name] for name, _ in self._backbone.outputs}

    def changed(self) -> bytes:
        """Return the ONNX file with the tensors of now: float32 those that can change, the others as they were."""
        model = onnx.MESSAGES["Model"]()
        model.CopyFrom(self._backbone.model)
        for entry in model.graph.initializer:
            if entry.name in self.trained:
                numbers = self.trained[entry.name].detach().cpu().numpy().astype("<f4")
                entry.CopyFrom(onnx.tensor(entry.name, tuple(entry.dims), numbers.tobytes()))
        return bytes(model.SerializeToString())
