"""Attributes that `runtime.builtin.fake.arm` reads."""

from __future__ import annotations

from schema.attributes import Attributes


class FakeArmConfig(
    Attributes, kw_only=True, frozen=True, rename={"arm_model": "arm-model", "model_path": "model-path"}
):
    """Attributes of a simulated arm."""

    arm_model: str = ""  # accepted; the kinematics are those of the built-in six-axis arm whatever is named here
    model_path: str = ""  # a kinematics file in SVA JSON to use instead
