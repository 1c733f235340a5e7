"""Attributes of `wrapper`. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from schema import Attributes


class WrapperArmConfig(
    Attributes, kw_only=True, frozen=True, rename={"arm_name": "arm-name", "model_path": "model-path"}
):
    """Attributes of an arm with the kinematics of a file."""

    arm_name: str  # the arm that moves
    model_path: str  # its kinematics: a file in JSON or URDF

    def requires(self) -> Iterable[str]:
        """Return the wrapped arm."""
        return [self.arm_name]
