"""Lists of machines: filters, orders, pages by key, and counts. Queries read ranges of indexes of `fleet_rows`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from cloud.domain.fleet.fleet import FleetLocation, locations
from cloud.domain.fleet.positions import Position
from cloud.domain.machines.listed import AWAITING, DEGRADED, OFFLINE, ONLINE
from cloud.domain.permissions.access import Role, holder
from cloud.store.sql import Row, Sql, Value, literal
from cloud.values.author import Author
from cloud.values.limits import FLEET_WORDS
from schema import ErrorKind, MachineError

SORTS: Final = ("name", "state", "location", "version", "problems")
URGENCY: Final = (OFFLINE, DEGRADED, AWAITING, ONLINE)
"""States, the most urgent first."""
MAX_CHOICES: Final = 50
"""Versions to choose from."""

MAX_PLACES: Final = 10_000
"""Locations that the words of a search may match: databases limit the parameters of a statement."""
MAX_WORD: Final = 200
"""Characters of a word that are compared; names are not longer."""

_COLUMN: Final = {"version": "server", "problems": "calm"}  # by which an order sorts before names


@dataclass(frozen=True, slots=True)
class FleetFilter:
    """Conditions for machines, which must all hold. Empty ones hold for every machine."""

    text: str = ""  # words that are in its name, location, versions, state or tags
    location: str = ""
    state: str = ""
    agent: str = ""  # version
    server: str = ""  # version
    update: str = ""  # of cloud.domain.machines.reported.STATES
    problems: bool = False
    tags: tuple[str, ...] = ()
    fragment: str = ""  # id of a fragment that a part uses directly


@dataclass(frozen=True, slots=True)
class Scope:
    """Machines of an organization that a caller reaches: all, or those in `places` and those with these ids."""

    organization: str
    every: bool = False
    places: tuple[str, ...] = ()
    machines: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MachinePart:
    """A part with its name, and its machine."""

    id: str
    name: str
    machine_id: str
    machine: str


@dataclass(frozen=True, slots=True)
class FleetCounts:
    """Numbers of machines that a caller reaches."""

    states: Mapping[str, int] = field(default_factory=dict)
    updating: int = 0
    problems: int = 0

    @property
    def total(self) -> int:
        """The number of all machines."""
        return sum(self.states.values())


class Listing:
    """Lists of machines of a caller, in one transaction."""

    def __init__(self, sql: Sql, author: Author) -> None:
        self._sql = sql
        self.places: Mapping[str, FleetLocation] = locations(sql, author)
        self.organization = holder(sql, author).organization
        self._scopes = _scopes(sql, author, self.places)

    def counts(self) -> FleetCounts:
        """Return how many machines there are in each state, with updates in progress, and with problems."""
        states: dict[str, int] = {}
        updating = problems = 0
        for scope in self._scopes:
            reach, values = _reach(scope)
            query = f"SELECT state, COUNT(*) AS count FROM fleet_rows WHERE {reach} GROUP BY state"
            for row in self._sql.rows(query, *values):
                states[row["state"]] = states.get(row["state"], 0) + row["count"]
            updating += self._count(f"{reach} AND updating = 1", values)
            problems += self._count(f"{reach} AND calm < 0", values)
        return FleetCounts(states, updating, problems)

    def count(self, conditions: FleetFilter) -> int:
        """Return how many machines match."""
        total = 0
        for scope in self._scopes:
            reach, values = _reach(scope)
            text, more = self._condition(conditions)
            total += self._count(f"{reach}{text}", [*values, *more])
        return total

    def page(
        self,
        conditions: FleetFilter,
        sort: str = "name",
        after: Position | None = None,
        limit: int = 100,
        *,
        backwards: bool = False,
    ) -> list[Position]:
        """Return up to `limit` machines after a position, in order; with `backwards`, those directly before it."""
        parts = self._parts(conditions, sort)
        if backwards:
            parts.reverse()
        if after is not None:
            names = [part for part, _, _ in parts]
            is_here = after.part in names and isinstance(after.value, int) is (sort == "problems")
            parts = parts[names.index(after.part) :] if is_here else []
        page: list[Position] = []
        condition = self._condition(conditions)  # once: its words look through all locations
        for part, text, values in parts:
            start = after if after is not None and after.part == part else None
            rows = self._rows(condition, sort, (text, values), start, limit - len(page), backwards=backwards)
            page += (Position(part, row["value"], row["name"], row["machine_id"]) for row in rows)
            if len(page) >= limit:
                break
        return page[::-1] if backwards else page

    def parts(self, conditions: FleetFilter, limit: int) -> list[MachinePart]:
        """Return up to `limit` parts of machines that match, ordered by the names of their machines."""
        parts: list[MachinePart] = []
        text, values = self._condition(conditions)
        for scope in self._scopes:
            reach, own = _reach(scope)
            query = (
                "SELECT parts.id AS part, parts.name AS own, machine_id, machine FROM "
                f"(SELECT machine_id AS id, name AS machine FROM fleet_rows WHERE {reach}{text}) AS listed "
                "JOIN parts ON parts.machine_id = listed.id ORDER BY machine, parts.id LIMIT ?"
            )
            rows = self._sql.rows(query, *own, *values, limit - len(parts))
            parts += (MachinePart(row["part"], row["own"], row["machine_id"], row["machine"]) for row in rows)
        return parts

    def choices(self, program: str) -> list[str]:
        """Return versions of `server` or `agent` of these machines, at most MAX_CHOICES."""
        column = {"server": "server", "agent": "agent"}[program]
        versions: set[str] = set()
        for scope in self._scopes:
            reach, values = _reach(scope)
            rows = self._sql.rows(f"SELECT DISTINCT {column} AS version FROM fleet_rows WHERE {reach}", *values)
            versions.update(version for row in rows for version in row["version"].split())
        return sorted(versions)[:MAX_CHOICES]

    def tags(self) -> list[str]:
        """Return tags of these machines, in order, at most MAX_CHOICES."""
        tags: set[str] = set()
        for scope in self._scopes:
            reach, values = _reach(scope)
            query = (
                "SELECT DISTINCT tag FROM machine_tags JOIN fleet_rows ON fleet_rows.machine_id = "
                f"machine_tags.machine_id WHERE {reach} ORDER BY tag LIMIT {MAX_CHOICES}"
            )
            tags.update(row["tag"] for row in self._sql.rows(query, *values))
        return sorted(tags)[:MAX_CHOICES]

    def used_places(self) -> frozenset[str]:
        """Return the locations with machines."""
        used: set[str] = set()
        for scope in self._scopes:
            reach, values = _reach(scope)
            rows = self._sql.rows(f"SELECT DISTINCT location_id FROM fleet_rows WHERE {reach}", *values)
            used.update(row["location_id"] for row in rows)
        return frozenset(used)

    def _count(self, condition: str, values: Sequence[Value]) -> int:
        row = self._sql.row(f"SELECT COUNT(*) AS count FROM fleet_rows WHERE {condition}", *values)
        assert row is not None
        return int(row["count"])

    def _parts(self, conditions: FleetFilter, sort: str) -> list[tuple[str, str, list[Value]]]:
        """Return the parts of an order, each with its name and condition."""
        if sort == "state":
            return [(state, " AND state = ?", [state]) for state in URGENCY if conditions.state in ("", state)]
        if sort == "location" and not conditions.location:
            used = self.used_places()
            return [(place, " AND location_id = ?", [place]) for place in self.places if place in used]
        return [("", "", [])]

    def _rows(
        self,
        condition: tuple[str, Sequence[Value]],
        sort: str,
        part: tuple[str, Sequence[Value]],
        start: Position | None,
        limit: int,
        *,
        backwards: bool,
    ) -> list[Row]:
        column = _COLUMN.get(sort)
        keys = (column, "name", "machine_id") if column else ("name", "machine_id")
        text, values = part[0] + condition[0], [*part[1], *condition[1]]
        if start is not None:
            text += f" AND ({', '.join(keys)}) {'<' if backwards else '>'} ({', '.join('?' * len(keys))})"
            values += [start.value, start.name, start.machine] if column else [start.name, start.machine]
        order = ", ".join(f"{key} DESC" if backwards else key for key in keys)
        rows: list[Row] = []
        for scope in self._scopes:
            reach, own = _reach(scope)
            query = (
                f"SELECT {column or repr('')} AS value, name, machine_id FROM fleet_rows "
                f"WHERE {reach}{text} ORDER BY {order} LIMIT ?"
            )
            rows += self._sql.rows(query, *own, *values, limit)
        if len(self._scopes) > 1:
            rows.sort(key=lambda row: (row["value"], row["name"], row["machine_id"]), reverse=backwards)
        return rows[:limit]

    def _condition(self, conditions: FleetFilter) -> tuple[str, list[Value]]:
        """Return the SQL of a filter, which begins with AND unless it is empty, and its parameters."""
        words = conditions.text.lower().split()
        FLEET_WORDS.check(len(words) + len(conditions.tags), "the search")
        texts: list[str] = []
        values: list[Value] = []
        for column, value in (("location_id", conditions.location), ("state", conditions.state)):
            if value:
                texts.append(f"{column} = ?")
                values.append(value)
        for column, value in (("agent", conditions.agent), ("server", conditions.server)):
            if value:
                texts.append(f"' ' || {column} || ' ' LIKE ? ESCAPE '!'")
                values.append(f"% {literal(value)} %")
        if conditions.update == "updating":
            texts.append("updating = 1")
        if conditions.update:
            texts.append("updates LIKE ? ESCAPE '!'")
            values.append(f"% {literal(conditions.update)} %")
        if conditions.problems:
            texts.append("calm < 0")
        for tag in conditions.tags:
            texts.append("EXISTS (SELECT 1 FROM machine_tags WHERE machine_id = fleet_rows.machine_id AND tag = ?)")
            values.append(tag)
        if conditions.fragment:
            texts.append(  # CROSS JOIN: from a machine to its uses, and not through all machines that use the fragment
                "EXISTS (SELECT 1 FROM parts CROSS JOIN fragment_uses WHERE machine_id = fleet_rows.machine_id "
                "AND kind = 'part' AND subject = parts.id AND fragment_id = ?)"
            )
            values.append(conditions.fragment)
        left = MAX_PLACES
        for word in words:
            text, more = self._word(word[:MAX_WORD])
            left -= len(more)
            if left < 0:
                raise MachineError(
                    f"{word[:40]!r} is in the names of too many locations",
                    kind=ErrorKind.INVALID,
                    remedy="write more of the name, or choose a location",
                )
            texts.append(text)
            values += more
        return "".join(f" AND {text}" for text in texts), values

    def _word(self, word: str) -> tuple[str, list[Value]]:
        pattern = f"%{literal(word)}%"
        places = [place.id for place in self.places.values() if word in place.path.lower()]
        texts = [f"{column} LIKE ? ESCAPE '!'" for column in ("name", "server", "agent", "state")]
        texts.append("EXISTS (SELECT 1 FROM machine_tags WHERE machine_id = fleet_rows.machine_id AND tag = ?)")
        if places:
            texts.append(f"location_id IN ({', '.join('?' * len(places))})")
        return f"({' OR '.join(texts)})", [*[pattern] * 4, word, *places]


def _reach(scope: Scope) -> tuple[str, list[Value]]:
    """Return the SQL condition of a scope and its parameters."""
    if scope.every:
        return "organization_id = ?", [scope.organization]
    conditions = [
        f"{column} IN ({', '.join('?' * len(ids))})"
        for column, ids in (("location_id", scope.places), ("fleet_rows.machine_id", scope.machines))
        if ids
    ]
    return f"organization_id = ? AND ({' OR '.join(conditions)})", [scope.organization, *scope.places, *scope.machines]


def _scopes(sql: Sql, author: Author, places: Mapping[str, FleetLocation]) -> list[Scope]:
    roles = holder(sql, author)
    own = roles.organization
    every = any(grant.kind == "organization" and grant.subject == own for grant in roles.grants)
    within: dict[str, list[str]] = {}
    for place in places.values():
        if place.role is not Role.NONE:
            within.setdefault(place.organization_id, []).append(place.id)
    machines: dict[str, list[str]] = {}
    for machine in _granted(grant.subject for grant in roles.grants if grant.kind == "robot"):
        row = sql.row("SELECT organization_id, location_id FROM fleet_rows WHERE machine_id = ?", machine)
        if row is not None and row["location_id"] in places:
            machines.setdefault(row["organization_id"], []).append(machine)
    scopes = [Scope(own, every=True)] if every else []
    for organization in sorted(within.keys() | machines.keys()):
        if not (every and organization == own):
            chosen = tuple(within.get(organization, ())), tuple(machines.get(organization, ()))
            scopes.append(Scope(organization, False, *chosen))
    return scopes


def _granted(machines: Iterable[str]) -> list[str]:
    return sorted(set(machines))
