"""Migrations: the steps that create the tables, each executed once, in order."""

from __future__ import annotations

import sqlite3
from typing import Final

from cloud.store.tables import (
    alerts,
    certificates,
    core,
    data,
    fragments,
    people,
    registry,
    releases,
    requests,
    segments,
    sessions,
    signalling,
    training,
    triggers,
)
from cloud.store.tables.fleet import jobs, lists, rollouts
from schema import ErrorKind, MachineError

STEPS: Final = (
    core.TABLES,
    fragments.TABLES,
    registry.TABLES,
    data.TABLES,
    triggers.TABLES,
    core.LIVE,
    certificates.TABLES,
    people.TABLES,
    sessions.TABLES,
    data.TRASH,
    releases.TABLES,
    requests.TABLES,
    signalling.TABLES,
    training.TABLES,
    training.LABELLING,
    training.KEYS,
    training.NOTIFICATIONS,
    core.LOG_TIMES,
    core.GOODBYES,
    sessions.TICKETS,
    data.EXPIRY,
    core.SEARCHES,
    registry.SEARCHES,
    releases.SEARCHES,
    segments.TABLES,
    core.LOG_COUNTS,
    core.ARRANGEMENTS,
    data.QUERIES,
    segments.STATISTICS,
    releases.OWN_KEYS,
    releases.IMPORTS,
    requests.CODES,
    lists.TABLES,
    jobs.TABLES,
    alerts.TABLES,
    rollouts.TABLES,
    fragments.TEXTS,
    alerts.ENDS,
)


def migrate(connection: sqlite3.Connection) -> None:
    """Execute the steps that are missing in this database, each in a transaction.

    Raise MachineError if the database was written by a newer program.
    """
    done = connection.execute("PRAGMA user_version").fetchone()[0]
    if done > len(STEPS):
        raise newer(done)
    for number, step in enumerate(STEPS[done:], done + 1):
        connection.execute("BEGIN IMMEDIATE")
        try:
            for statement in statements(step):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {number}")
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise


def newer(done: int) -> MachineError:
    """Return the error for a database with more steps than this program has."""
    return MachineError(
        f"the database has a newer version ({done}) than this program ({len(STEPS)})",
        kind=ErrorKind.PRECONDITION,
        remedy="start the newer machine-cloud, or restore a backup that was made before the update",
    )


def statements(step: str) -> list[str]:
    """Split a step into statements, without comments."""
    lines = (line.partition("--")[0] for line in step.splitlines())
    return [text for text in (part.strip() for part in "\n".join(lines).split(";")) if text]
