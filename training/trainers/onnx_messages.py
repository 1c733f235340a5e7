"""Messages of ONNX files, as far as trainers need them; other fields are kept as they are. Pure.

The numbers are those of onnx.proto (ONNX, Apache-2.0), which is stable. protobuf is installed with the project anyway,
so the package onnx is not needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

FLOAT, INT64, FLOAT16 = 1, 7, 10  # TensorProto.DataType
ATTRIBUTE_FLOAT, ATTRIBUTE_INT, ATTRIBUTE_STRING, ATTRIBUTE_GRAPH, ATTRIBUTE_INTS = (
    1,
    2,
    3,
    5,
    7,
)  # AttributeProto.AttributeType

_FIELDS: Final[Mapping[str, tuple[tuple[str, int, str], ...]]] = {  # name, number, type; * for repeated fields
    "Model": (
        ("ir_version", 1, "int64"), ("producer_name", 2, "string"), ("graph", 7, "Graph"),
        ("opset_import", 8, "OperatorSet*"), ("metadata_props", 14, "Property*"),
    ),
    "OperatorSet": (("domain", 1, "string"), ("version", 2, "int64")),
    "Property": (("key", 1, "string"), ("value", 2, "string")),
    "Graph": (
        ("node", 1, "Node*"), ("name", 2, "string"), ("initializer", 5, "Tensor*"), ("input", 11, "Value*"),
        ("output", 12, "Value*"), ("value_info", 13, "Value*"),
    ),
    "Node": (
        ("input", 1, "string*"), ("output", 2, "string*"), ("name", 3, "string"), ("op_type", 4, "string"),
        ("attribute", 5, "Attribute*"), ("domain", 7, "string"),
    ),
    "Attribute": (
        ("name", 1, "string"), ("f", 2, "float"), ("i", 3, "int64"), ("s", 4, "bytes"), ("ints", 8, "int64*"),
        ("type", 20, "int32"),
    ),
    "Tensor": (("dims", 1, "int64*"), ("data_type", 2, "int32"), ("name", 8, "string"), ("raw_data", 9, "bytes")),
    "Value": (("name", 1, "string"), ("type", 2, "Type")),
    "Type": (("tensor_type", 1, "TensorType"),),
    "TensorType": (("elem_type", 1, "int32"), ("shape", 2, "Shape")),
    "Shape": (("dim", 1, "Dimension*"),),
    "Dimension": (("dim_value", 1, "int64"), ("dim_param", 2, "string")),
}  # fmt: skip
_PACKAGE: Final = "training.onnx"


def _messages() -> dict[str, Any]:
    proto = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="training/onnx.proto", package=_PACKAGE, syntax="proto3")
    for message, fields in _FIELDS.items():
        described = file.message_type.add(name=message)
        for name, number, text in fields:
            kind = text.rstrip("*")
            field = described.field.add(name=name, number=number)
            field.label = proto.LABEL_REPEATED if text.endswith("*") else proto.LABEL_OPTIONAL
            if kind in _FIELDS:
                field.type, field.type_name = proto.TYPE_MESSAGE, f".{_PACKAGE}.{kind}"
            else:
                field.type = getattr(proto, f"TYPE_{kind.upper()}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}")) for name in _FIELDS}


MESSAGES: Final = _messages()
"""Message classes by name."""


def parse(content: bytes) -> Any:
    """Return the Model of a file; ValueError if it is not an ONNX file."""
    try:
        model = MESSAGES["Model"].FromString(content)
    except Exception as error:  # DecodeError, of the implementation in use
        raise ValueError(f"it is not an ONNX file: {error}") from error
    if not model.graph.node:
        raise ValueError("it is not an ONNX file with a graph")
    return model


def tensor(name: str, dims: Sequence[int], raw: bytes, kind: int = FLOAT) -> Any:
    """Return a tensor from the little-endian bytes of its numbers."""
    return MESSAGES["Tensor"](name=name, dims=dims, data_type=kind, raw_data=raw)


def node(operator: str, inputs: Sequence[str], output: str, **attributes: int | float | str | list[int]) -> Any:
    """Return an operator with one output."""
    result = MESSAGES["Node"](op_type=operator, input=inputs, output=[output])
    for name, value in attributes.items():
        if isinstance(value, list):
            result.attribute.add(name=name, ints=value, type=ATTRIBUTE_INTS)
        elif isinstance(value, str):
            result.attribute.add(name=name, s=value.encode(), type=ATTRIBUTE_STRING)
        elif isinstance(value, float):
            result.attribute.add(name=name, f=value, type=ATTRIBUTE_FLOAT)
        else:
            result.attribute.add(name=name, i=value, type=ATTRIBUTE_INT)
    return result


def value(name: str, dims: tuple[int, ...]) -> Any:
    """Return the description of an input or output of float32 numbers."""
    result = MESSAGES["Value"](name=name)
    result.type.tensor_type.elem_type = FLOAT
    for size in dims:
        result.type.tensor_type.shape.dim.add(dim_value=size)
    return result
