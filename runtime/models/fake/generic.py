"""A simulated generic component."""

from __future__ import annotations

from runtime.engine.components.generic import Generic
from runtime.models.fake.simulated import SimulatedResource


class FakeGeneric(SimulatedResource, Generic):
    """Answers every command with the command itself."""
