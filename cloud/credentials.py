"""With what one signs in to the cloud, as the database knows it.

Whoever has shown a credential is asked for it again in each transaction that looks up a role: what was rotated or
deleted is void at once, at every replica.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from cloud.author import KEY, LOCATION, PART, Author
from cloud.store.sql import Sql
from rpc.auth import Credential, digest_of
from schema.errors import ErrorKind, MachineError

SOURCES: Final = {
    KEY: ("keys", "id", "digest"),
    PART: ("part_secrets", "part_id", "secret"),
    LOCATION: ("part_location_secrets", "part_id", "secret"),  # a view
}
"""Types of credentials that are accepted here: table, column of who signs in, column of the secret or its digest."""

BATCH: Final = 500  # ids of one query


def every(sql: Sql) -> list[Credential]:
    """All credentials."""
    return [
        Credential(type_, row[entity], row[payload])
        for type_, (table, entity, payload) in SOURCES.items()
        for row in sql.rows(f"SELECT {entity}, {payload} FROM {table}")
    ]


def some(sql: Sql, entities: Collection[str]) -> list[Credential]:
    """All credentials of some entities, of whatever type."""
    asked, found = list(entities), []
    for start in range(0, len(asked), BATCH):
        ids = asked[start : start + BATCH]
        marks = ", ".join("?" * len(ids))
        for type_, (table, entity, payload) in SOURCES.items():
            rows = sql.rows(f"SELECT {entity}, {payload} FROM {table} WHERE {entity} IN ({marks})", *ids)
            found += [Credential(type_, row[entity], row[payload]) for row in rows]
    return found


def require_in_force(sql: Sql, author: Author) -> None:
    """UNAUTHENTICATED if what `author` has shown was rotated or deleted since. Whoever had to show nothing may pass."""
    shown = author.credential
    if not shown:
        return
    table, entity, payload = SOURCES[author.type]
    rows = sql.rows(f"SELECT {payload} FROM {table} WHERE {entity} = ?", author.name)
    if not any(shown in (row[payload], digest_of(row[payload])) for row in rows):
        raise void()


def void() -> MachineError:
    """That a key or secret does not count any more."""
    return MachineError(
        "this key was rotated or deleted", kind=ErrorKind.UNAUTHENTICATED, remedy="sign in with one that is in force"
    )
