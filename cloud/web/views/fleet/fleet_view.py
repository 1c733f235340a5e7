"""View models of the list of machines. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from cloud.domain.fleet.fleet import FleetMachine, FleetPart
from cloud.domain.fleet.health import STATES, machine_state
from cloud.domain.fleet.listing import URGENCY, FleetCounts
from cloud.domain.machines import reported as report
from cloud.domain.machines.online import SILENCE, Presence, presence
from cloud.domain.permissions.access import Role
from cloud.web.views.fleet.fleet_query import FleetQuery
from support.text.words import dom_id

UPDATE_WORDS: Final = {
    report.UPDATING: "updating",
    report.WAITING: "waiting",
    report.ROLLED_BACK: "rolled back",
    report.PROBLEMS: "problems of the agent",
}
"""Text of each state of agents."""

PAGE: Final = 100  # machines per page


@dataclass(frozen=True, slots=True)
class FleetRow:
    """A machine. `since` is the time of its last contact if it is offline."""

    dom: str
    id: str
    part: str  # id of the main part, which addresses the pages
    name: str
    location: str
    location_id: str
    css: str
    state: str
    since: datetime | None
    seen: datetime | None
    version: str
    agent: str
    platform: str
    processor: str  # numbers of the computer with their units; empty if they are not known
    memory: str
    disk: str
    temperature: str
    saved: int  # revision of the saved configuration
    running: str  # revision that the machine reports to run; empty before the first report
    problems: int
    rejected: str  # the reason why the machine rejects the saved configuration
    parts: int
    updates: tuple[str, ...]  # states of its agents, of reported.STATES
    tags: tuple[str, ...]
    fragments: tuple[str, ...]  # names, with the revisions that the machine runs
    owned: bool  # whether the caller may change it


@dataclass(frozen=True, slots=True)
class FleetTile:
    """A number of machines that leads to their list."""

    css: str
    text: str
    count: int
    url: str
    current: bool


@dataclass(frozen=True, slots=True)
class Pager:
    """The numbers of machines shown, matching and altogether, and the addresses of adjacent pages, empty if missing."""

    shown: int
    total: int
    machines: int
    before: str
    after: str


def row(machine: FleetMachine, now: datetime, tags: Sequence[str] = (), fragments: Sequence[str] = ()) -> FleetRow:
    """Return the row of a machine at time `now`."""
    part = machine.parts[0]  # the main part
    css, state = machine_state(machine, now)
    states = [report.states(member.reported) for member in machine.parts]
    return FleetRow(
        dom=dom_id(machine.id),
        id=machine.id,
        part=part.id,
        name=machine.name,
        location=machine.location.path,
        location_id=machine.location.id,
        css=css,
        state=state,
        since=part.seen if css == "offline" else None,
        seen=part.seen,
        version=report.text_of(part.reported, "version"),
        agent=report.version(part.reported, "agent"),
        platform=report.text_of(part.reported, "platform"),
        processor=_with_unit(part.reported, "processor_pct", "%"),
        memory=_with_unit(part.reported, "memory_pct", "%"),
        disk=_with_unit(part.reported, "disk_pct", "%"),
        temperature=_with_unit(part.reported, "temperature_c", "°C"),
        saved=part.revision,
        running=running(part.reported),
        problems=sum(report.problem_count(member.reported) for member in machine.parts),
        rejected=report.rejected(part.reported),
        parts=len(machine.parts),
        updates=tuple(state for state in report.STATES if any(state in each for each in states)),
        tags=tuple(tags),
        fragments=tuple(fragments),
        owned=machine.role is Role.OWNER,
    )


def _with_unit(reported: Mapping[str, Any], key: str, unit: str) -> str:
    number = report.number_of(reported, key)
    return "" if number is None else f"{number}\N{NO-BREAK SPACE}{unit}"


def running(reported: Mapping[str, Any]) -> str:
    """Return the revision that a part reports to run, without those of its fragments."""
    return str(reported.get("revision", "")).partition("+")[0][:12]


def tiles(counts: FleetCounts, query: FleetQuery) -> tuple[FleetTile, ...]:
    """Return the tiles of a list, without empty ones unless they are selected."""
    words = dict(STATES)
    shown = [
        FleetTile(css, words[css], counts.states.get(css, 0), query.tile(state=css), query.state == css)
        for css in reversed(URGENCY)
    ]
    updating = query.update == report.UPDATING
    shown.append(FleetTile("configuring", "updating", counts.updating, query.tile(update=report.UPDATING), updating))
    shown.append(FleetTile("unhealthy", "with problems", counts.problems, query.tile(problems=True), query.problems))
    return tuple(tile for tile in shown if tile.count or tile.current)


def next_change(machines: Iterable[FleetMachine], now: datetime) -> float | None:
    """Return the seconds until the last call of a machine becomes as old as SILENCE; None if no call is that recent.

    The machine is then offline, unless it is recorded as online; the end of that is announced by the topic `presence`.
    """
    remaining = [
        (part.seen + SILENCE - now).total_seconds()
        for machine in machines
        for part in machine.parts
        if part.seen is not None and _undecided(part, now)
    ]
    return min(remaining, default=None)


def _undecided(part: FleetPart, now: datetime) -> bool:
    return not part.online and presence(part.seen, now, online=False) is Presence.ONLINE


def choices(versions: Sequence[str], selected: str) -> list[tuple[str, str]]:
    """Return versions to choose from, with the selected one."""
    shown = [*versions] if not selected or selected in versions else [*versions, selected]
    return [(version, version) for version in shown]
