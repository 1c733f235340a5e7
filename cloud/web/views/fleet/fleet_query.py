"""Addresses of the list of machines: filter, order, columns and position. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import urlencode

from cloud.domain.fleet.listing import SORTS, FleetFilter

COLUMNS: Final = {
    "state": "State",
    "location": "Location",
    "version": "Version",
    "agent": "Agent",
    "revision": "Configuration",
    "fragments": "Fragments",
    "seen": "Last seen",
    "platform": "Platform",
    "processor": "Processor",
    "memory": "Memory",
    "disk": "Disk",
    "temperature": "Temperature",
    "problems": "Problems",
    "tags": "Tags",
}
"""Columns to choose from; the name is always shown."""

USUAL: Final = ("state", "location", "version", "revision", "problems", "tags")
"""Columns of a list without a choice."""


@dataclass(frozen=True, slots=True)
class FleetQuery:
    """What a list of machines shows; all conditions must hold. `after` and `before` are positions as text."""

    text: str = ""
    location: str = ""
    state: str = ""
    agent: str = ""
    server: str = ""
    update: str = ""
    problems: bool = False
    tags: tuple[str, ...] = ()
    fragment: str = ""
    sort: str = "name"
    columns: tuple[str, ...] = USUAL
    dense: bool = False
    after: str = ""
    before: str = ""

    @classmethod
    def of(cls, query: Mapping[str, str]) -> FleetQuery:
        """Parse a query; missing and unknown fields have their defaults."""
        sort = query.get("sort", "name")
        columns = tuple(name for name in COLUMNS if name in query.get("columns", "").split(","))
        return cls(
            query.get("q", "").strip(),
            query.get("location", ""),
            query.get("state", ""),
            query.get("agent", ""),
            query.get("server", ""),
            query.get("update", ""),
            bool(query.get("problems")),
            tuple(tag for tag in (part.strip() for part in query.get("tag", "").split(",")) if tag),
            query.get("fragment", ""),
            sort if sort in SORTS else "name",
            columns or USUAL,
            bool(query.get("dense")),
            query.get("after", ""),
            query.get("before", ""),
        )

    def heads(self) -> list[tuple[str, str, bool]]:
        """Return name, title and whether the list can be sorted by it, for each column."""
        return [(name, COLUMNS[name], name in SORTS) for name in self.columns]

    def conditions(self) -> dict[str, str]:
        """Return only the conditions as fields of a query."""
        fields = {"q": self.text, "location": self.location, "state": self.state, "agent": self.agent}
        fields |= {"server": self.server, "update": self.update, "problems": "yes" if self.problems else ""}
        fields |= {"tag": ",".join(self.tags), "fragment": self.fragment}
        return {key: value for key, value in fields.items() if value}

    def view(self) -> dict[str, str]:
        """Return order and columns as fields of a query."""
        fields = {"sort": "" if self.sort == "name" else self.sort, "dense": "yes" if self.dense else ""}
        fields["columns"] = "" if self.columns == USUAL else ",".join(self.columns)
        return {key: value for key, value in fields.items() if value}

    def fields(self) -> dict[str, str]:
        """Return everything as a query without defaults."""
        position = {"after": self.after, "before": self.before}
        return self.conditions() | self.view() | {key: value for key, value in position.items() if value}

    def filter(self) -> FleetFilter:
        """Return the conditions for the database."""
        return FleetFilter(
            self.text,
            self.location,
            self.state,
            self.agent,
            self.server,
            self.update,
            self.problems,
            self.tags,
            self.fragment,
        )

    def url(self, **changes: str | bool | Sequence[str]) -> str:
        """Return the address of the first page of this list with changes, such as `state="online"`."""
        changed = replace(self, **{"after": "", "before": "", **changes})  # type: ignore[arg-type]
        fields = changed.fields()
        return f"/?{urlencode(fields)}" if fields else "/"

    def tile(self, **condition: str | bool) -> str:
        """Return the address of a tile: the whole list with one condition; without it, if that is shown already."""
        bare = FleetQuery(sort=self.sort, columns=self.columns, dense=self.dense)
        ((name, value),) = condition.items()
        return bare.url(**({} if getattr(self, name) == value else condition))
