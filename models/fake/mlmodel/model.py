"""A simulated ML model, which detects the same object in every picture."""

from __future__ import annotations

import struct
from array import array
from typing import Final

from engine import Extra, FlatTensor, FlatTensors, Metadata, MLModel, TensorInfo, model
from models.fake.common.simulated import SimulatedResource
from schema import ErrorKind, MachineError

INPUT: Final = "image"
METADATA: Final = Metadata(
    name="fake",
    type="object_detector",
    description="detects one object in the middle of every picture",
    input_info=(TensorInfo(INPUT, "pictures: red, green, blue", "uint8", (1, -1, -1, 3)),),
    output_info=(
        TensorInfo("location", "box: y_min, x_min, y_max, x_max, from 0 to 1", "float32", (1, 1, 4)),
        TensorInfo("category", "number of the label", "float32", (1, 1)),
        TensorInfo("score", "confidence from 0 to 1", "float32", (1, 1)),
    ),
)
OUTPUTS: Final = {
    "location": FlatTensor((1, 1, 4), float_tensor=array("f", struct.pack("4f", 0.25, 0.25, 0.75, 0.75))),
    "category": FlatTensor((1, 1), float_tensor=array("f", [0.0])),
    "score": FlatTensor((1, 1), float_tensor=array("f", [0.9])),
}


@model("rdk:builtin:fake")
class FakeMLModel(SimulatedResource, MLModel):
    """Has one input, `image`, and the outputs of an object detector."""

    async def infer(self, input_tensors: FlatTensors, *, extra: Extra = None) -> FlatTensors:
        """Return the same object for every picture. INVALID for an input with another name."""
        await self.access()
        for name in input_tensors.tensors:
            if name != INPUT:
                raise MachineError(
                    f"{self.name} has no input {name[:60]!r}", kind=ErrorKind.INVALID, remedy=f"use {INPUT!r}"
                )
        return FlatTensors(OUTPUTS)

    async def metadata(self, *, extra: Extra = None) -> Metadata:
        """Return the names and shapes of input and outputs."""
        await self.access()
        return METADATA
