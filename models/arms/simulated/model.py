"""The arm `simulated`: its joints take time to move."""

from __future__ import annotations

import math
from typing import ClassVar

from engine import Attributes, model
from models.arms.simulated.attributes import SimulatedArmConfig
from models.fake.arm.model import FakeArm


@model("rdk:builtin:simulated")
class SimulatedArm(FakeArm):
    """A simulated arm whose speed is configured, and which begins with all joints at zero."""

    Config: ClassVar[type[Attributes]] = SimulatedArmConfig

    def speed(self) -> float:
        """Return the configured speed in degrees (or mm) per second."""
        return math.degrees(self.attributes.speed)

    def home(self) -> list[float]:
        """Return zero for every joint, or the nearest position within its limits."""
        return [min(joint.high, max(joint.low, 0.0)) for joint in self.chain.joints]
