"""A simulated generic component."""

from __future__ import annotations

from engine import Generic, model
from models.fake.common.simulated import SimulatedResource


@model("rdk:builtin:fake")
class FakeGeneric(SimulatedResource, Generic):
    """Answers every command with the command itself."""
