"""Health of machines, as every page, call, command and metric of the cloud shows it. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from cloud.domain.fleet.fleet import FleetMachine, FleetPart
from cloud.domain.machines.online import Presence, presence
from cloud.domain.machines.reported import problem_count, rejected

WORDS: Final = {
    Presence.NEVER: ("awaiting", "awaiting setup"),
    Presence.ONLINE: ("online", "online"),
    Presence.OFFLINE: ("offline", "offline"),
}
"""Short name and text of each presence."""

DEGRADED: Final = ("degraded", "degraded")
"""Short name and text of a machine that is online with problems."""

STATES: Final = (*WORDS.values(), DEGRADED)
"""Short name and text of every state of a machine."""


def state_of(part: FleetPart, now: datetime) -> tuple[str, str]:
    """Return the state of a part: degraded if it is online with problems or a rejected configuration."""
    state = WORDS[presence(part.seen, now, online=part.online, gone=part.gone)]
    if state == WORDS[Presence.ONLINE] and (problem_count(part.reported) or rejected(part.reported)):
        return DEGRADED
    return state


def machine_state(machine: FleetMachine, now: datetime) -> tuple[str, str]:
    """Return the state of a machine: that of its main part, but degraded if that is online and another part is."""
    state = state_of(machine.parts[0], now)
    degraded = any(state_of(part, now) == DEGRADED for part in machine.parts)
    return DEGRADED if degraded and state == WORDS[Presence.ONLINE] else state
