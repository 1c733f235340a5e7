"""Attributes of `simulated`. Pure."""

from __future__ import annotations

from typing import Annotated

import msgspec

from schema import Attributes


class SimulatedArmConfig(
    Attributes,
    kw_only=True,
    frozen=True,
    rename={"arm_model": "arm-model", "model_path": "model-path", "simulate_time": "simulate-time"},
):
    """Attributes of a simulated arm whose joints take time to move."""

    arm_model: str = ""  # six_axis (default), lite6, ur20, ur5e, xarm6 or xarm7
    model_path: str = ""  # a kinematics file (JSON or URDF), instead of a name
    speed: Annotated[float, msgspec.Meta(gt=0, le=100)] = 1.0  # of every joint, radians per second
    simulate_time: bool = True  # accepted but ignored: time always passes

    def __post_init__(self) -> None:
        if self.arm_model and self.model_path:
            raise ValueError("arm-model and model-path exclude each other")
