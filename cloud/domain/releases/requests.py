"""Requests of people to the agent of a part: check now, and update now. Each is kept until it arrives or expires."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from cloud.domain.releases import reports
from cloud.store.sql import Sql
from cloud.values.names import new_id
from cloud.values.times import moment_of, stored
from schema import ErrorKind, MachineError
from uplink.releases import UPDATE, check_program

TOPIC: Final = "agent request"
"""Topic of events about requests; the subject is the part."""

EXPIRY: Final = timedelta(hours=24)
"""Time until a request that has not arrived is deleted, so that it does not take effect unexpectedly later."""


@dataclass(frozen=True, slots=True)
class AgentRequest:
    """A request that has not arrived."""

    id: str
    kind: str  # CHECK or UPDATE
    program: str  # of an update
    requested: datetime
    expires: datetime


def request(sql: Sql, part: str, kind: str, program: str, now: datetime) -> None:
    """Store a request; one of the same kind is replaced. INVALID for another program.

    PRECONDITION if no agent of the part has reported, so nothing would carry it out.
    """
    if kind == UPDATE:
        try:
            check_program(program)
        except ValueError as error:
            raise MachineError(str(error), kind=ErrorKind.INVALID) from None
    if reports.newest(sql, part) is None:
        raise MachineError(
            "no machine-agent has reported from this machine",
            kind=ErrorKind.PRECONDITION,
            remedy="install machine-agent on the machine, or wait until it has connected",
        )
    sql.run(
        "INSERT INTO agent_requests (part_id, kind, program, id, requested, expires) VALUES (?, ?, ?, ?, ?, ?) "
        "ON CONFLICT (part_id, kind, program) DO UPDATE SET id = excluded.id, requested = excluded.requested, "
        "expires = excluded.expires",
        part,
        kind,
        program,
        new_id(),
        stored(now),
        stored(now + EXPIRY),
    )
    sql.notify(TOPIC, part)


def pending(sql: Sql, part: str, now: datetime) -> list[AgentRequest]:
    """Return the requests that have not arrived and not expired, oldest first."""
    rows = sql.rows(
        "SELECT id, kind, program, requested, expires FROM agent_requests "
        "WHERE part_id = ? AND expires > ? ORDER BY requested, id",
        part,
        stored(now),
    )
    return [
        AgentRequest(row["id"], row["kind"], row["program"], moment_of(row["requested"]), moment_of(row["expires"]))
        for row in rows
    ]


def arrived(sql: Sql, part: str, ids: Sequence[str]) -> None:
    """Delete requests that have arrived; others with the same ids are left alone."""
    sql.many("DELETE FROM agent_requests WHERE part_id = ? AND id = ?", [(part, id_) for id_ in ids])
    sql.notify(TOPIC, part)


def expire(sql: Sql, now: datetime) -> int:
    """Delete requests that have expired; return their number."""
    return sql.run("DELETE FROM agent_requests WHERE expires <= ?", stored(now))
