"""The life of a node as a table: phases, events, and what each event leads to.

The five *states* are the public ones, those of the wire. A *phase* is finer: it says what the graph is waiting for, so
that every transition can be listed and nothing has to be remembered in flags beside the table.
"""

from __future__ import annotations

from enum import Enum
from typing import Final


class State(Enum):
    """What a node is to the outside world."""

    UNCONFIGURED = "unconfigured"  # nothing of it runs; the reason says what it waits for
    CONFIGURING = "configuring"  # its `run` has begun and has not called `started` yet
    READY = "ready"
    UNHEALTHY = "unhealthy"  # it failed, or it runs and says that it is not well
    REMOVING = "removing"  # it is being stopped: dependents first, then its own cleanup


class Phase(Enum):
    """What the graph waits for, for one name, and the public state that this is; None: the name is in no snapshot."""

    IDLE = "its dependencies", State.UNCONFIGURED
    STARTING = "started()", State.CONFIGURING
    READY = "nothing", State.READY
    SICK = "its own word that it is well again; its dependents keep running", State.UNHEALTHY
    FAILING = "the rest of a failed run, and its dependents, to end", State.UNHEALTHY
    STOPPING = "its dependents, then its own run, to end", State.REMOVING
    BACKING_OFF = "the time of the next try", State.UNHEALTHY
    RESTING = "a new configuration or retry(): its restart policy gave up", State.UNHEALTHY
    FINISHED = "a new configuration or retry(): its work is done", State.UNCONFIGURED
    GONE = "nothing: it is forgotten", None

    __hash__ = object.__hash__  # members are single objects; the hash of Enum costs a call for each look-up in a table

    def __init__(self, waits_for: str, state: State | None) -> None:
        self.waits_for = waits_for
        self.state = state


class Event(Enum):
    """What can happen to a node."""

    __hash__ = object.__hash__

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
    lines += [f"    {phase.name}: {phase.name} ({phase.state.value})" for phase in Phase if phase.state]
    for (before, event), after in TABLE.items():
        target = "[*]" if after is Phase.GONE else after.name
        lines.append(f"    {before.name} --> {target}: {event.value}")
    return "\n".join(lines) + "\n"
