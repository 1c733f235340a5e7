"""Vision services, ML models, and the transform camera."""

from __future__ import annotations

from typing import Final

MODELS: Final[dict[tuple[str, str], str]] = {
    ("rdk:component:camera", "rdk:builtin:transform"): "runtime.models.vision.transform:TransformCamera",
    ("rdk:service:mlmodel", "rdk:builtin:onnx"): "runtime.models.mlmodels.onnx:OnnxModel",
    ("rdk:service:vision", "rdk:builtin:color_detector"): "runtime.models.vision.color_detector:ColorDetector",
    ("rdk:service:vision", "rdk:builtin:mlmodel"): "runtime.models.vision.mlmodel:ModelVision",
}
"""`(API, model)` -> `module:class`."""
