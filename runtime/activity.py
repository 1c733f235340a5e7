"""What happens to resources and to the server's parts, in the log."""

from __future__ import annotations

from typing import Final

import structlog

from nursery_graph import State, Transition
from telemetry.names import RESOURCES, ROOT

_LEVELS: Final = {State.UNHEALTHY: "error", State.READY: "info"}
"""Every other state is only of interest to somebody who debugs."""


def note_transition(transition: Transition) -> None:
    """Log one transition under the name of what it happened to; repeated reasons are left to deduplication."""
    internal = "/" in transition.name and ":" not in transition.name
    log = structlog.get_logger(f"{ROOT}.{transition.name}" if internal else f"{RESOURCES}.{transition.name}")
    state = transition.after.value if transition.after is not None else "removed"
    level = _LEVELS.get(transition.after, "debug") if transition.after is not None else "info"
    if transition.reason:
        getattr(log, level)(state, reason=transition.reason)
    else:
        getattr(log, level)(state)
