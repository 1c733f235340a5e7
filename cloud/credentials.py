"""With what one signs in to the cloud, as the database knows it.

Whoever has shown a credential is asked for it again in each transaction that looks up a role: what was rotated or
deleted is void at once, at every replica.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
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

SIGNED_OUT: Final = "signed-out"
"""The topic: its subjects are who had signed in."""

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
    """UNAUTHENTICATED if what `author` has shown was rotated or deleted since, or if somebody has signed out with it.

    Whoever had to show nothing may pass.
    """
    shown = author.credential
    if not shown:
        return
    table, entity, payload = SOURCES[author.type]
    rows = sql.rows(
        f"SELECT {payload}, (SELECT 1 FROM signed_out WHERE token = ?) AS gone FROM {table} WHERE {entity} = ?",
        author.token,
        author.name,
    )
    if not any(shown in (row[payload], digest_of(row[payload])) for row in rows):
        raise void()
    if rows[0]["gone"]:
        raise MachineError("you have signed out", kind=ErrorKind.UNAUTHENTICATED, remedy="sign in again")


def sign_out(sql: Sql, entity: str, token: str, ends: int) -> None:
    """Void one token by its id. `ends` is when it ends by itself, in seconds since 1970.

    PRECONDITION for 0, a token that does not end: what is noted of it could never be forgotten.
    """
    if not ends:
        raise MachineError(
            "this token was not given at a page",
            kind=ErrorKind.PRECONDITION,
            remedy="rotate or delete the key, or the secret, that it was given for",
        )
    sql.run("INSERT INTO signed_out (token, ends) VALUES (?, ?) ON CONFLICT (token) DO NOTHING", token, ends)
    sql.notify(SIGNED_OUT, entity)


def expire(sql: Sql, now: datetime) -> int:
    """Forget the tokens that have ended by themselves; how many there were."""
    return sql.run("DELETE FROM signed_out WHERE ends < ?", int(now.timestamp()))


def void() -> MachineError:
    """That a key or secret does not count any more."""
    return MachineError(
        "this key was rotated or deleted", kind=ErrorKind.UNAUTHENTICATED, remedy="sign in with one that is in force"
    )
