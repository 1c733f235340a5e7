"""API keys and their roles."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal

from cloud.domain.organizations.tenants import ROLES_AT, missing
from cloud.store.sql import Sql, Value, counted, inserted
from cloud.values.limits import GRANTS, KEYS
from cloud.values.names import checked_name, new_id, new_secret
from cloud.values.times import moment_of, stored
from rpc.access import digest_of
from schema import ErrorKind, MachineError

Kind = Literal["organization", "location", "robot"]
KINDS: Final[tuple[Kind, ...]] = ("organization", "location", "robot")
ROLES: Final = ("operator", "owner")  # in ascending order


@dataclass(frozen=True, slots=True)
class Grant:
    """A role at a resource and everything below it."""

    role: str
    kind: Kind
    subject: str


@dataclass(frozen=True, slots=True)
class KeyRecord:
    """An API key without its secret, which is shown only when the key is created."""

    id: str
    organization_id: str
    name: str
    created: datetime
    grants: tuple[Grant, ...]
    person_id: str = ""  # owner of the key; empty if it does not belong to a person


def create_key(
    sql: Sql, owner: str, name: str, grants: Iterable[Grant], now: datetime, person: str = ""
) -> tuple[str, str]:
    """Create a key of an organization, optionally for a person; return its id and the key.

    The key cannot be read again.
    """
    granted = list(dict.fromkeys(grants))
    if not granted:
        raise MachineError("a key needs a role", kind=ErrorKind.INVALID, remedy="name at least one authorization")
    KEYS.check_count(counted(sql, "keys", "organization_id", owner), "the organization")
    subject, key = new_id(), new_secret()
    name = checked_name(name, "a key") if name.strip() else f"key {subject[:8]}"
    row: dict[str, Value] = {"id": subject, "organization_id": owner, "name": name, "created": stored(now)}
    inserted(sql, "keys", {**row, "digest": digest_of(key), "person_id": person or None})
    for grant in granted:
        add_grant(sql, subject, grant)
    sql.notify("key", subject)
    return subject, key


_KEY: Final = "SELECT id, organization_id, name, created, person_id FROM keys"


def key(sql: Sql, subject: str) -> KeyRecord:
    """Return one key; NOT_FOUND."""
    row = sql.row(f"{_KEY} WHERE id = ?", subject)
    if row is None:
        raise missing("key", subject)
    return _key(sql, row)


def organization_of(sql: Sql, subject: str) -> str:
    """Return the organization of a key; "" for an unknown key."""
    row = sql.row("SELECT organization_id FROM keys WHERE id = ?", subject)
    return "" if row is None else str(row["organization_id"])


def keys(sql: Sql, owner: str) -> list[KeyRecord]:
    """Return all keys of an organization, ordered by name."""
    rows = sql.rows(f"{_KEY} WHERE organization_id = ? ORDER BY name, id", owner)
    return [_key(sql, row) for row in rows]


def keys_at(sql: Sql, kind: Kind, subject: str) -> list[KeyRecord]:
    """Return the keys that have a role at this resource itself."""
    rows = sql.rows(
        f"{_KEY} WHERE id IN (SELECT key_id FROM grants WHERE kind = ? AND subject = ?) ORDER BY name, id",
        kind,
        subject,
    )
    return [_key(sql, row) for row in rows]


def _key(sql: Sql, row: Mapping[str, Any]) -> KeyRecord:
    return KeyRecord(
        row["id"],
        row["organization_id"],
        row["name"],
        moment_of(row["created"]),
        grants_of(sql, row["id"]),
        row["person_id"] or "",
    )


def grants_of(sql: Sql, subject: str) -> tuple[Grant, ...]:
    """Return the roles of a key."""
    rows = sql.rows("SELECT role, kind, subject FROM grants WHERE key_id = ? ORDER BY kind, subject", subject)
    return tuple(Grant(row["role"], row["kind"], row["subject"]) for row in rows)


def keys_with_roles(sql: Sql, within: Collection[tuple[str, str]]) -> dict[str, str]:
    """Return digests by id of keys with a role at any of these (kind, id).

    Only keys of the organizations in `within` count.
    """
    owners = [subject for kind, subject in within if kind == "organization"]
    subjects = [subject for _, subject in within]
    rows = sql.rows(
        f"""
        SELECT keys.id AS id, digest, kind, subject FROM grants JOIN keys ON keys.id = grants.key_id
        WHERE subject IN ({", ".join("?" * len(subjects))}) AND organization_id IN ({", ".join("?" * len(owners))})
        ORDER BY keys.id
        """,
        *subjects,
        *owners,
    )
    return {row["id"]: row["digest"] for row in rows if (row["kind"], row["subject"]) in within}


def operators_of(sql: Sql, within: Collection[tuple[str, str]]) -> list[str]:
    """Return the ids of keys whose only role at these (kind, id) is operator; see keys_with_roles."""
    roles: dict[str, set[str]] = {}
    subjects = [subject for _, subject in within]
    for row in sql.rows(
        f"SELECT key_id, kind, subject, role FROM grants WHERE subject IN ({', '.join('?' * len(subjects))})", *subjects
    ):
        if (row["kind"], row["subject"]) in within:
            roles.setdefault(row["key_id"], set()).add(row["role"])
    return sorted(key for key, named in roles.items() if named == {"operator"})


def add_grant(sql: Sql, subject: str, grant: Grant) -> None:
    """Give a key a role, which replaces its role at the same resource, if any.

    PRECONDITION if the organization then has no owner, EXHAUSTED if the key has too many roles.
    """
    GRANTS.check_count(counted(sql, "grants", "key_id", subject), "the key")
    sql.run(
        """
        INSERT INTO grants (key_id, role, kind, subject) VALUES (?, ?, ?, ?)
        ON CONFLICT (key_id, kind, subject) DO UPDATE SET role = excluded.role
        """,
        subject,
        grant.role,
        grant.kind,
        grant.subject,
    )
    if grant.kind == "organization":
        _still_owned(sql, grant.subject)
    sql.notify("key", subject)
    sql.notify(ROLES_AT, grant.subject)


def remove_grant(sql: Sql, subject: str, grant: Grant) -> None:
    """Remove a role. PRECONDITION for the only role of a key, and for the last owner of an organization."""
    if len(grants_of(sql, subject)) < 2:
        raise MachineError("this is the key's only role", kind=ErrorKind.PRECONDITION, remedy="delete the key")
    deleted = sql.run(
        "DELETE FROM grants WHERE key_id = ? AND role = ? AND kind = ? AND subject = ?",
        subject,
        grant.role,
        grant.kind,
        grant.subject,
    )
    if not deleted:
        raise missing("authorization", f"{grant.kind}_{grant.role}")
    if grant.kind == "organization":
        _still_owned(sql, grant.subject)
    sql.notify("key", subject)
    sql.notify(ROLES_AT, grant.subject)


def rename_key(sql: Sql, subject: str, name: str) -> None:
    """Rename a key."""
    sql.run("UPDATE keys SET name = ? WHERE id = ?", checked_name(name, "a key"), subject)


def rotate_key(sql: Sql, subject: str) -> str:
    """Replace the secret of a key and return the new one; the old one and its tokens are void at once."""
    new_key = new_secret()
    if not sql.run("UPDATE keys SET digest = ? WHERE id = ?", digest_of(new_key), subject):
        raise missing("key", subject)
    _notify_replaced(sql, subject, grants_of(sql, subject))
    return new_key


def delete_key(sql: Sql, subject: str) -> None:
    """Delete a key; its tokens are void at once. PRECONDITION for the last owner of an organization."""
    record = key(sql, subject)
    sql.run("DELETE FROM grants WHERE key_id = ?", subject)
    sql.run("DELETE FROM fleet_views WHERE organization_id = ? AND owner = ?", record.organization_id, subject)
    sql.run("DELETE FROM keys WHERE id = ?", subject)
    forget_without_keys(sql, record.person_id)
    _still_owned(sql, record.organization_id)
    _notify_replaced(sql, subject, record.grants)


def _notify_replaced(sql: Sql, subject: str, grants: Iterable[Grant]) -> None:
    """Notify that a key was replaced or deleted, for itself and at the places where it had roles."""
    sql.notify("key", subject)
    for grant in grants:
        sql.notify(ROLES_AT, grant.subject)


def forget_without_keys(sql: Sql, person: str) -> None:
    """Delete a person without keys, who is not a member of any organization."""
    if person and sql.row("SELECT id FROM keys WHERE person_id = ?", person) is None:
        sql.run("DELETE FROM people WHERE id = ?", person)


def _still_owned(sql: Sql, organization: str) -> None:
    """Raise PRECONDITION, which rolls back the transaction, if no key has the owner role for the organization."""
    owner = sql.row(
        "SELECT key_id FROM grants WHERE role = 'owner' AND kind = 'organization' AND subject = ?", organization
    )
    if owner is None:
        raise MachineError(
            "this is the organization's only key with the role of an owner",
            kind=ErrorKind.PRECONDITION,
            remedy="create another one first, or rotate this one",
        )
