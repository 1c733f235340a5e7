"""Models that see: vision services, ML models, and the camera that shows what they see."""

from __future__ import annotations

from typing import Final

MODELS: Final[dict[tuple[str, str], str]] = {
    ("rdk:component:camera", "rdk:builtin:transform"): "runtime.builtin.vision.transform:TransformCamera",
    ("rdk:service:mlmodel", "rdk:builtin:onnx"): "runtime.builtin.vision.onnx:OnnxModel",
    ("rdk:service:vision", "rdk:builtin:color_detector"): "runtime.builtin.vision.color_detector:ColorDetector",
    ("rdk:service:vision", "rdk:builtin:mlmodel"): "runtime.builtin.vision.mlmodel:ModelVision",
}
"""Merged into `runtime.builtin.BUILTIN`."""
