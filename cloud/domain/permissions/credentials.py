"""Credentials of callers, as stored in the database.

The credential that a caller used is checked again in each transaction that looks up a role, so rotated or deleted
credentials are void at once at every replica.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Final

from cloud.store.sql import Sql, Value, counted, inserted
from cloud.values.author import KEY, LOCATION, PART, Author
from rpc.access import MAX_WAITING_TICKETS, Credential, Ticket, digest_of, too_many_tickets
from schema import ErrorKind, MachineError

SOURCES: Final = {
    KEY: ("keys", "id", "digest"),
    PART: ("part_secrets", "part_id", "secret"),
    LOCATION: ("part_location_secrets", "part_id", "secret"),  # a view
}
"""For each accepted credential type: table, column of the caller's id, column of the secret or its digest."""

SIGNED_OUT: Final = "signed-out"
"""Event topic; its subjects are the callers that logged out."""

BATCH: Final = 500  # ids in one query


def every(sql: Sql) -> list[Credential]:
    """Return all credentials."""
    return [
        Credential(type_, row[entity], row[payload])
        for type_, (table, entity, payload) in SOURCES.items()
        for row in sql.rows(f"SELECT {entity}, {payload} FROM {table}")
    ]


def some(sql: Sql, entities: Collection[str]) -> list[Credential]:
    """Return the credentials of these entities, of any type."""
    ids, credentials = list(entities), []
    for start in range(0, len(ids), BATCH):
        batch = ids[start : start + BATCH]
        marks = ", ".join("?" * len(batch))
        for type_, (table, entity, payload) in SOURCES.items():
            rows = sql.rows(f"SELECT {entity}, {payload} FROM {table} WHERE {entity} IN ({marks})", *batch)
            credentials += [Credential(type_, row[entity], row[payload]) for row in rows]
    return credentials


def require_in_force(sql: Sql, author: Author) -> None:
    """Raise UNAUTHENTICATED if the author's credential was rotated or deleted since, or was logged out.

    Authors without a credential pass.
    """
    credential = author.credential
    if not credential:
        return
    table, entity, payload = SOURCES[author.type]
    rows = sql.rows(
        f"SELECT {payload}, (SELECT 1 FROM signed_out WHERE token = ?) AS gone FROM {table} WHERE {entity} = ?",
        author.token,
        author.name,
    )
    if not any(credential in (row[payload], digest_of(row[payload])) for row in rows):
        raise void()
    if rows[0]["gone"]:
        raise MachineError("you have logged out", kind=ErrorKind.UNAUTHENTICATED, remedy="log in again")


def sign_out(sql: Sql, entity: str, token: str, ends: int) -> None:
    """Revoke one token by its id. `ends` is its expiry time in seconds since 1970.

    PRECONDITION for 0 (a token that does not expire), because its record could never be deleted.
    """
    if not ends:
        raise MachineError(
            "this token was not issued by a login page",
            kind=ErrorKind.PRECONDITION,
            remedy="rotate or delete the key or secret that it was issued for",
        )
    sql.run("INSERT INTO signed_out (token, ends) VALUES (?, ?) ON CONFLICT (token) DO NOTHING", token, ends)
    sql.notify(SIGNED_OUT, entity)


def keep_ticket(sql: Sql, ticket: Ticket, now: int) -> None:
    """Store a ticket. GRPCError (RESOURCE_EXHAUSTED) if MAX_WAITING of its key are waiting."""
    sql.run("DELETE FROM tickets WHERE key_id = ? AND ends <= ?", ticket.entity, now)
    if counted(sql, "tickets", "key_id", ticket.entity) >= MAX_WAITING_TICKETS:
        raise too_many_tickets()
    row: dict[str, Value] = {"digest": ticket.digest, "key_id": ticket.entity}
    inserted(sql, "tickets", {**row, "fingerprint": ticket.fingerprint, "ends": ticket.ends})


def take_ticket(sql: Sql, digest: str) -> Ticket | None:
    """Delete a ticket and return it; None if there is none."""
    row = sql.row("SELECT key_id, fingerprint, ends FROM tickets WHERE digest = ?", digest)
    if row is None or not sql.run("DELETE FROM tickets WHERE digest = ?", digest):
        return None
    return Ticket(digest, row["key_id"], row["fingerprint"], row["ends"])


def expire(sql: Sql, now: datetime) -> int:
    """Delete the records of revoked tokens and of tickets that have expired; return their number."""
    ended = int(now.timestamp())
    return sum(sql.run(f"DELETE FROM {table} WHERE ends < ?", ended) for table in ("signed_out", "tickets"))


def void() -> MachineError:
    """Return the error for a key or secret that is no longer valid."""
    return MachineError(
        "this key was rotated or deleted", kind=ErrorKind.UNAUTHENTICATED, remedy="log in with a valid key"
    )
