"""The motion service `builtin`: plans and executes motions of arms and gantries."""

from __future__ import annotations

from typing import Final

MODELS: Final[dict[tuple[str, str], str]] = {
    ("rdk:service:motion", "rdk:builtin:builtin"): "runtime.models.motion_service.service:BuiltinMotion",
}
"""`(API, model)` -> `module:class`."""
