"""Conversion of API tensors to and from arrays, which numeric libraries can use without copying. Pure."""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping, Sequence
from typing import Any, Final

from engine import FlatTensor
from schema import ErrorKind, MachineError

TYPES: Final[Mapping[str, tuple[str, str]]] = {
    "int8": ("int8_tensor", "b"),
    "uint8": ("uint8_tensor", "B"),
    "int16": ("int16_tensor", "h"),
    "uint16": ("uint16_tensor", "H"),
    "int32": ("int32_tensor", "i"),
    "uint32": ("uint32_tensor", "I"),
    "int64": ("int64_tensor", "q"),
    "uint64": ("uint64_tensor", "Q"),
    "float32": ("float_tensor", "f"),
    "float64": ("double_tensor", "d"),
}
"""Data types by name: the field of the message, and the type code of `array.array`."""

_BYTES: Final = frozenset({"int8", "uint8"})  # encoded as bytes
_HALVES: Final = frozenset({"int16", "uint16"})  # encoded in 32 bits


def tensor(data_type: str, shape: Sequence[int], data: Any) -> FlatTensor:
    """Create a tensor from a buffer in row-major order."""
    field, code = TYPES[data_type]
    content: Any = bytes(data)
    if data_type not in _BYTES:
        content = array("H" if data_type in _HALVES else code, content)  # the API has no negative 16-bit values
    return FlatTensor(tuple(shape), **{field: content})


def data_type_of(flat_tensor: FlatTensor, name: str) -> str:
    """Return the data type of a tensor, named `name` in errors. INVALID unless exactly one field is set."""
    set_types = [data_type for data_type, (field, _) in TYPES.items() if getattr(flat_tensor, field) is not None]
    if len(set_types) != 1:
        listed = " and ".join(set_types) or "no"
        raise MachineError(
            f"tensor {name!r} has {listed} values", kind=ErrorKind.INVALID, remedy="set exactly one of its fields"
        )
    return set_types[0]


def values(flat_tensor: FlatTensor, name: str) -> array[Any]:
    """Return the values as an array of their type. INVALID if they do not fit the type or the shape."""
    data_type = data_type_of(flat_tensor, name)
    field, code = TYPES[data_type]
    content = getattr(flat_tensor, field)
    result: array[Any]
    if data_type in _BYTES:
        result = array(code)
        result.frombytes(content)
    elif data_type in _HALVES:
        halves = (
            content
            if isinstance(content, array) and content.itemsize == 2
            else array("H", (v & 0xFFFF for v in content))
        )
        result = array(code)
        result.frombytes(halves.tobytes())
    elif isinstance(content, array) and content.typecode == code:
        result = content
    else:
        try:
            result = array(code, content)
        except (OverflowError, TypeError) as error:
            raise MachineError(
                f"tensor {name!r} has values that are not {data_type}: {error}", kind=ErrorKind.INVALID
            ) from error
    if math.prod(flat_tensor.shape) != len(result) or any(size < 0 for size in flat_tensor.shape):
        raise MachineError(
            f"tensor {name!r} has {len(result)} values, which does not match its shape {list(flat_tensor.shape)}",
            kind=ErrorKind.INVALID,
        )
    return result
