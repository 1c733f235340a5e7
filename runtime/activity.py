"""What happens to resources and to the server's parts, in the log."""

from __future__ import annotations

import structlog

from nursery_graph import State, Transition
from runtime.machine import INTERNAL
from telemetry.names import RESOURCES, ROOT


def note_transition(transition: Transition) -> None:
    """Log one transition under the name of what it happened to."""
    before, after = transition.before, transition.after
    internal = transition.name.startswith(INTERNAL)
    log = structlog.get_logger(f"{ROOT}.{transition.name}" if internal else f"{RESOURCES}.{transition.name}")
    word = after.value if after is not None else "removed"
    facts = {"reason": transition.reason} if transition.reason else {}
    if after is State.UNHEALTHY and before is not after:
        log.error(word, **facts)
    elif before is not after and (after is State.READY or after is None) and not internal:
        log.info(word, **facts)
    else:
        log.debug(word, **facts)
