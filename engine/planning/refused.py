"""Nodes for configuration entries that cannot be built: they fail, and their status shows the reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import trio

from nursery_graph import Restart, Run
from schema import MachineError

NO_RESTART: Final = Restart(kind="temporary")
"""A restart cannot help: a wrong entry needs another configuration."""


def refusal(fault: MachineError) -> Run:
    """Return a function for a node that raises `fault`, which becomes the reason of its state."""

    async def fail(deps: Mapping[str, Any], /, *, task_status: trio.TaskStatus[Any]) -> None:
        raise fault

    return fail
