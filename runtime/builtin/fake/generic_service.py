"""A generic service that echoes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runtime.builtin.fake.bench import OnBench
from runtime.services.generic import GenericService


class FakeGenericService(OnBench, GenericService):
    """Answers every command with the command."""

    async def do_command(self, command: Mapping[str, Any]) -> Mapping[str, Any]:
        """The command itself."""
        await self.access()
        return dict(command)
