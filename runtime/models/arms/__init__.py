"""Arms whose kinematics come from a name or a file."""

from __future__ import annotations

from typing import Final

MODELS: Final[dict[tuple[str, str], str]] = {
    ("rdk:component:arm", "rdk:builtin:simulated"): "runtime.models.arms.simulated:SimulatedArm",
    ("rdk:component:arm", "rdk:builtin:wrapper_arm"): "runtime.models.arms.wrapper:WrapperArm",
}
"""`(API, model)` -> `module:class`."""
