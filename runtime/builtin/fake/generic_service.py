"""A generic service that echoes."""

from __future__ import annotations

from runtime.builtin.fake.bench import OnBench
from runtime.services.generic import GenericService


class FakeGenericService(OnBench, GenericService):
    """Answers every command with the command."""
