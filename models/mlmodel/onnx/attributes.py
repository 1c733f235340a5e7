"""Attributes of `onnx`. Pure."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from schema import Attributes

CPU: Final = "CPUExecutionProvider"


class OnnxConfig(Attributes, kw_only=True, frozen=True):
    """Attributes of an ONNX model. Paths may begin with ~ and contain ${packages...}."""

    model_path: str  # the .onnx file
    label_path: str = ""  # file with one label per line, reported in the metadata; empty: the model's labels
    num_threads: Annotated[int, msgspec.Meta(ge=0, le=256)] = 0  # threads per inference; 0: one per core
    providers: tuple[str, ...] = (CPU,)  # execution providers of ONNX Runtime, in order of preference
    package_reference: str = ""  # accepted but ignored

    def __post_init__(self) -> None:
        if not self.model_path:
            raise ValueError("model_path is empty; give an .onnx file")
        if not self.providers:
            raise ValueError(f"providers is empty; {CPU} is always available")
