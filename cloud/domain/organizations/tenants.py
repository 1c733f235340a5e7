"""Organizations and their locations."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from cloud.documents.unmasked import check_unmasked
from cloud.domain.organizations import tags
from cloud.domain.organizations.release_seeds import replace_seeds
from cloud.store.sql import Conflict, Sql, counted, inserted
from cloud.values.limits import LOCATIONS
from cloud.values.names import checked_name, checked_namespace, new_id, new_location_id
from cloud.values.times import moment_of, stored
from schema import ErrorKind, MachineError


@dataclass(frozen=True, slots=True)
class Organization:
    """Owner of locations, keys, fragments and modules."""

    id: str
    name: str
    namespace: str
    created: datetime


@dataclass(frozen=True, slots=True)
class Location:
    """Container of machines and further locations."""

    id: str
    organization_id: str
    parent_id: str
    name: str
    created: datetime


def missing(kind: str, subject: str) -> MachineError:
    """Return the error NOT_FOUND, identical for objects that do not exist and those of other organizations."""
    return MachineError(f"there is no {kind} {subject[:80]!r}", kind=ErrorKind.NOT_FOUND, remedy="check the id")


# ---- organizations


def create_organization(sql: Sql, name: str, now: datetime) -> str:
    """Create an organization, with keys for releases that the cloud signs itself; return its id."""
    subject = new_id()
    inserted(
        sql, "organizations", {"id": subject, "name": checked_name(name, "an organization"), "created": stored(now)}
    )
    replace_seeds(sql, subject, now)
    return subject


def organization(sql: Sql, subject: str) -> Organization:
    """Return one organization; NOT_FOUND."""
    row = sql.row("SELECT id, name, namespace, created FROM organizations WHERE id = ?", subject)
    if row is None:
        raise missing("organization", subject)
    return _organization(row)


def _organization(row: Mapping[str, Any]) -> Organization:
    return Organization(row["id"], row["name"], row["namespace"] or "", moment_of(row["created"]))


def update_organization(sql: Sql, subject: str, *, name: str | None = None, namespace: str | None = None) -> None:
    """Change the given fields. A namespace can be set only once, because machines use it to name modules."""
    record = organization(sql, subject)
    if name is not None:
        sql.run("UPDATE organizations SET name = ? WHERE id = ?", checked_name(name, "an organization"), subject)
    if namespace is not None and namespace != record.namespace:
        if record.namespace:
            raise MachineError(
                f"the namespace of {record.name} is {record.namespace} and cannot be changed",
                kind=ErrorKind.PRECONDITION,
                remedy="keep it: configurations refer to modules by it",
            )
        try:
            sql.run("UPDATE organizations SET namespace = ? WHERE id = ?", checked_namespace(namespace), subject)
        except Conflict:
            raise MachineError(
                f"the namespace {namespace} is taken", kind=ErrorKind.EXISTS, remedy="choose another one"
            ) from None


def namespace_is_free(sql: Sql, namespace: str) -> bool:
    """Return whether no organization has this namespace."""
    return sql.row("SELECT 1 AS one FROM organizations WHERE namespace = ?", checked_namespace(namespace)) is None


_OWNED: Final = (
    ("locations", "locations"),
    ("fragments", "fragments"),
    ("registry_items", "modules or packages"),
    ("datasets", "datasets"),
    ("release_files", "release files"),
)
"""Tables whose rows prevent the deletion of their organization, and what they contain."""


_RELEASES: Final = (
    "release_targets",
    "release_signing",
    "release_metadata",
    "release_keys",
    "own_release_keys",
    "release_imports",
    "rollouts",
)
"""Tables of signed releases, deleted with their organization, apart from the files."""


_STAGED: Final = ("staged_machines", "staged_counts", "staged_events")
"""Tables of rollouts in stages, whose rows name their rollout."""


_ALERTS: Final = ("alert_notices", "alert_events", "alerts", "alert_silences", "alert_targets", "alert_rules")
"""Tables of alerts, deleted with their organization."""


def delete_organization(sql: Sql, subject: str) -> None:
    """Delete an organization and its keys; PRECONDITION if it owns anything else."""
    organization(sql, subject)
    for table, content in _OWNED:
        if sql.row(f"SELECT id FROM {table} WHERE organization_id = ?", subject) is not None:
            raise MachineError(
                f"the organization still has {content}", kind=ErrorKind.PRECONDITION, remedy="delete them first"
            )
    for row in sql.rows("SELECT id FROM keys WHERE organization_id = ?", subject):
        for grant in sql.rows("DELETE FROM grants WHERE key_id = ? RETURNING subject", row["id"]):
            sql.notify(ROLES_AT, grant["subject"])
        sql.notify("key", row["id"])
    sql.run("DELETE FROM keys WHERE organization_id = ?", subject)
    sql.run("DELETE FROM data_retention WHERE organization_id = ?", subject)
    sql.run("DELETE FROM authorities WHERE scope = ?", subject)
    sql.run("DELETE FROM training_notifications WHERE organization_id = ?", subject)
    sql.run("DELETE FROM saved_queries WHERE organization_id = ?", subject)
    sql.run("DELETE FROM fleet_views WHERE organization_id = ?", subject)
    sql.run(
        "DELETE FROM fleet_job_machines WHERE job_id IN (SELECT id FROM fleet_jobs WHERE organization_id = ?)", subject
    )
    sql.run("DELETE FROM fleet_jobs WHERE organization_id = ?", subject)
    for table in _STAGED:
        sql.run(
            f"DELETE FROM {table} WHERE rollout_id IN (SELECT id FROM staged_rollouts WHERE organization_id = ?)",
            subject,
        )
    sql.run("DELETE FROM staged_rollouts WHERE organization_id = ?", subject)
    for table in (*_RELEASES, *_ALERTS):
        sql.run(f"DELETE FROM {table} WHERE organization_id = ?", subject)
    sql.run("DELETE FROM organizations WHERE id = ?", subject)


# ---- locations

_COLUMNS: Final = "id, organization_id, parent_id, name, created"
_LOCATION: Final = f"SELECT {_COLUMNS} FROM locations"
_ABOVE: Final = f"""
    WITH RECURSIVE above ({_COLUMNS}, steps) AS (
        SELECT {_COLUMNS}, 0 FROM locations WHERE id = ?
        UNION ALL
        SELECT outer_.id, outer_.organization_id, outer_.parent_id, outer_.name, outer_.created, steps + 1
        FROM locations AS outer_ JOIN above ON outer_.id = above.parent_id
    )
    SELECT {_COLUMNS} FROM above ORDER BY steps
"""


def create_location(sql: Sql, owner: str, name: str, parent: str, now: datetime) -> str:
    """Create a location in an organization, below `parent` unless that is empty; return its id."""
    organization(sql, owner)
    LOCATIONS.check_count(counted(sql, "locations", "organization_id", owner), "the organization")
    if parent and location(sql, parent).organization_id != owner:
        raise missing("location", parent)
    subject = new_location_id()
    inserted(
        sql,
        "locations",
        {
            "id": subject,
            "organization_id": owner,
            "parent_id": parent or None,
            "name": checked_name(name, "a location"),
            "created": stored(now),
        },
    )
    return subject


def location(sql: Sql, subject: str) -> Location:
    """Return one location; NOT_FOUND."""
    row = sql.row(f"{_LOCATION} WHERE id = ?", subject)
    if row is None:
        raise missing("location", subject)
    return _location(row)


def locations(sql: Sql, owner: str) -> list[Location]:
    """Return all locations of an organization, ordered by name."""
    return [_location(row) for row in sql.rows(f"{_LOCATION} WHERE organization_id = ? ORDER BY name, id", owner)]


def _location(row: Mapping[str, Any]) -> Location:
    return Location(
        row["id"],
        row["organization_id"],
        row["parent_id"] or "",
        row["name"],
        moment_of(row["created"]),
    )


def above(sql: Sql, subject: str) -> list[Location]:
    """Return the location and those that contain it, innermost first, with one query; NOT_FOUND."""
    chain = [_location(row) for row in sql.rows(_ABOVE, subject)]
    if not chain:
        raise missing("location", subject)
    return chain


def machines_in(sql: Sql, subject: str) -> int:
    """Return the number of machines directly in a location."""
    row = sql.row("SELECT COUNT(*) AS count FROM machines WHERE location_id = ?", subject)
    return row["count"] if row is not None else 0


def update_location(sql: Sql, subject: str, *, name: str | None = None, parent: str | None = None) -> None:
    """Change the given fields; an empty parent moves it to the top. PRECONDITION if it would contain itself."""
    record = location(sql, subject)
    if name is not None:
        sql.run("UPDATE locations SET name = ? WHERE id = ?", checked_name(name, "a location"), subject)
    if parent is not None:
        if parent:
            new_parents = above(sql, parent)
            if new_parents[0].organization_id != record.organization_id:
                raise missing("location", parent)
            if subject in (outer.id for outer in new_parents):
                raise MachineError(
                    f"the location {record.name} cannot be moved into itself",
                    kind=ErrorKind.PRECONDITION,
                    remedy="choose a parent outside of it",
                )
            roles_change(sql, "location", [outer.id for outer in new_parents])
        if record.parent_id:
            roles_change(sql, "location", [outer.id for outer in above(sql, record.parent_id)])
        sql.run("UPDATE locations SET parent_id = ? WHERE id = ?", parent or None, subject)
        sql.notify(ROLES_AT, subject)


def delete_location(sql: Sql, subject: str) -> None:
    """Delete an empty location; PRECONDITION if it contains machines or locations."""
    record = location(sql, subject)
    child = sql.row("SELECT id FROM locations WHERE parent_id = ?", subject)
    if machines_in(sql, subject) or child is not None:
        raise MachineError(
            f"the location {record.name} is not empty",
            kind=ErrorKind.PRECONDITION,
            remedy="delete or move its machines and locations first",
        )
    delete_grants(sql, "location", subject)
    sql.run("DELETE FROM locations WHERE id = ?", subject)


ROLES_AT: Final = "roles"
"""Event topic; the subject is the id of an organization, location or machine at or below which roles changed."""


def roles_change(sql: Sql, kind: str, subjects: Sequence[str]) -> None:
    """Notify keys with a role at these resources that the content below them changes."""
    marks = ", ".join("?" * len(subjects))
    for row in sql.rows(f"SELECT DISTINCT key_id FROM grants WHERE kind = ? AND subject IN ({marks})", kind, *subjects):
        sql.notify("key", row["key_id"])


def delete_grants(sql: Sql, kind: str, subject: str) -> None:
    """Delete all roles at a resource that is deleted."""
    roles_change(sql, kind, [subject])
    sql.run("DELETE FROM grants WHERE kind = ? AND subject = ?", kind, subject)


# ---- metadata: free-form JSON of organizations, locations, machines and parts

TABLES = {"organization": "organizations", "location": "locations", "robot": "machines", "part": "parts"}


def metadata(sql: Sql, kind: str, subject: str) -> dict[str, Any]:
    """Return the metadata of a resource; NOT_FOUND."""
    row = sql.row(f"SELECT metadata FROM {TABLES[kind]} WHERE id = ?", subject)
    if row is None:
        raise missing(kind, subject)
    data: dict[str, Any] = json.loads(row["metadata"])
    return data


def set_metadata(sql: Sql, kind: str, subject: str, data: Mapping[str, Any], text: str) -> None:
    """Replace the metadata of a resource; NOT_FOUND, INVALID for masks instead of secrets.

    `text` is the result of `metadata_text`.
    """
    check_unmasked(data, metadata(sql, kind, subject))
    if not sql.run(f"UPDATE {TABLES[kind]} SET metadata = ? WHERE id = ?", text, subject):
        raise missing(kind, subject)
    if kind == "robot":
        tags.index(sql, subject)
    elif kind == "part":
        row = sql.row("SELECT machine_id FROM parts WHERE id = ?", subject)
        assert row is not None
        tags.index(sql, row["machine_id"])
