"""Entries of a configuration that cannot be: their nodes fail, and the status says why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import trio

from nursery_graph import Restart, Run
from schema.errors import MachineError

NO_RESTART: Final = Restart(kind="temporary")
"""Only another configuration helps an entry that is wrong."""


def refused(fault: MachineError) -> Run:
    """What a node runs that cannot be: it raises `fault`, which becomes the reason of its state."""

    async def fail(deps: Mapping[str, Any], /, *, task_status: trio.TaskStatus[Any]) -> None:
        raise fault

    return fail
