"""A simulated generic service."""

from __future__ import annotations

from engine import GenericService
from runtime.models.fake.simulated import SimulatedResource


class FakeGenericService(SimulatedResource, GenericService):
    """Answers every command with the command itself."""
