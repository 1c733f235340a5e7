"""A simulated generic service."""

from __future__ import annotations

from engine import GenericService, model
from models.fake.common.simulated import SimulatedResource


@model("rdk:builtin:fake")
class FakeGenericService(SimulatedResource, GenericService):
    """Answers every command with the command itself."""
