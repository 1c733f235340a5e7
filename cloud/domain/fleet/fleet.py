"""Overview of all machines that a caller may see, with the reports of their parts, in a few queries."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from cloud.domain.organizations.sharing import REACHED
from cloud.domain.permissions.access import Holder, Place, Role, holder
from cloud.store.sql import Sql
from cloud.values.author import Author
from cloud.values.times import moment_of

BATCH: Final = 500  # ids in one query


@dataclass(frozen=True, slots=True)
class FleetLocation:
    """A location that the caller's organization has access to. `path` has the names from the outermost location on."""

    id: str
    organization_id: str
    organization: str
    path: str
    parent_id: str  # "" if the caller's organization has no access to it
    role: Role  # role at the location itself; NONE if the caller has none, or only inside it


@dataclass(frozen=True, slots=True)
class FleetPart:
    """A part of a machine; `cloud.domain.machines.online.presence` takes its `seen`, `online` and `gone`."""

    id: str
    name: str
    main: bool
    seen: datetime | None
    online: bool
    revision: int
    saved: datetime
    reported: Mapping[str, Any]
    gone: bool = False


@dataclass(frozen=True, slots=True)
class FleetMachine:
    """A machine with its parts, the main one first; `role` is the caller's."""

    id: str
    name: str
    location: FleetLocation
    role: Role
    parts: tuple[FleetPart, ...]


def locations(sql: Sql, author: Author) -> dict[str, FleetLocation]:
    """Return the locations of the caller's organization and those shared with it, by id, ordered by path.

    The path of a shared location does not show the locations that contain it.
    """
    key_holder = holder(sql, author)
    rows = _locations(sql, key_holder)
    parents, names = _parents(rows), {row["id"]: row["name"] for row in rows}
    accessible = []
    for row in rows:
        chain = _chain(row["id"], parents)
        role = key_holder.role(_place(key_holder.organization, row["organization_id"], chain))
        path = " / ".join(names[location] for location in reversed(chain))
        accessible.append(
            FleetLocation(row["id"], row["organization_id"], row["organization"], path, parents[row["id"]], role)
        )
    return {
        location.id: location
        for location in sorted(accessible, key=lambda location: (location.path.lower(), location.id))
    }


def fleet(sql: Sql, author: Author, parts: Sequence[str] | None = None) -> list[FleetMachine]:
    """Return the machines that the caller may see, ordered by name; with `parts`, only machines of these parts."""
    return _fleet(sql, author, "id", parts)


def chosen(sql: Sql, author: Author, machines: Sequence[str]) -> list[FleetMachine]:
    """Return those of these machines that the caller may see, in the same order."""
    by_id = {machine.id: machine for machine in _fleet(sql, author, "machine_id", machines)}
    return [by_id[machine] for machine in machines if machine in by_id]


@dataclass(frozen=True, slots=True)
class Reached:
    """A machine, the role of a caller there, and whether it belongs to the caller's organization."""

    id: str
    name: str
    location_id: str
    role: Role
    home: bool


def reached(sql: Sql, author: Author, machines: Sequence[str]) -> list[Reached]:
    """Return those of these machines at which the caller has a role, in the same order."""
    places, roles = locations(sql, author), holder(sql, author)
    parents = {place.id: place.parent_id for place in places.values()}
    by_id: dict[str, Reached] = {}
    for start in range(0, len(machines), BATCH):
        batch = machines[start : start + BATCH]
        marks = ", ".join("?" * len(batch))
        for row in sql.rows(f"SELECT id, name, location_id FROM machines WHERE id IN ({marks})", *batch):
            home = places.get(row["location_id"])
            if home is None:
                continue
            chain = _chain(home.id, parents)
            role = roles.role(_place(roles.organization, home.organization_id, chain, ("robot", row["id"])))
            if role is not Role.NONE:
                own = home.organization_id == roles.organization
                by_id[row["id"]] = Reached(row["id"], row["name"], home.id, role, own)
    return [by_id[machine] for machine in machines if machine in by_id]


def _fleet(sql: Sql, author: Author, column: str, ids: Sequence[str] | None) -> list[FleetMachine]:
    places = locations(sql, author)
    if not places:
        return []
    roles = holder(sql, author)
    rows_by_machine = _machines(sql, roles.organization, column, ids)
    parents = _parents(_locations(sql, roles))
    fleet_machines = []
    for subject, rows in rows_by_machine.items():
        first = rows[0]
        home = places[first["location_id"]]
        chain = _chain(home.id, parents)
        role = roles.role(_place(roles.organization, home.organization_id, chain, ("robot", subject)))
        if role is not Role.NONE:
            members = tuple(_part(row) for row in rows)
            fleet_machines.append(FleetMachine(subject, first["machine"], home, role, members))
    return fleet_machines


def _locations(sql: Sql, key_holder: Holder) -> list[Mapping[str, Any]]:
    """Return the rows of all locations that the organization of a key has access to."""
    columns = """
        SELECT locations.id AS id, locations.parent_id AS parent_id, locations.name AS name,
            locations.organization_id AS organization_id, organizations.name AS organization
        FROM locations JOIN organizations ON organizations.id = locations.organization_id
    """
    rows = sql.rows(f"{columns} WHERE locations.organization_id = ?", key_holder.organization)
    rows += sql.rows(f"{columns} WHERE locations.id IN ({REACHED})", key_holder.organization)
    return rows


def _parents(rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return the parent of each location, or "" if the parent is not among the rows."""
    ids = {row["id"] for row in rows}
    return {row["id"]: row["parent_id"] if row["parent_id"] in ids else "" for row in rows}


def _machines(sql: Sql, owner: str, column: str, ids: Sequence[str] | None) -> dict[str, list[Mapping[str, Any]]]:
    """Return the rows of parts, grouped by machine; with `ids`, of machines with such a part by `column`."""
    columns = f"""
        SELECT machines.id AS machine_id, machines.name AS machine, machines.location_id AS location_id,
            parts.id AS id, parts.name AS name, main, seen, online, gone, revision, saved, reported
        FROM machines JOIN locations ON locations.id = machines.location_id
            JOIN parts ON parts.machine_id = machines.id LEFT JOIN trigger_presence ON part_id = parts.id
        WHERE (locations.organization_id = ? OR locations.id IN ({REACHED}))
    """
    order = "ORDER BY lower(machines.name), machines.id, main DESC, parts.name"
    rows = []
    if ids is None:
        rows = sql.rows(f"{columns} {order}", owner, owner)
    else:
        for start in range(0, len(ids), BATCH):
            batch = ids[start : start + BATCH]
            marks = ", ".join("?" * len(batch))
            some = f"AND machines.id IN (SELECT machine_id FROM parts WHERE {column} IN ({marks}))"
            rows += sql.rows(f"{columns} {some} {order}", owner, owner, *batch)
    by_machine: dict[str, list[Mapping[str, Any]]] = {}
    seen_parts: set[str] = set()
    for row in rows:
        if row["id"] not in seen_parts:  # two batches may contain parts of the same machine
            seen_parts.add(row["id"])
            by_machine.setdefault(row["machine_id"], []).append(row)
    return by_machine


def _part(row: Mapping[str, Any]) -> FleetPart:
    return FleetPart(
        row["id"],
        row["name"],
        bool(row["main"]),
        moment_of(row["seen"]) if row["seen"] is not None else None,
        bool(row["online"]),
        row["revision"],
        moment_of(row["saved"]),
        json.loads(row["reported"]),
        bool(row["gone"]),
    )


def _chain(subject: str, parents: Mapping[str, str]) -> list[str]:
    """Return a location and those that contain it, innermost first."""
    chain = [subject]
    while parents.get(chain[-1]) and parents[chain[-1]] not in chain:
        chain.append(parents[chain[-1]])
    return chain


def _place(reader: str, owner: str, chain: Sequence[str], *within: tuple[str, str]) -> Place:
    """Return a place that the organization `reader` has access to."""
    both = (("organization", reader), ("organization", owner))
    return Place(owner, frozenset({*both, *(("location", location) for location in chain), *within}))
