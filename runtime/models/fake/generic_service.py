"""A simulated generic service."""

from __future__ import annotations

from runtime.engine.services.generic import GenericService
from runtime.models.fake.bench import OnBench


class FakeGenericService(OnBench, GenericService):
    """Answers every command with the command itself."""
