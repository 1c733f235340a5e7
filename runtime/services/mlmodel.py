"""ML model service: tensors in, tensors out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, ClassVar

from runtime.resource import Extra, Service
from schema.names import API


class LabelType(IntEnum):
    """What the lines of a label file stand for."""

    UNSPECIFIED = 0
    TENSOR_VALUE = 1  # a value of the tensor is the number of a line
    TENSOR_AXIS = 2  # a place along an axis of the tensor is the number of a line


@dataclass(frozen=True, slots=True)
class File:
    """A file that belongs to a tensor, such as its labels; `name` is a path on the machine or within the model."""

    name: str = ""
    description: str = ""
    label_type: LabelType = LabelType.UNSPECIFIED


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """A tensor that a model takes or gives; `data_type` is `float32` or alike, a free size in `shape` is -1."""

    name: str
    description: str = ""
    data_type: str = ""
    shape: Sequence[int] = ()
    associated_files: Sequence[File] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Metadata:
    """What a model is, what it takes and what it gives, in order."""

    name: str = ""
    type: str = ""
    description: str = ""
    input_info: Sequence[TensorInfo] = ()
    output_info: Sequence[TensorInfo] = ()


@dataclass(frozen=True, slots=True)
class FlatTensor:
    """One tensor: its shape, and its values in row-major order in exactly one of the fields.

    Values of 8 bits are bytes. The wire carries those of 16 bits as 32 unsigned bits, of which the lower 16 count. In
    process any sequence will do; an `array.array` of the width of the field can be used without copying.
    """

    shape: Sequence[int] = ()
    int8_tensor: bytes | None = None
    uint8_tensor: bytes | None = None
    int16_tensor: Sequence[int] | None = None
    uint16_tensor: Sequence[int] | None = None
    int32_tensor: Sequence[int] | None = None
    uint32_tensor: Sequence[int] | None = None
    int64_tensor: Sequence[int] | None = None
    uint64_tensor: Sequence[int] | None = None
    float_tensor: Sequence[float] | None = None
    double_tensor: Sequence[float] | None = None


@dataclass(frozen=True, slots=True)
class FlatTensors:
    """Tensors by name."""

    tensors: Mapping[str, FlatTensor] = field(default_factory=dict)


class MLModel(Service):
    """A trained model that is ready to be asked."""

    API: ClassVar[API] = API("rdk", "service", "mlmodel")

    async def infer(self, input_tensors: FlatTensors, *, extra: Extra = None) -> FlatTensors:
        """Run the model once. INVALID names an input that is missing, unknown, or of another type or shape."""
        raise NotImplementedError

    async def metadata(self, *, extra: Extra = None) -> Metadata:
        """What the model takes and gives."""
        raise NotImplementedError
