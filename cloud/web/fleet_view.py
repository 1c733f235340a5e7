"""What the fleet view shows of a machine, and which machines somebody looks for. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlencode

from cloud.fleet import FleetMachine, FleetPart
from cloud.online import SILENCE, Presence, presence
from rpc.pages.words import dom_id

WORDS: Final = {
    Presence.NEVER: ("awaiting", "awaiting setup"),
    Presence.ONLINE: ("online", "online"),
    Presence.OFFLINE: ("offline", "offline"),
}
"""CSS class and text of each presence."""

DEGRADED: Final = ("degraded", "degraded")
"""CSS class and text of a machine that is online with problems."""

STATES: Final = (*WORDS.values(), DEGRADED)
"""CSS class and text of every state of a machine."""

SORTS: Final = ("name", "state", "location", "version", "problems")
PAGE: Final = 100  # machines of one page
_ORDER: Final = {"offline": 0, "degraded": 1, "awaiting": 2, "online": 3}  # most urgent first


_USUAL: Final = frozenset({("sort", "name"), ("page", "1")})


@dataclass(frozen=True, slots=True)
class Row:
    """One machine. `since` is when one that is offline was heard of last."""

    dom: str
    id: str
    part: str  # id of the main part, by which pages are addressed
    name: str
    location: str
    location_id: str
    css: str
    state: str
    since: datetime | None
    version: str
    saved: int  # revision of the configuration that is saved
    running: str  # revision that the machine says it runs; empty before it said so
    problems: int
    rejected: str  # why it does not take what is saved
    parts: int


@dataclass(frozen=True, slots=True)
class Wanted:
    """What somebody looks for: all conditions hold."""

    text: str = ""
    location: str = ""
    state: str = ""
    sort: str = "name"
    page: int = 1

    @classmethod
    def of(cls, query: Mapping[str, str]) -> Wanted:
        """Read a query; what it does not have is not asked for."""
        sort = query.get("sort", "name")
        return cls(
            query.get("q", "").strip(),
            query.get("location", ""),
            query.get("state", ""),
            sort if sort in SORTS else "name",
            _page(query.get("page", "")),
        )

    def query(self) -> dict[str, str]:
        """As a query, without what is not asked for."""
        found = {"q": self.text, "location": self.location, "state": self.state, "sort": self.sort}
        found["page"] = str(self.page)
        return {key: value for key, value in found.items() if value and (key, value) not in _USUAL}


def row(machine: FleetMachine, now: datetime) -> Row:
    """What is shown of one machine now."""
    part = machine.parts[0]  # the main one
    states = (state_of(one, now) for one in machine.parts)
    css, state = state_of(part, now)
    if (css, state) == WORDS[Presence.ONLINE] and DEGRADED in states:
        css, state = DEGRADED
    return Row(
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
        problems=sum(problems_of(one) for one in machine.parts),
        rejected=_text(part, "rejected"),
        parts=len(machine.parts),
    )


def running(reported: Mapping[str, Any]) -> str:
    """The revision that a part says it runs, without those of its fragments."""
    return str(reported.get("revision", "")).partition("+")[0][:12]


def chosen(rows: Iterable[Row], wanted: Wanted) -> list[Row]:
    """Those that are looked for, sorted."""
    found = [one for one in rows if _fits(one, wanted)]
    keys: Mapping[str, Callable[[Row], tuple[Any, ...]]] = {
        "name": lambda one: (),
        "state": lambda one: (_ORDER[one.css],),
        "location": lambda one: (one.location.lower(),),
        "version": lambda one: (one.version,),
        "problems": lambda one: (-one.problems, not one.rejected),
    }
    key = keys[wanted.sort]
    return sorted(found, key=lambda one: (*key(one), one.name.lower(), one.id))


@dataclass(frozen=True, slots=True)
class Pager:
    """Which machines are shown: `first` to `last` of `total`; where the pages beside are, empty without one."""

    first: int
    last: int
    total: int
    machines: int  # that there are at all
    before: str
    after: str


def paged(rows: Sequence[Row], wanted: Wanted, machines: int) -> tuple[list[Row], Pager]:
    """The page that is wanted of those that were chosen, or the last one if it is beyond them."""
    page = max(1, min(wanted.page, math.ceil(len(rows) / PAGE)))
    first = (page - 1) * PAGE
    shown = list(rows[first : first + PAGE])

    def query(number: int) -> str:
        return urlencode(replace(wanted, page=number).query())

    before = f"/?{query(page - 1)}" if page > 1 else ""
    after = f"/?{query(page + 1)}" if first + PAGE < len(rows) else ""
    return shown, Pager(first + 1, first + len(shown), len(rows), machines, before, after)


def counts(rows: Iterable[Row]) -> tuple[tuple[str, str, int], ...]:
    """How many machines are in each state: class, words, number; in the order in which they are shown."""
    states = [one.css for one in rows]
    return tuple((css, text, states.count(css)) for css, text in sorted(STATES, key=lambda one: -_ORDER[one[0]]))


def next_change(machines: Iterable[FleetMachine], now: datetime) -> float | None:
    """Return in how many seconds a call of one of them is as old as SILENCE; None if none called so recently.

    That takes it offline unless it is recorded as online; when that ends, the topic `presence` tells.
    """
    left = [
        (part.seen + SILENCE - now).total_seconds()
        for machine in machines
        for part in machine.parts
        if part.seen is not None and presence(part.seen, now, online=False) is Presence.ONLINE
    ]
    return min(left, default=None)


def _page(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and 0 < len(text) < 7 else 1


def _fits(one: Row, wanted: Wanted) -> bool:
    text = f"{one.name}\n{one.location}\n{one.version}\n{one.state}".lower()
    return (
        all(word in text for word in wanted.text.lower().split())
        and wanted.location in ("", one.location_id)
        and wanted.state in ("", one.css)
    )


def state_of(part: FleetPart, now: datetime) -> tuple[str, str]:
    """Return CSS class and text of a state: degraded if the part is online with problems or a refused configuration."""
    state = WORDS[presence(part.seen, now, online=part.online)]
    if state == WORDS[Presence.ONLINE] and (problems_of(part) or _text(part, "rejected")):
        return DEGRADED
    return state


def problems_of(part: FleetPart) -> int:
    """Count configuration mistakes and resources that do not work, as the part last reported them."""
    numbers = (part.reported.get(key, 0) for key in ("problems", "unhealthy", "waiting"))
    return sum(int(one) for one in numbers if isinstance(one, int | float))


def _text(part: FleetPart, key: str) -> str:
    value = part.reported.get(key, "")
    return value if isinstance(value, str) else ""
