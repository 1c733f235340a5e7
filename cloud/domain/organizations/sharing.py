"""Locations that are shared with other organizations, and the secrets of locations.

A location belongs to one organization. While it is shared with another organization, keys of that one have their roles
there too, at everything in it. Decisions about ownership stay with the first organization (see
cloud.domain.permissions.access.require).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Final

from cloud.domain.organizations.tenants import ROLES_AT, Location, above, location, missing, organization
from cloud.store.sql import Sql, inserted
from cloud.values.names import new_id, new_secret
from cloud.values.times import moment_of, stored
from rpc.access import digest_of
from schema import ErrorKind, MachineError

MAX_SECRETS: Final = 10  # secrets of one location: a few overlap while machines change from one to the next

REACHED: Final = """
    WITH RECURSIVE reached (id) AS (
        SELECT location_id FROM location_shares WHERE organization_id = ?
        UNION
        SELECT locations.id FROM locations JOIN reached ON locations.parent_id = reached.id
    )
    SELECT id FROM reached
"""
"""Query for all locations of others that an organization has access to. Its parameter is the organization's id."""


# ---- sharing


def share(sql: Sql, subject: str, guest: str, now: datetime) -> None:
    """Give an organization access; idempotent. PRECONDITION for the owning organization."""
    if organization(sql, guest).id == location(sql, subject).organization_id:
        raise MachineError(
            "the location belongs to this organization", kind=ErrorKind.PRECONDITION, remedy="name another organization"
        )
    sql.run(
        "INSERT INTO location_shares (location_id, organization_id, created) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
        subject,
        guest,
        stored(now),
    )
    _notify_keys(sql, guest)
    sql.notify(ROLES_AT, subject)


def unshare(sql: Sql, subject: str, guest: str) -> None:
    """Revoke the access immediately, with the roles that keys of the organization have there; NOT_FOUND."""
    if not sql.run("DELETE FROM location_shares WHERE location_id = ? AND organization_id = ?", subject, guest):
        raise missing("share with organization", guest)
    forget_lost(sql, guest)
    _notify_keys(sql, guest)
    sql.notify(ROLES_AT, subject)


def guests(sql: Sql, chain: Iterable[str]) -> frozenset[str]:
    """Return the organizations that any of these locations is shared with."""
    ids = list(chain)
    marks = ", ".join("?" * len(ids))
    rows = sql.rows(f"SELECT DISTINCT organization_id FROM location_shares WHERE location_id IN ({marks})", *ids)
    return frozenset(row["organization_id"] for row in rows)


def guests_of(sql: Sql, subject: str) -> list[str]:
    """Return the organizations with access to a location, also through an outer location, sorted."""
    return sorted(guests(sql, (outer.id for outer in above(sql, subject))))


def shared_itself(sql: Sql, subject: str) -> list[str]:
    """Return the organizations that this location itself is shared with, sorted."""
    rows = sql.rows(
        "SELECT organization_id FROM location_shares WHERE location_id = ? ORDER BY organization_id", subject
    )
    return [row["organization_id"] for row in rows]


def reached(sql: Sql, guest: str) -> list[str]:
    """Return the ids of all locations of others that an organization has access to, including inner ones."""
    return sorted(row["id"] for row in sql.rows(REACHED, guest))


def reached_locations(sql: Sql, guest: str) -> list[Location]:
    """Return the locations of `reached`, ordered by name."""
    locations = [location(sql, location_id) for location_id in reached(sql, guest)]
    return sorted(locations, key=lambda shared: (shared.name, shared.id))


def forget_lost(sql: Sql, guest: str) -> None:
    """Delete roles of an organization's keys at what it lost access to; sharing again does not restore them."""
    accessible = set(reached(sql, guest))
    rows = sql.rows(
        """
        SELECT key_id, kind, subject, locations.id AS location_id, locations.organization_id AS owner
        FROM grants JOIN keys ON keys.id = grants.key_id
            LEFT JOIN machines ON grants.kind = 'robot' AND machines.id = grants.subject
            JOIN locations ON locations.id = COALESCE(machines.location_id, grants.subject)
        WHERE keys.organization_id = ? AND grants.kind <> 'organization'
        """,
        guest,
    )
    for row in rows:
        if row["owner"] != guest and row["location_id"] not in accessible:
            sql.run(
                "DELETE FROM grants WHERE key_id = ? AND kind = ? AND subject = ?",
                row["key_id"],
                row["kind"],
                row["subject"],
            )


@contextmanager
def moving(sql: Sql, *location_ids: str) -> Iterator[None]:
    """Wrap a move of a location, or of a machine between locations; revoke and notify access that is lost."""
    guests_before = {guest for location_id in location_ids for guest in guests_of(sql, location_id)}
    for location_id in {outer.id for moved_id in location_ids for outer in above(sql, moved_id)}:
        _notify_parts(sql, location_id)
    yield
    for guest in sorted(guests_before.union(*(guests_of(sql, location_id) for location_id in location_ids))):
        forget_lost(sql, guest)
        _notify_keys(sql, guest)


def forget_location(sql: Sql, subject: str) -> None:
    """Delete the shares and secrets of a location."""
    for guest in shared_itself(sql, subject):
        _notify_keys(sql, guest)
    sql.run("DELETE FROM location_shares WHERE location_id = ?", subject)
    sql.run("DELETE FROM location_secrets WHERE location_id = ?", subject)


def forget_guest(sql: Sql, guest: str) -> None:
    """Delete the access of an organization to locations of others."""
    sql.run("DELETE FROM location_shares WHERE organization_id = ?", guest)


def _notify_keys(sql: Sql, guest: str) -> None:
    """Notify that the access of an organization's keys changed, so that pages, machines and login check again."""
    for row in sql.rows("SELECT id FROM keys WHERE organization_id = ?", guest):
        sql.notify("key", row["id"])


# ---- secrets


def create_secret(sql: Sql, subject: str, now: datetime) -> None:
    """Add a secret to a location; PRECONDITION above MAX_SECRETS.

    Parts in the location can log in with it, and accept it from clients.
    """
    location(sql, subject)
    if len(secrets_of(sql, subject)) >= MAX_SECRETS:
        raise MachineError(
            f"the location has {MAX_SECRETS} secrets", kind=ErrorKind.PRECONDITION, remedy="delete one that is not used"
        )
    inserted(
        sql,
        "location_secrets",
        {"id": new_id(), "location_id": subject, "secret": new_secret(), "created": stored(now)},
    )
    _notify_parts(sql, subject)


def secrets_of(sql: Sql, subject: str) -> list[tuple[str, str, datetime]]:
    """Return id, secret and creation time of each secret of a location, newest first."""
    rows = sql.rows(
        "SELECT id, secret, created FROM location_secrets WHERE location_id = ? ORDER BY created DESC, id", subject
    )
    return [(row["id"], row["secret"], moment_of(row["created"])) for row in rows]


def digests_at(sql: Sql, part: str) -> list[str]:
    """Return digests of the location secrets that a part accepts: those of its location and of outer ones."""
    rows = sql.rows("SELECT secret FROM part_location_secrets WHERE part_id = ?", part)
    return sorted({digest_of(row["secret"]) for row in rows})


def delete_secret(sql: Sql, subject: str, secret: str) -> None:
    """Revoke a secret at once; the last one too, because parts have secrets of their own. NOT_FOUND."""
    _notify_parts(sql, subject)
    if not sql.run("DELETE FROM location_secrets WHERE id = ? AND location_id = ?", secret, subject):
        raise missing("secret", secret)


def _notify_parts(sql: Sql, subject: str) -> None:
    """Notify parts that can use secrets of this location, so that they and their clients authenticate again."""
    rows = sql.rows(
        "SELECT DISTINCT part_id FROM part_location_secrets WHERE secret IN "
        "(SELECT secret FROM location_secrets WHERE location_id = ?)",
        subject,
    )
    for row in rows:
        sql.notify("secret", row["part_id"])
