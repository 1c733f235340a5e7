"""Attributes of the simulated arm. Pure."""

from __future__ import annotations

from schema import Attributes


class FakeArmConfig(
    Attributes, kw_only=True, frozen=True, rename={"arm_model": "arm-model", "model_path": "model-path"}
):
    """Attributes of a simulated arm."""

    arm_model: str = ""  # six_axis (default), lite6, ur20, ur5e, xarm6 or xarm7; for another name the default is used
    model_path: str = ""  # a kinematics file (JSON or URDF), instead of a name
