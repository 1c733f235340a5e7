"""ML model service: runs a trained model on tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, ClassVar

from engine.resource import Extra, Service
from schema import API


class LabelType(IntEnum):
    """How a tensor refers to the lines of a label file."""

    UNSPECIFIED = 0
    TENSOR_VALUE = 1  # by the values in the tensor
    TENSOR_AXIS = 2  # by the position along an axis of the tensor


@dataclass(frozen=True, slots=True)
class File:
    """A file that belongs to a tensor, such as its labels; `name` is a path on the machine or within the model."""

    name: str = ""
    description: str = ""
    label_type: LabelType = LabelType.UNSPECIFIED


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """An input or output tensor of a model; `data_type` is `float32`, `uint8`, ...; -1 in `shape` means any size."""

    name: str
    description: str = ""
    data_type: str = ""
    shape: Sequence[int] = ()
    associated_files: Sequence[File] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Metadata:
    """Description of a model, and its input and output tensors in order."""

    name: str = ""
    type: str = ""
    description: str = ""
    input_info: Sequence[TensorInfo] = ()
    output_info: Sequence[TensorInfo] = ()


@dataclass(frozen=True, slots=True)
class FlatTensor:
    """A tensor: its shape, and its values in row-major order in exactly one of the fields.

    8-bit values are bytes. On the wire, 16-bit values are the lower 16 bits of unsigned 32-bit values. In process any
    sequence is accepted; an `array.array` whose items have the width of the field is used without copying.
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
    """A trained model that is loaded and ready."""

    API: ClassVar[API] = API("rdk", "service", "mlmodel")

    async def infer(self, input_tensors: FlatTensors, *, extra: Extra = None) -> FlatTensors:
        """Run the model once.

        Raises MachineError (INVALID) that names the input if one is missing, unknown, or of another type or shape.
        """
        raise NotImplementedError

    async def metadata(self, *, extra: Extra = None) -> Metadata:
        """Return the description of the model and of its inputs and outputs."""
        raise NotImplementedError
