"""A generic component that echoes."""

from __future__ import annotations

from runtime.builtin.fake.bench import OnBench
from runtime.components.generic import Generic


class FakeGeneric(OnBench, Generic):
    """Answers every command with the command."""
