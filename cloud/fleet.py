"""All machines that somebody may see, with what their parts tell: in two queries, however many there are."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from cloud.access import Place, Role, best, visible
from cloud.author import Author
from cloud.store.sql import Sql
from cloud.times import moment_of

BATCH: Final = 500  # ids in one query


@dataclass(frozen=True, slots=True)
class FleetLocation:
    """A location with a role of the caller at it, or at something in it. `path` has the names from the outermost on."""

    id: str
    organization_id: str
    organization: str
    path: str
    role: Role  # at the location itself; NOBODY for one that only holds a machine of the caller's


@dataclass(frozen=True, slots=True)
class FleetPart:
    """A part of a machine of the fleet."""

    id: str
    name: str
    main: bool
    seen: datetime | None
    revision: int
    saved: datetime
    reported: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class FleetMachine:
    """A machine with its parts, the main one first; `role` is the caller's."""

    id: str
    name: str
    location: FleetLocation
    role: Role
    parts: tuple[FleetPart, ...]


def locations(sql: Sql, author: Author) -> dict[str, FleetLocation]:
    """Every location of the organization that the caller's key belongs to, by id, in order of path."""
    rows = sql.rows(
        """
        SELECT locations.id AS id, locations.parent_id AS parent_id, locations.name AS name,
            locations.organization_id AS organization_id, organizations.name AS organization
        FROM keys JOIN locations ON locations.organization_id = keys.organization_id
            JOIN organizations ON organizations.id = locations.organization_id
        WHERE keys.id = ?
        """,
        author.name,
    )
    grants = visible(sql, author)
    parents = {row["id"]: row["parent_id"] or "" for row in rows}
    names = {row["id"]: row["name"] for row in rows}
    found = []
    for row in rows:
        chain = _chain(row["id"], parents)
        role = best(grants, _place(row["organization_id"], chain))
        path = " / ".join(names[one] for one in reversed(chain))
        found.append(FleetLocation(row["id"], row["organization_id"], row["organization"], path, role))
    return {one.id: one for one in sorted(found, key=lambda one: (one.path.lower(), one.id))}


def fleet(sql: Sql, author: Author, parts: Sequence[str] | None = None) -> list[FleetMachine]:
    """The machines that the caller may see, in order of name; with `parts`, only those that these are parts of."""
    places = locations(sql, author)
    if not places:
        return []
    grants = visible(sql, author)
    (owner,) = {place.organization_id for place in places.values()}
    everywhere = _machines(sql, owner, parts)
    parents = {
        row["id"]: row["parent_id"] or ""
        for row in sql.rows("SELECT id, parent_id FROM locations WHERE organization_id = ?", owner)
    }
    found = []
    for subject, rows in everywhere.items():
        first = rows[0]
        place = _place(owner, _chain(first["location_id"], parents), ("robot", subject))
        role = best(grants, place)
        if role is not Role.NOBODY:
            members = tuple(_part(row) for row in rows)
            found.append(FleetMachine(subject, first["machine"], places[first["location_id"]], role, members))
    return found


def _machines(sql: Sql, owner: str, parts: Sequence[str] | None) -> dict[str, list[Mapping[str, Any]]]:
    """The rows of parts, by machine."""
    columns = """
        SELECT machines.id AS machine_id, machines.name AS machine, machines.location_id AS location_id,
            parts.id AS id, parts.name AS name, main, seen, revision, saved, reported
        FROM machines JOIN locations ON locations.id = machines.location_id
            JOIN parts ON parts.machine_id = machines.id
        WHERE locations.organization_id = ?
    """
    order = "ORDER BY lower(machines.name), machines.id, main DESC, parts.name"
    rows = []
    if parts is None:
        rows = sql.rows(f"{columns} {order}", owner)
    else:
        for start in range(0, len(parts), BATCH):
            some = parts[start : start + BATCH]
            marks = ", ".join("?" * len(some))
            chosen = f"AND machines.id IN (SELECT machine_id FROM parts WHERE id IN ({marks}))"
            rows += sql.rows(f"{columns} {chosen} {order}", owner, *some)
    found: dict[str, list[Mapping[str, Any]]] = {}
    seen: set[str] = set()
    for row in rows:
        if row["id"] not in seen:  # two batches may name parts of one machine
            seen.add(row["id"])
            found.setdefault(row["machine_id"], []).append(row)
    return found


def _part(row: Mapping[str, Any]) -> FleetPart:
    return FleetPart(
        row["id"],
        row["name"],
        bool(row["main"]),
        moment_of(row["seen"]) if row["seen"] is not None else None,
        row["revision"],
        moment_of(row["saved"]),
        json.loads(row["reported"]),
    )


def _chain(subject: str, parents: Mapping[str, str]) -> list[str]:
    """A location and those it lies in, innermost first."""
    chain = [subject]
    while parents.get(chain[-1]) and parents[chain[-1]] not in chain:
        chain.append(parents[chain[-1]])
    return chain


def _place(owner: str, chain: Sequence[str], *within: tuple[str, str]) -> Place:
    return Place(owner, frozenset({("organization", owner), *(("location", one) for one in chain), *within}))
