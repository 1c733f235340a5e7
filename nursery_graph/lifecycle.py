"""The life of a node as a table: phases, events, and what each event leads to.

The five *states* are the public ones, those of the wire. A *phase* is finer: it says what the graph is waiting for, so
that every transition can be listed and nothing has to be remembered in flags beside the table.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Final


class State(Enum):
    """What a node is to the outside world."""

    UNCONFIGURED = "unconfigured"  # nothing of it runs; the reason says what it waits for
    CONFIGURING = "configuring"  # its `run` has begun and has not called `started` yet
    READY = "ready"
    UNHEALTHY = "unhealthy"  # it failed, or it runs and says that it is not well
    REMOVING = "removing"  # it is being stopped: dependents first, then its own cleanup


class Phase(Enum):
    """What the graph waits for, for one name."""

    IDLE = auto()  # its dependencies
    STARTING = auto()  # `started`
    READY = auto()  # nothing
    SICK = auto()  # the node itself to report that it is well again; its dependents keep running
    FAILING = auto()  # the rest of a failed run, and its dependents, to end
    STOPPING = auto()  # its dependents, then its own run, to end
    BACKING_OFF = auto()  # the time of the next try
    RESTING = auto()  # a new configuration or `retry`: its restart policy gave up
    FINISHED = auto()  # the same; its run returned, and its restart policy lets it
    GONE = auto()  # nothing: the name is forgotten


class Event(Enum):
    """What can happen to a node."""

    START = "everything it requires is ready"
    STARTED = "started()"
    SICK = "reports itself unhealthy"
    WELL = "reports itself healthy"
    FAILED = "crashed or not ready in time"
    STOP = "told to stop"
    STOPPED = "run and dependents have ended"
    BACK_OFF = "all ended, will try again"
    GIVE_UP = "all ended, will not try again"
    COMPLETE = "all ended, work done"
    AGAIN = "its time has come, retry() or new configuration"
    FORGET = "no longer configured"


TABLE: Final[dict[tuple[Phase, Event], Phase]] = {
    (Phase.IDLE, Event.START): Phase.STARTING,
    (Phase.IDLE, Event.FORGET): Phase.GONE,
    # running
    (Phase.STARTING, Event.STARTED): Phase.READY,
    (Phase.STARTING, Event.FAILED): Phase.FAILING,
    (Phase.STARTING, Event.STOP): Phase.STOPPING,
    (Phase.READY, Event.SICK): Phase.SICK,
    (Phase.READY, Event.FAILED): Phase.FAILING,
    (Phase.READY, Event.STOP): Phase.STOPPING,
    (Phase.SICK, Event.SICK): Phase.SICK,  # a new reason
    (Phase.SICK, Event.WELL): Phase.READY,
    (Phase.SICK, Event.FAILED): Phase.FAILING,
    (Phase.SICK, Event.STOP): Phase.STOPPING,
    # ending
    (Phase.FAILING, Event.STOP): Phase.STOPPING,
    (Phase.FAILING, Event.BACK_OFF): Phase.BACKING_OFF,
    (Phase.FAILING, Event.GIVE_UP): Phase.RESTING,
    (Phase.FAILING, Event.AGAIN): Phase.IDLE,
    (Phase.STOPPING, Event.STOPPED): Phase.IDLE,
    (Phase.STOPPING, Event.COMPLETE): Phase.FINISHED,
    (Phase.STOPPING, Event.FORGET): Phase.GONE,
    # at rest
    (Phase.BACKING_OFF, Event.AGAIN): Phase.IDLE,
    (Phase.BACKING_OFF, Event.FORGET): Phase.GONE,
    (Phase.RESTING, Event.AGAIN): Phase.IDLE,
    (Phase.RESTING, Event.FORGET): Phase.GONE,
    (Phase.FINISHED, Event.AGAIN): Phase.IDLE,
    (Phase.FINISHED, Event.FORGET): Phase.GONE,
}
"""Every pair that may occur; any other pair is a bug of the graph."""

STATE: Final[dict[Phase, State | None]] = {
    Phase.IDLE: State.UNCONFIGURED,
    Phase.STARTING: State.CONFIGURING,
    Phase.READY: State.READY,
    Phase.SICK: State.UNHEALTHY,
    Phase.FAILING: State.UNHEALTHY,
    Phase.STOPPING: State.REMOVING,
    Phase.BACKING_OFF: State.UNHEALTHY,
    Phase.RESTING: State.UNHEALTHY,
    Phase.FINISHED: State.UNCONFIGURED,
    Phase.GONE: None,
}
"""The public state of each phase; None: the name is not in the snapshot."""

USABLE: Final = frozenset({Phase.READY, Phase.SICK})
"""Its value may be handed out."""

RUNNING: Final = frozenset({Phase.STARTING, Phase.READY, Phase.SICK})
"""Its run goes on, and nobody has asked it to end."""

WAITING: Final = frozenset({Phase.BACKING_OFF, Phase.RESTING, Phase.FINISHED})
"""Nothing of it runs and nothing will start it but AGAIN."""


def step(phase: Phase, event: Event) -> Phase:
    """The phase after `event`; raises LookupError for a pair that must never occur."""
    try:
        return TABLE[phase, event]
    except KeyError:
        raise LookupError(f"no transition from {phase.name} on {event.name}") from None


def mermaid() -> str:
    """The table as a Mermaid state diagram."""
    lines = ["stateDiagram-v2", "    [*] --> IDLE"]
    lines += [f"    {phase.name}: {phase.name} ({state.value})" for phase, state in STATE.items() if state]
    for (before, event), after in TABLE.items():
        target = "[*]" if after is Phase.GONE else after.name
        lines.append(f"    {before.name} --> {target}: {event.value}")
    return "\n".join(lines) + "\n"
