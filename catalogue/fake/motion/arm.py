"""Attributes that `runtime.models.fake.motion.arm` reads."""

from __future__ import annotations

from schema import Attributes


class FakeArmConfig(
    Attributes, kw_only=True, frozen=True, rename={"arm_model": "arm-model", "model_path": "model-path"}
):
    """Attributes of a simulated arm."""

    arm_model: str = ""  # accepted but ignored: the kinematics are always those of the built-in six-axis arm
    model_path: str = ""  # a kinematics file in SVA JSON that replaces the built-in kinematics
