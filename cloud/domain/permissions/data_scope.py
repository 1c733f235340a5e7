"""Captured data that a caller may access."""

from __future__ import annotations

from cloud.domain.data.filters import Scope
from cloud.domain.organizations.sharing import reached
from cloud.domain.organizations.tenants import locations
from cloud.domain.permissions.access import Role, holder
from cloud.store.sql import Sql
from cloud.values.author import Author
from schema.errors import ErrorKind, MachineError


def scope_of(sql: Sql, author: Author, role: Role) -> Scope:
    """Return where a caller has at least `role`; empty for a machine. PERMISSION if all its roles are too low.

    Owner roles at shared objects do not extend to the data that those have captured.
    """
    found = holder(sql, author)
    grants = [grant for grant in found.grants if Role[grant.role.upper()] >= role]
    if found.grants and not grants:
        raise MachineError(
            f"this needs the role of an {role.name.lower()}",
            kind=ErrorKind.PERMISSION,
            remedy="use a key with that role, or ask an owner",
        )
    subjects = {
        kind: tuple(grant.subject for grant in grants if grant.kind == kind)
        for kind in ("organization", "location", "robot")
    }
    shared = reached(sql, found.organization) if role < Role.OWNER else []
    own = [one for one in subjects["location"] if _owner(sql, one) == found.organization]
    guest = shared if subjects["organization"] else [one for one in subjects["location"] if one in shared]
    home = {one.id for one in locations(sql, found.organization)}
    machines = {one: _location_of(sql, one) for one in subjects["robot"]}
    return Scope(
        subjects["organization"],
        _below(sql, (*own, *guest)),
        tuple(one for one, place in machines.items() if place in home),
        tuple(one for one, place in machines.items() if place and place not in home),
        tuple(shared),
    )


def _owner(sql: Sql, subject: str) -> str:
    row = sql.row("SELECT organization_id FROM locations WHERE id = ?", subject)
    return "" if row is None else str(row["organization_id"])


def _location_of(sql: Sql, subject: str) -> str:
    """Return the location of a machine; "" if it was deleted."""
    row = sql.row("SELECT location_id FROM machines WHERE id = ?", subject)
    return "" if row is None else str(row["location_id"])


def _below(sql: Sql, granted: tuple[str, ...]) -> tuple[str, ...]:
    """Return the locations and all their descendants."""
    found = set(granted)
    for subject in granted:
        row = sql.row("SELECT organization_id FROM locations WHERE id = ?", subject)
        parents = {one.id: one.parent_id for one in locations(sql, row["organization_id"])} if row is not None else {}
        while more := {one for one, parent in parents.items() if parent in found and one not in found}:
            found |= more
    return tuple(sorted(found))
