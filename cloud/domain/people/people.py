"""People: holders of keys, with an email address. A member of an organization is a person with a key of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from cloud.domain.organizations.keys import delete_key
from cloud.domain.organizations.tenants import missing
from cloud.store.sql import Sql, inserted
from cloud.values.names import new_id
from cloud.values.times import moment_of, stored
from schema import ErrorKind, MachineError

MAX_EMAIL: Final = 254  # characters; RFC 5321 4.5.3.1.3, less the angle brackets
_LABEL: Final = "[a-z0-9]([a-z0-9-]*[a-z0-9])?"
_EMAIL: Final = re.compile(rf"[^\s@<>()\[\]\\,;:\"]{{1,64}}@{_LABEL}(\.{_LABEL})*")


@dataclass(frozen=True, slots=True)
class Member:
    """A member of an organization, since the creation of the oldest key."""

    id: str
    email: str
    added: datetime
    keys: tuple[str, ...]  # ids, oldest first


def checked_email(text: str) -> str:
    """Return an email address in lower case; INVALID for anything else."""
    email = text.strip().lower()
    encoded = "=?" in email  # RFC 2047: mail servers may decode it to another address
    if len(email) > MAX_EMAIL or encoded or not email.isprintable() or not _EMAIL.fullmatch(email):
        raise MachineError(
            f"{text[:60]!r} is not a valid email address",
            kind=ErrorKind.INVALID,
            remedy="use an address such as ada@example.com",
        )
    return email


def members(sql: Sql, owner: str) -> list[Member]:
    """Return all members of an organization, ordered by address."""
    rows = sql.rows(
        """
        SELECT people.id AS id, email, keys.id AS key_id, keys.created AS created
        FROM people JOIN keys ON keys.person_id = people.id
        WHERE keys.organization_id = ? ORDER BY email, keys.created, keys.id
        """,
        owner,
    )
    rows_by_person: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        rows_by_person.setdefault(row["id"], []).append(row)
    return [
        Member(
            person_id, key_rows[0]["email"], moment_of(key_rows[0]["created"]), tuple(row["key_id"] for row in key_rows)
        )
        for person_id, key_rows in rows_by_person.items()
    ]


def member(sql: Sql, owner: str, subject: str) -> Member:
    """Return one member of an organization, by id or address; NOT_FOUND."""
    id_or_email = subject.strip().lower()
    for candidate in members(sql, owner):
        if id_or_email in (candidate.id, candidate.email):
            return candidate
    raise missing("member", subject)


def find_or_create(sql: Sql, email: str, now: datetime) -> str:
    """Return the id of the person with this address; create the person if necessary."""
    row = sql.row("SELECT id FROM people WHERE email = ?", email)
    if row is not None:
        return str(row["id"])
    subject = new_id()
    inserted(sql, "people", {"id": subject, "email": email, "created": stored(now)})
    return subject


def email_of(sql: Sql, key: str) -> str:
    """Return the address of the person that a key belongs to; "" if it does not belong to a person."""
    row = sql.row("SELECT email FROM people JOIN keys ON keys.person_id = people.id WHERE keys.id = ?", key)
    return "" if row is None else str(row["email"])


def remove(sql: Sql, owner: str, subject: str) -> None:
    """Delete all keys of a person in an organization, which voids them at once. PRECONDITION for its last owner."""
    for key in member(sql, owner, subject).keys:
        delete_key(sql, key)


def forget(sql: Sql) -> None:
    """Delete all people without keys."""
    sql.run("DELETE FROM people WHERE id NOT IN (SELECT person_id FROM keys WHERE person_id IS NOT NULL)")
