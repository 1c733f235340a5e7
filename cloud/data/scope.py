"""What of the captured data somebody may touch."""

from __future__ import annotations

from cloud.access import Role, visible
from cloud.author import Author
from cloud.data.filters import Scope
from cloud.store.sql import Sql
from cloud.tenants import locations
from schema.errors import ErrorKind, MachineError


def scope_of(sql: Sql, author: Author, role: Role) -> Scope:
    """Where somebody has at least `role`; empty for a machine. PERMISSION if all of his roles are too low."""
    every = visible(sql, author)
    grants = [grant for grant in every if Role[grant.role.upper()] >= role]
    if every and not grants:
        raise MachineError(
            f"this needs the role of an {role.name.lower()}",
            kind=ErrorKind.PERMISSION,
            remedy="use a key with that role, or ask an owner",
        )
    subjects = {
        kind: tuple(grant.subject for grant in grants if grant.kind == kind)
        for kind in ("organization", "location", "robot")
    }
    inside = _below(sql, subjects["location"])
    return Scope(subjects["organization"], inside, subjects["robot"])


def _below(sql: Sql, granted: tuple[str, ...]) -> tuple[str, ...]:
    """The locations and everything that lies in them."""
    found = set(granted)
    for subject in granted:
        row = sql.row("SELECT organization_id FROM locations WHERE id = ?", subject)
        parents = {one.id: one.parent_id for one in locations(sql, row["organization_id"])} if row is not None else {}
        while more := {one for one, parent in parents.items() if parent in found and one not in found}:
            found |= more
    return tuple(sorted(found))
