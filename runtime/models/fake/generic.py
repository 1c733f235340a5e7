"""A simulated generic component."""

from __future__ import annotations

from engine import Generic
from runtime.models.fake.simulated import SimulatedResource


class FakeGeneric(SimulatedResource, Generic):
    """Answers every command with the command itself."""
