"""Tensors of the API as arrays of their own width, and back. Pure; numeric libraries use these without copying."""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping, Sequence
from typing import Any, Final

from runtime.services.mlmodel import FlatTensor
from schema.errors import ErrorKind, MachineError

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
"""Data types by name: the field that carries one, and the code of `array.array`."""

_BYTES: Final = frozenset({"int8", "uint8"})  # carried as bytes
_HALVES: Final = frozenset({"int16", "uint16"})  # carried in 32 bits


def tensor(data_type: str, shape: Sequence[int], data: Any) -> FlatTensor:
    """A tensor of what `data` (any buffer) holds in row-major order."""
    field, code = TYPES[data_type]
    held: Any = bytes(data)
    if data_type not in _BYTES:
        held = array("H" if data_type in _HALVES else code, held)  # the wire has no negative 16 bits
    return FlatTensor(tuple(shape), **{field: held})


def data_type_of(given: FlatTensor, name: str) -> str:
    """The data type of a tensor that is called `name` in errors; INVALID unless exactly one field is set."""
    found = [data_type for data_type, (field, _) in TYPES.items() if getattr(given, field) is not None]
    if len(found) != 1:
        held = " and ".join(found) or "no"
        raise MachineError(f"tensor {name!r} has {held} values", kind=ErrorKind.INVALID, remedy="set one of its fields")
    return found[0]


def values(given: FlatTensor, name: str) -> array[Any]:
    """The values as an array of the width of their type; INVALID if they do not fit it, or the shape."""
    data_type = data_type_of(given, name)
    field, code = TYPES[data_type]
    held = getattr(given, field)
    found: array[Any]
    if data_type in _BYTES:
        found = array(code)
        found.frombytes(held)
    elif data_type in _HALVES:
        halves = held if isinstance(held, array) and held.itemsize == 2 else array("H", (v & 0xFFFF for v in held))
        found = array(code)
        found.frombytes(halves.tobytes())
    elif isinstance(held, array) and held.typecode == code:
        found = held
    else:
        try:
            found = array(code, held)
        except (OverflowError, TypeError) as error:
            raise MachineError(f"tensor {name!r} does not hold {data_type}: {error}", kind=ErrorKind.INVALID) from error
    if math.prod(given.shape) != len(found) or any(size < 0 for size in given.shape):
        raise MachineError(
            f"tensor {name!r} has {len(found)} values, which is not its shape {list(given.shape)}",
            kind=ErrorKind.INVALID,
        )
    return found
