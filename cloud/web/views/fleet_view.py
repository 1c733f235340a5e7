"""View models and filter of the machine overview. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlencode

from cloud.domain.fleet.fleet import FleetMachine, FleetPart
from cloud.domain.fleet.health import STATES, machine_state, problem_count, rejected
from cloud.domain.machines.online import SILENCE, Presence, presence
from cloud.domain.releases import agent_report
from cloud.domain.releases.agent_report import STATES as STATES_OF_AGENTS
from support.text.words import dom_id

SORTS: Final = ("name", "state", "location", "version", "problems")
MOST_VERSIONS: Final = 50  # to choose from
UPDATE_WORDS: Final = {
    agent_report.UPDATING: "updating",
    agent_report.WAITING: "waiting",
    agent_report.ROLLED_BACK: "rolled back",
    agent_report.PROBLEMS: "problems of the agent",
}
"""Text of each state of agents."""

PAGE: Final = 100  # machines per page
_ORDER: Final = {"offline": 0, "degraded": 1, "awaiting": 2, "online": 3}  # most urgent first


_USUAL: Final = frozenset({("sort", "name"), ("page", "1")})


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
    version: str
    saved: int  # revision of the saved configuration
    running: str  # revision that the machine reports to run; empty before the first report
    problems: int
    rejected: str  # the reason why the machine rejects the saved configuration
    parts: int
    agents: frozenset[str]  # versions of machine-agent of its parts, as their agents report
    servers: frozenset[str]  # versions of machine-server
    updates: tuple[str, ...]  # states of its agents, of agent_report.STATES


@dataclass(frozen=True, slots=True)
class FleetQuery:
    """The filter, order and page of the overview: all conditions must hold."""

    text: str = ""
    location: str = ""
    state: str = ""
    agent: str = ""  # version
    server: str = ""  # version
    update: str = ""  # of agent_report.STATES
    sort: str = "name"
    page: int = 1

    @classmethod
    def of(cls, query: Mapping[str, str]) -> FleetQuery:
        """Parse a query; missing fields have their defaults."""
        sort = query.get("sort", "name")
        return cls(
            query.get("q", "").strip(),
            query.get("location", ""),
            query.get("state", ""),
            query.get("agent", ""),
            query.get("server", ""),
            query.get("update", ""),
            sort if sort in SORTS else "name",
            _page(query.get("page", "")),
        )

    def fields(self) -> dict[str, str]:
        """Return the filter as a query without defaults."""
        fields = {"q": self.text, "location": self.location, "state": self.state}
        fields |= {"agent": self.agent, "server": self.server, "update": self.update}
        fields |= {"sort": self.sort, "page": str(self.page)}
        return {key: value for key, value in fields.items() if value and (key, value) not in _USUAL}


def row(machine: FleetMachine, now: datetime) -> FleetRow:
    """Return the row of a machine at time `now`."""
    part = machine.parts[0]  # the main part
    css, state = machine_state(machine, now)
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
        version=_text(part, "version"),
        saved=part.revision,
        running=running(part.reported),
        problems=sum(problem_count(member.reported) for member in machine.parts),
        rejected=rejected(part.reported),
        parts=len(machine.parts),
        agents=_versions(machine, "agent"),
        servers=_versions(machine, "server"),
        updates=tuple(
            state
            for state in STATES_OF_AGENTS
            if any(state in agent_report.states(part.reported) for part in machine.parts)
        ),
    )


def running(reported: Mapping[str, Any]) -> str:
    """Return the revision that a part reports to run, without those of its fragments."""
    return str(reported.get("revision", "")).partition("+")[0][:12]


def matching(rows: Iterable[FleetRow], query: FleetQuery) -> list[FleetRow]:
    """Return the rows that match the filter, sorted."""
    matches = [item for item in rows if _matches(item, query)]
    keys: Mapping[str, Callable[[FleetRow], tuple[Any, ...]]] = {
        "name": lambda item: (),
        "state": lambda item: (_ORDER[item.css],),
        "location": lambda item: (item.location.lower(),),
        "version": lambda item: (item.version,),
        "problems": lambda item: (-item.problems, not item.rejected),
    }
    key = keys[query.sort]
    return sorted(matches, key=lambda item: (*key(item), item.name.lower(), item.id))


@dataclass(frozen=True, slots=True)
class Pager:
    """Position in the list: rows `first` to `last` of `total`, and the URLs of the adjacent pages, empty if missing."""

    first: int
    last: int
    total: int
    machines: int  # number of machines without a filter
    before: str
    after: str


def paged(rows: Sequence[FleetRow], query: FleetQuery, machines: int) -> tuple[list[FleetRow], Pager]:
    """Return the requested page of the filtered rows, or the last page if there are fewer."""
    page = max(1, min(query.page, math.ceil(len(rows) / PAGE)))
    first = (page - 1) * PAGE
    page_rows = list(rows[first : first + PAGE])

    def url(number: int) -> str:
        return f"/?{urlencode(replace(query, page=number).fields())}"

    before = url(page - 1) if page > 1 else ""
    after = url(page + 1) if first + PAGE < len(rows) else ""
    return page_rows, Pager(first + 1, first + len(page_rows), len(rows), machines, before, after)


def counts(rows: Iterable[FleetRow]) -> tuple[tuple[str, str, int], ...]:
    """Return the number of machines in each state, in display order: CSS class, text, number."""
    states = [item.css for item in rows]
    return tuple((css, text, states.count(css)) for css, text in sorted(STATES, key=lambda state: -_ORDER[state[0]]))


def next_change(machines: Iterable[FleetMachine], now: datetime) -> float | None:
    """Return the seconds until the last call of a machine becomes as old as SILENCE; None if no call is that recent.

    The machine is then offline, unless it is recorded as online; the end of that is announced by the topic `presence`.
    """
    remaining = [
        (part.seen + SILENCE - now).total_seconds()
        for machine in machines
        for part in machine.parts
        if part.seen is not None and presence(part.seen, now, online=False) is Presence.ONLINE
    ]
    return min(remaining, default=None)


def _page(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and 0 < len(text) < 7 else 1


def _matches(item: FleetRow, query: FleetQuery) -> bool:
    text = f"{item.name}\n{item.location}\n{item.version}\n{item.state}".lower()
    return (
        all(word in text for word in query.text.lower().split())
        and query.location in ("", item.location_id)
        and query.state in ("", item.css)
        and (not query.agent or query.agent in item.agents)
        and (not query.server or query.server in item.servers)
        and (not query.update or query.update in item.updates)
    )


def versions(rows: Iterable[FleetRow], query: FleetQuery) -> tuple[list[str], list[str]]:
    """Return the versions of agents and servers to choose from, with those of the query, at most MOST_VERSIONS each."""
    agents: set[str] = set()
    servers: set[str] = set()
    for item in rows:
        agents |= item.agents
        servers |= item.servers
    return _choices(agents, query.agent), _choices(servers, query.server)


def _choices(all_versions: set[str], selected: str) -> list[str]:
    choices = sorted(all_versions)[:MOST_VERSIONS]
    return choices if not selected or selected in choices else [*choices, selected]


def _versions(machine: FleetMachine, program: str) -> frozenset[str]:
    reports = (agent_report.reported(part.reported).get(program) for part in machine.parts)
    versions = (report.get("version") for report in reports if isinstance(report, Mapping))
    return frozenset(version for version in versions if isinstance(version, str) and version)


def _text(part: FleetPart, key: str) -> str:
    value = part.reported.get(key, "")
    return value if isinstance(value, str) else ""
