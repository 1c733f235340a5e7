"""Small ONNX models encoded byte by byte, with the field numbers of onnx.proto3."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Final

ELEMENTS: Final = {
    "float32": 1,
    "uint8": 2,
    "int8": 3,
    "uint16": 4,
    "int16": 5,
    "int32": 6,
    "int64": 7,
    "string": 8,
    "bool": 9,
    "float16": 10,
    "float64": 11,
    "uint32": 12,
    "uint64": 13,
}
Tensor = tuple[str, str, Sequence[int | str]]  # name, element type, shape with names for free sizes


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])


def _field(number: int, value: int | str | bytes) -> bytes:
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    data = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _value(value: Tensor) -> bytes:
    name, element, shape = value
    dims = b"".join(_field(1, _field(1 if isinstance(size, int) else 2, size)) for size in shape)
    return _field(1, name) + _field(2, _field(1, _field(1, ELEMENTS[element]) + _field(2, dims)))


def node(operator: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: int) -> bytes:
    """Encode an operator with integers as attributes."""
    parts = [_field(1, name) for name in inputs] + [_field(2, name) for name in outputs]
    extra = [_field(5, _field(1, name) + _field(3, value) + _field(20, 2)) for name, value in attributes.items()]
    return b"".join(parts) + _field(4, operator) + b"".join(extra)


def constant(name: str, shape: Sequence[int], values: Sequence[float]) -> bytes:
    """Encode a tensor of float32 that is part of the model."""
    dims = b"".join(_field(1, size) for size in shape)
    return dims + _field(2, 1) + _field(8, name) + _field(9, struct.pack(f"<{len(values)}f", *values))


def model(
    nodes: Sequence[bytes],
    inputs: Sequence[Tensor],
    outputs: Sequence[Tensor],
    *,
    constants: Sequence[bytes] = (),
    metadata: Mapping[str, str] | None = None,
) -> bytes:
    """Encode the model file."""
    graph = b"".join(_field(1, node) for node in nodes) + _field(2, "drawn")
    graph += b"".join(_field(5, constant) for constant in constants)
    graph += b"".join(_field(11, _value(value)) for value in inputs)
    graph += b"".join(_field(12, _value(value)) for value in outputs)
    extra = b"".join(_field(14, _field(1, key) + _field(2, value)) for key, value in (metadata or {}).items())
    opset = _field(8, _field(1, "") + _field(2, 13))
    return _field(1, 8) + opset + _field(7, graph) + _field(6, "of a test") + extra


def classifier(metadata: Mapping[str, str] | None = None, size: int = 8) -> bytes:
    """Return a model that averages each color channel of `image` (0 to 255) into three class scores."""
    return model(
        [node("GlobalAveragePool", ["image"], ["mean"]), node("Flatten", ["mean"], ["logits"])],
        [("image", "float32", [1, 3, size, size])],
        [("logits", "float32", [1, 3])],
        metadata=metadata,
    )


def detector(metadata: Mapping[str, str] | None = None) -> bytes:
    """Return a model with two constant boxes."""
    return model(
        [node("Identity", [f"{name}_"], [name]) for name in ("location", "category", "score")],
        [("image", "uint8", [1, 10, 20, 3])],
        [("location", "float32", [1, 2, 4]), ("category", "float32", [1, 2]), ("score", "float32", [1, 2])],
        constants=[
            constant("location_", [1, 2, 4], [0.1, 0.2, 0.3, 0.4, 0.5, 0.5, 1.5, 1.0]),
            constant("category_", [1, 2], [1, 0]),
            constant("score_", [1, 2], [0.6, 0.9]),
        ],
        metadata=metadata,
    )


def as_large_as_asked() -> bytes:
    """Return a model whose memory depends on its input: it sums up `size` zeros."""
    return model(
        [
            node("Cast", ["size"], ["shape"], to=ELEMENTS["int64"]),
            node("ConstantOfShape", ["shape"], ["zeros"]),
            node("ReduceSum", ["zeros"], ["sum"]),
        ],
        [("size", "float32", [1])],
        [("sum", "float32", [1])],
    )


def identity(element: str) -> bytes:
    """Return a model that outputs its input, in rows of 2."""
    return model(
        [node("Identity", ["given"], ["found"])], [("given", element, ["rows", 2])], [("found", element, ["rows", 2])]
    )
