"""What the fleet view shows of a machine, and which machines somebody looks for. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from cloud.fleet import FleetMachine, FleetPart
from cloud.online import SILENCE, Presence, presence
from rpc.pages.words import dom_id

WORDS: Final = {
    Presence.NEVER: ("awaiting", "awaiting setup"),
    Presence.ONLINE: ("online", "online"),
    Presence.OFFLINE: ("offline", "offline"),
}
"""The class and the words of each state."""

SORTS: Final = ("name", "state", "location", "version", "problems")
_ORDER: Final = {"offline": 0, "awaiting": 1, "online": 2}  # what needs somebody comes first


@dataclass(frozen=True, slots=True)
class Row:
    """One machine. `since` is when one that is offline was heard of last."""

    dom: str
    id: str
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

    @classmethod
    def of(cls, query: Mapping[str, str]) -> Wanted:
        """Read a query; what it does not have is not asked for."""
        sort = query.get("sort", "name")
        return cls(
            query.get("q", "").strip(),
            query.get("location", ""),
            query.get("state", ""),
            sort if sort in SORTS else "name",
        )

    def query(self) -> dict[str, str]:
        """As a query, without what is not asked for."""
        found = {"q": self.text, "location": self.location, "state": self.state, "sort": self.sort}
        return {key: value for key, value in found.items() if value and (key, value) != ("sort", "name")}


def row(machine: FleetMachine, now: datetime) -> Row:
    """What is shown of one machine now."""
    part = machine.parts[0]  # the main one
    css, state = WORDS[presence(part.seen, now)]
    return Row(
        dom=dom_id(machine.id),
        id=machine.id,
        name=machine.name,
        location=machine.location.path,
        location_id=machine.location.id,
        css=css,
        state=state,
        since=part.seen if css == "offline" else None,
        version=_text(part, "version"),
        saved=part.revision,
        running=running(part.reported),
        problems=sum(_problems(one) for one in machine.parts),
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


def counts(rows: Iterable[Row]) -> tuple[tuple[str, str, int], ...]:
    """How many machines are in each state: class, words, number; in the order in which they are shown."""
    states = [one.css for one in rows]
    words = ((css, text) for css, text in WORDS.values())
    return tuple((css, text, states.count(css)) for css, text in sorted(words, key=lambda one: -_ORDER[one[0]]))


def next_change(machines: Iterable[FleetMachine], now: datetime) -> float | None:
    """In how many seconds the first of them goes offline unless it is heard of; None if none is online."""
    left = [
        (part.seen + SILENCE - now).total_seconds()
        for machine in machines
        for part in machine.parts
        if part.seen is not None and presence(part.seen, now) is Presence.ONLINE
    ]
    return min(left, default=None)


def _fits(one: Row, wanted: Wanted) -> bool:
    text = f"{one.name}\n{one.location}\n{one.version}\n{one.state}".lower()
    return (
        all(word in text for word in wanted.text.lower().split())
        and wanted.location in ("", one.location_id)
        and wanted.state in ("", one.css)
    )


def _problems(part: FleetPart) -> int:
    """Mistakes of the configuration, and resources that do not work."""
    numbers = (part.reported.get("problems", 0), part.reported.get("unhealthy", 0))
    return sum(int(one) for one in numbers if isinstance(one, int | float))


def _text(part: FleetPart, key: str) -> str:
    value = part.reported.get(key, "")
    return value if isinstance(value, str) else ""
