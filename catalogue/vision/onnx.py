"""Attributes that `runtime.builtin.vision.onnx` reads."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from schema.attributes import Attributes

CPU: Final = "CPUExecutionProvider"


class OnnxConfig(Attributes, kw_only=True, frozen=True):
    """Attributes of an ONNX model. Paths may begin with ~ and contain ${packages...}."""

    model_path: str  # the .onnx file
    label_path: str = ""  # file with one label a line, told in the metadata; the model's own labels if empty
    num_threads: Annotated[int, msgspec.Meta(ge=0, le=256)] = 0  # threads of one inference; 0 for one a core
    providers: tuple[str, ...] = (CPU,)  # execution providers of ONNX Runtime, the preferred one first
    package_reference: str = ""  # accepted, without meaning here

    def __post_init__(self) -> None:
        if not self.model_path:
            raise ValueError("model_path is empty; name an .onnx file")
        if not self.providers:
            raise ValueError(f"providers is empty; {CPU} is always there")
