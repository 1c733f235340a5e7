"""The life of a node as a table: phases, events, and what each event leads to. Pure.

The five *states* are public and are those of the wire protocol. A *phase* is finer: it says what the graph is waiting
for, so that the table lists every transition and no additional flags are needed.
"""

from __future__ import annotations

from enum import Enum
from typing import Final


class State(Enum):
    """The public state of a node."""

    UNCONFIGURED = "unconfigured"  # it does not run; the reason says what it waits for
    CONFIGURING = "configuring"  # its `run` has begun and has not called `started` yet
    READY = "ready"
    UNHEALTHY = "unhealthy"  # it failed, or it runs and reports itself unhealthy
    REMOVING = "removing"  # it is being stopped: dependents first, then its own cleanup


class Phase(Enum):
    """What the graph waits for, for one name, and the corresponding public state; None: not part of snapshots."""

    IDLE = "its dependencies", State.UNCONFIGURED
    STARTING = "started()", State.CONFIGURING
    READY = "nothing", State.READY
    DEGRADED = "its report that it is healthy again; its dependents keep running", State.UNHEALTHY
    FAILING = "the failed run and its dependents to end", State.UNHEALTHY
    STOPPING = "its dependents, then its own run to end", State.REMOVING
    BACKING_OFF = "the time of the next attempt", State.UNHEALTHY
    RESTING = "a new configuration or retry(): its restart policy gave up", State.UNHEALTHY
    FINISHED = "a new configuration or retry(): its work is done", State.UNCONFIGURED
    GONE = "nothing: the name was removed", None

    __hash__ = object.__hash__  # members are singletons; Enum's own hash costs a Python call per look-up

    def __init__(self, waits_for: str, state: State | None) -> None:
        self.waits_for = waits_for
        self.state = state


class Event(Enum):
    """What can happen to a node."""

    __hash__ = object.__hash__

    START = "everything it requires is ready"
    STARTED = "started()"
    UNHEALTHY = "reports itself unhealthy"
    HEALTHY = "reports itself healthy"
    FAILED = "crashed or not ready in time"
    STOP = "stop requested"
    STOPPED = "run and dependents have ended"
    BACK_OFF = "run and dependents have ended, will retry"
    GIVE_UP = "run and dependents have ended, will not retry"
    COMPLETE = "run and dependents have ended, work done"
    RETRY = "back-off elapsed, retry() or new configuration"
    FORGET = "no longer configured"


TABLE: Final[dict[tuple[Phase, Event], Phase]] = {
    (Phase.IDLE, Event.START): Phase.STARTING,
    (Phase.IDLE, Event.FORGET): Phase.GONE,
    # running
    (Phase.STARTING, Event.STARTED): Phase.READY,
    (Phase.STARTING, Event.FAILED): Phase.FAILING,
    (Phase.STARTING, Event.STOP): Phase.STOPPING,
    (Phase.READY, Event.UNHEALTHY): Phase.DEGRADED,
    (Phase.READY, Event.FAILED): Phase.FAILING,
    (Phase.READY, Event.STOP): Phase.STOPPING,
    (Phase.DEGRADED, Event.UNHEALTHY): Phase.DEGRADED,  # a new reason
    (Phase.DEGRADED, Event.HEALTHY): Phase.READY,
    (Phase.DEGRADED, Event.FAILED): Phase.FAILING,
    (Phase.DEGRADED, Event.STOP): Phase.STOPPING,
    # ending
    (Phase.FAILING, Event.STOP): Phase.STOPPING,
    (Phase.FAILING, Event.BACK_OFF): Phase.BACKING_OFF,
    (Phase.FAILING, Event.GIVE_UP): Phase.RESTING,
    (Phase.FAILING, Event.RETRY): Phase.IDLE,
    (Phase.STOPPING, Event.STOPPED): Phase.IDLE,
    (Phase.STOPPING, Event.COMPLETE): Phase.FINISHED,
    (Phase.STOPPING, Event.FORGET): Phase.GONE,
    # at rest
    (Phase.BACKING_OFF, Event.RETRY): Phase.IDLE,
    (Phase.BACKING_OFF, Event.FORGET): Phase.GONE,
    (Phase.RESTING, Event.RETRY): Phase.IDLE,
    (Phase.RESTING, Event.FORGET): Phase.GONE,
    (Phase.FINISHED, Event.RETRY): Phase.IDLE,
    (Phase.FINISHED, Event.FORGET): Phase.GONE,
}
"""Every transition that may occur; any other pair is a bug in the graph."""

USABLE: Final = frozenset({Phase.READY, Phase.DEGRADED})
"""Phases in which the value of the node is available to dependents."""

RUNNING: Final = frozenset({Phase.STARTING, Phase.READY, Phase.DEGRADED})
"""Phases in which `run` is active and was not asked to stop."""

WAITING: Final = frozenset({Phase.BACKING_OFF, Phase.RESTING, Phase.FINISHED})
"""Phases in which nothing runs and only RETRY starts the node."""


def step(phase: Phase, event: Event) -> Phase:
    """Return the phase after `event`; raise LookupError for a pair that must never occur."""
    try:
        return TABLE[phase, event]
    except KeyError:
        raise LookupError(f"no transition from {phase.name} on {event.name}") from None


def mermaid() -> str:
    """Return the table as a Mermaid state diagram."""
    lines = ["stateDiagram-v2", "    [*] --> IDLE"]
    lines += [f"    {phase.name}: {phase.name} ({phase.state.value})" for phase in Phase if phase.state]
    for (before, event), after in TABLE.items():
        target = "[*]" if after is Phase.GONE else after.name
        lines.append(f"    {before.name} --> {target}: {event.value}")
    return "\n".join(lines) + "\n"
