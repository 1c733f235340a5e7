"""Captured data that a caller may access."""

from __future__ import annotations

from dataclasses import replace

from cloud.domain.data.filters import DataFilter, DataScope
from cloud.domain.organizations.sharing import reached
from cloud.domain.organizations.tenants import locations
from cloud.domain.permissions.access import Role, holder
from cloud.domain.training import job_keys
from cloud.store.sql import Sql
from cloud.values.author import Author
from schema import ErrorKind, MachineError


def readable(sql: Sql, author: Author, data_filter: DataFilter) -> tuple[DataFilter, DataScope]:
    """Return a filter and the scope for reading files: those of its dataset for a training job, as an operator else."""
    scope, job = scope_of(sql, author, Role.OPERATOR), job_keys.readable(sql, author)
    if job is None:
        return data_filter, scope
    if data_filter.dataset not in ("", job.dataset_id):
        return data_filter, DataScope()
    return replace(data_filter, dataset=job.dataset_id), DataScope(organizations=(job.organization_id,))


def reads(sql: Sql, author: Author, subject: str) -> bool:
    """Return whether a caller is a training job that may read this file."""
    job = job_keys.readable(sql, author)
    row = None
    if job is not None:
        row = sql.row(
            """
            SELECT 1 AS one FROM dataset_files JOIN files ON files.id = dataset_files.file_id
            JOIN data_sources ON data_sources.number = files.source
            WHERE files.id = ? AND dataset_id = ? AND organization_id = ?
            """,
            subject,
            job.dataset_id,
            job.organization_id,
        )
    return row is not None


def scope_of(sql: Sql, author: Author, role: Role) -> DataScope:
    """Return where a caller has at least `role`; empty for a machine. PERMISSION if all its roles are too low.

    Owner roles at shared objects do not extend to the data that those have captured.
    """
    key_holder = holder(sql, author)
    grants = [grant for grant in key_holder.grants if Role[grant.role.upper()] >= role]
    if key_holder.grants and not grants:
        raise MachineError(
            f"this needs the role of an {role.name.lower()}",
            kind=ErrorKind.PERMISSION,
            remedy="use a key with that role, or ask an owner",
        )
    subjects = {
        kind: tuple(grant.subject for grant in grants if grant.kind == kind)
        for kind in ("organization", "location", "robot")
    }
    shared = reached(sql, key_holder.organization) if role < Role.OWNER else []
    own_locations = [subject for subject in subjects["location"] if _owner(sql, subject) == key_holder.organization]
    guest_locations = (
        shared if subjects["organization"] else [subject for subject in subjects["location"] if subject in shared]
    )
    home_locations = {location.id for location in locations(sql, key_holder.organization)}
    machines = {subject: _location_of(sql, subject) for subject in subjects["robot"]}
    return DataScope(
        subjects["organization"],
        _below(sql, (*own_locations, *guest_locations)),
        tuple(subject for subject, place in machines.items() if place in home_locations),
        tuple(subject for subject, place in machines.items() if place and place not in home_locations),
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
    inside = set(granted)
    for subject in granted:
        row = sql.row("SELECT organization_id FROM locations WHERE id = ?", subject)
        parents = (
            {location.id: location.parent_id for location in locations(sql, row["organization_id"])}
            if row is not None
            else {}
        )
        while children := {child for child, parent in parents.items() if parent in inside and child not in inside}:
            inside |= children
    return tuple(sorted(inside))
