"""The outbox and the log of deliveries: what to send, when, and every attempt."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum
from typing import Any, Final

from cloud.domain.organizations.tenants import missing
from cloud.store.sql import Sql, Value, inserted
from cloud.values.times import moment_of, stored
from schema import ErrorKind, MachineError, origin_of
from triggers import WEBHOOK

RETENTION: Final = timedelta(days=30)
AT_ONCE: Final = 1000  # deliveries that one transaction deletes, with their attempts
TOPIC: Final = "outbox"
"""Event topic; the subject is the id of a part with a delivery that was created, tried or replayed."""
PLACEHOLDER_SENDER: Final = "machine-cloud@localhost"
"""From address of stored emails. On sending it is replaced by the sender in the mail server's settings."""
Page = Callable[[str], str]
"""Function that returns the address of a page of this cloud for a path, for links in messages."""
PAGE: Final = 50
MAX_PAGE: Final = 500


class DeliveryState(Enum):
    """State of a delivery."""

    WAITING = "waiting"  # it is being sent, or waits for its time
    DELIVERED = "delivered"
    FAILED = "failed"  # not tried again unless replayed


@dataclass(frozen=True, slots=True)
class Delivery:
    """One message to one target. `id` is the same in every attempt, so that receivers can recognize repetitions.

    `part` is the id of a part, or of an organization for messages about its training jobs.

    `headers` do not include signature and password, which every attempt adds: no secrets are stored here. `entry` is
    the digest of the trigger that created it. `tries` counts from its creation or last replay, `attempts` from its
    creation.
    """

    id: str
    part: str
    trigger: str
    event: str  # part_online ...
    entry: str
    type: str  # webhook, email or push
    value: str  # value of the notification entry
    target: str  # URL or address
    about: Mapping[str, str]  # component, method
    test: bool
    created: datetime
    method: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    state: DeliveryState = DeliveryState.WAITING
    due: datetime | None = None
    tries: int = 0
    attempts: int = 0
    number: int = 0


def shown_target(delivery: Delivery) -> str:
    """Return the target as logs and operators may see it. Only the origin of a webhook's URL is not secret."""
    return origin_of(delivery.target) if delivery.type == WEBHOOK else delivery.target


def shown_delivery(delivery: Delivery, *, whole: bool) -> Delivery:
    """Return a delivery, with its target masked unless `whole` (the caller may read the part's secrets)."""
    return delivery if whole else replace(delivery, target=shown_target(delivery), value=shown_target(delivery))


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt. `status` is the HTTP status, or 0 without an answer; `error` is empty on success.

    `number` counts from 1; 0 if it is not stored yet.
    """

    started: datetime
    duration: timedelta
    status: int
    error: str
    number: int = 0


def add(sql: Sql, delivery: Delivery) -> None:
    """Store a delivery until it is sent."""
    row: dict[str, Value] = {
        "id": delivery.id,
        "part_id": delivery.part,
        "trigger_name": delivery.trigger,
        "event": delivery.event,
        "entry": delivery.entry,
        "type": delivery.type,
        "value": delivery.value,
        "target": delivery.target,
        "about": json.dumps(dict(delivery.about)),
        "test": int(delivery.test),
        "created": stored(delivery.created),
        "method": delivery.method,
        "headers": json.dumps(delivery.headers),
        "body": delivery.body,
        "state": DeliveryState.WAITING.value,
        "due": stored(delivery.created),
    }
    inserted(sql, "deliveries", row)
    sql.notify(TOPIC, delivery.part)


# ---- the outbox

# The first attempts to one target are made in order. A retried message can be overtaken, so that none waits for hours
# behind it. For each part and target, one message is sent at a time, so that an unreachable target cannot occupy all
# senders.
_DUE: Final = """
    FROM deliveries WHERE state = 'waiting' AND due <= ? AND (type = 'email' OR ? = 0) AND (type <> 'email' OR ? = 1)
    AND NOT EXISTS (
        SELECT 1 FROM deliveries AS other
        WHERE other.part_id = deliveries.part_id AND other.target = deliveries.target AND other.state = 'waiting'
            AND ((other.tries = 0 AND other.number < deliveries.number)
                OR (other.sending = 1 AND other.due > ? AND other.number <> deliveries.number))
    )
"""


def due(sql: Sql, now: datetime, *, emails: bool) -> tuple[bool, datetime | None]:
    """Return whether an email, or any other message, can be sent now, and when the next message becomes due."""
    moment = stored(now)
    ready = sql.row(f"SELECT 1 AS one {_DUE} LIMIT 1", moment, int(emails), int(emails), moment)
    row = sql.row("SELECT MIN(due) AS next FROM deliveries WHERE state = 'waiting' AND due > ?", moment)
    later = row["next"] if row is not None else None
    return ready is not None, None if later is None else moment_of(later)


def take(sql: Sql, now: datetime, lease: timedelta, limit: int, *, emails: bool = False) -> list[Delivery]:
    """Take up to `limit` emails, or other messages, to send now; no other process gets them during `lease`."""
    moment = stored(now)
    query = f"SELECT deliveries.* {_DUE} ORDER BY due, number LIMIT ?{sql.skip_locked}"
    rows = sql.rows(query, moment, int(emails), int(emails), moment, limit)
    first = {(row["part_id"], row["target"]): row for row in reversed(rows)}
    chosen = sorted(first.values(), key=lambda row: (row["due"], row["number"]))
    for row in chosen:
        sql.run("UPDATE deliveries SET sending = 1, due = ? WHERE id = ?", stored(now + lease), row["id"])
    return [_delivery(row) for row in chosen]


def release(sql: Sql) -> int:
    """Make messages due that a process had taken before it died; return their number. No process may be sending."""
    return sql.run("UPDATE deliveries SET sending = 0, due = created WHERE state = 'waiting' AND sending = 1")


def record(sql: Sql, delivery: Delivery, attempt: Attempt, state: DeliveryState, retry_at: datetime | None) -> int:
    """Record an attempt and return its number. A WAITING delivery is retried at `retry_at`.

    A delivery that another process has delivered in the meantime stays delivered. Return 0 if the delivery was deleted.
    """
    row = sql.row("SELECT state, attempts FROM deliveries WHERE id = ?", delivery.id)
    if row is None:
        return 0
    number: int = row["attempts"] + 1
    inserted(
        sql,
        "delivery_attempts",
        {
            "delivery": delivery.id,
            "attempt": number,
            "started": stored(attempt.started),
            "duration": attempt.duration // timedelta(microseconds=1),
            "status": attempt.status,
            "error": attempt.error,
        },
    )
    new_state = DeliveryState.DELIVERED if row["state"] == DeliveryState.DELIVERED.value else state
    sql.run(
        "UPDATE deliveries SET state = ?, due = ?, sending = 0, tries = tries + 1, attempts = ? WHERE id = ?",
        new_state.value,
        stored(retry_at or attempt.started),
        number,
        delivery.id,
    )
    sql.notify(TOPIC, delivery.part)
    return number


def postpone(sql: Sql, delivery: Delivery, until: datetime) -> None:
    """Send a message at `until` instead of now, without counting an attempt."""
    sql.run("UPDATE deliveries SET due = ?, sending = 0 WHERE id = ? AND state = 'waiting'", stored(until), delivery.id)
    sql.notify(TOPIC, delivery.part)


def sent_before(sql: Sql, delivery: Delivery) -> datetime | None:
    """Return when the last older message of the same trigger to the same target was sent; None if never."""
    row = sql.row(
        """
        SELECT MAX(started) AS started FROM deliveries JOIN delivery_attempts ON delivery = deliveries.id
        WHERE part_id = ? AND target = ? AND trigger_name = ? AND type = ? AND value = ? AND state = 'delivered'
        AND created < ? AND test = 0 AND error = ''
        """,
        delivery.part,
        delivery.target,
        delivery.trigger,
        delivery.type,
        delivery.value,
        stored(delivery.created),
    )
    return None if row is None or row["started"] is None else moment_of(row["started"])


def last_error(sql: Sql, delivery: Delivery) -> str:
    """Return the error of the newest attempt for other messages of this trigger and target; "" if it succeeded."""
    row = sql.row(
        """
        SELECT error FROM deliveries JOIN delivery_attempts ON delivery = deliveries.id
        WHERE part_id = ? AND target = ? AND trigger_name = ? AND deliveries.id <> ? ORDER BY started DESC LIMIT 1
        """,
        delivery.part,
        delivery.target,
        delivery.trigger,
        delivery.id,
    )
    return "" if row is None else str(row["error"])


# ---- the log


def delivery(sql: Sql, part: str, subject: str) -> Delivery:
    """Return one delivery of a part; NOT_FOUND."""
    row = sql.row("SELECT * FROM deliveries WHERE id = ? AND part_id = ?", subject, part)
    if row is None:
        raise missing("delivery", subject)
    return _delivery(row)


def deliveries(
    sql: Sql,
    part: str,
    *,
    trigger: str = "",
    state: DeliveryState | None = None,
    before: int | None = None,
    limit: int = PAGE,
) -> list[Delivery]:
    """Return deliveries of a part with numbers below `before`, newest first."""
    conditions: list[str] = ["part_id = ?"]
    values: list[Value] = [part]
    if trigger:
        conditions.append("trigger_name = ?")
        values.append(trigger)
    if state is not None:
        conditions.append("state = ?")
        values.append(state.value)
    if before is not None:
        conditions.append("number < ?")
        values.append(before)
    rows = sql.rows(
        f"SELECT * FROM deliveries WHERE {' AND '.join(conditions)} ORDER BY number DESC LIMIT ?",
        *values,
        max(1, min(limit, MAX_PAGE)),
    )
    return [_delivery(row) for row in rows]


def latest(sql: Sql, parts: Sequence[str]) -> dict[str, Delivery]:
    """Return the newest delivery of each of these parts that has any."""
    by_part: dict[str, Delivery] = {}
    for start in range(0, len(parts), MAX_PAGE):
        batch = parts[start : start + MAX_PAGE]
        rows = sql.rows(
            f"""
            SELECT * FROM deliveries WHERE number IN (
                SELECT MAX(number) FROM deliveries WHERE part_id IN ({", ".join("?" * len(batch))}) GROUP BY part_id
            )
            """,
            *batch,
        )
        by_part |= {row["part_id"]: _delivery(row) for row in rows}
    return by_part


def newest_to(sql: Sql, part: str, kind: str, value: str) -> Delivery | None:
    """Return the newest delivery of a part or organization to one target."""
    row = sql.row(
        "SELECT * FROM deliveries WHERE part_id = ? AND type = ? AND value = ? ORDER BY number DESC LIMIT 1",
        part,
        kind,
        value,
    )
    return None if row is None else _delivery(row)


def attempts(sql: Sql, subject: str) -> list[Attempt]:
    """Return all attempts of a delivery, in order."""
    rows = sql.rows("SELECT * FROM delivery_attempts WHERE delivery = ? ORDER BY attempt", subject)
    return [
        Attempt(
            moment_of(row["started"]),
            timedelta(microseconds=row["duration"]),
            row["status"],
            row["error"],
            row["attempt"],
        )
        for row in rows
    ]


def replay(sql: Sql, part: str, subject: str, now: datetime) -> Delivery:
    """Send a delivery again now, with the same body and id. PRECONDITION while it is being sent.

    A waiting delivery is tried now instead of later; if that fails, its retry delay is as if it had not been replayed.
    """
    current = delivery(sql, part, subject)
    waiting = current.state is DeliveryState.WAITING
    changed = sql.run(
        "UPDATE deliveries SET state = 'waiting', due = ?, sending = 0, tries = ?"
        " WHERE id = ? AND (state <> 'waiting' OR (sending = 0 AND due > ?))",
        stored(now),
        current.tries if waiting else 0,
        subject,
        stored(now),
    )
    if not changed:
        raise MachineError(
            "this delivery is being sent", kind=ErrorKind.PRECONDITION, remedy="look again in a few seconds"
        )
    sql.notify(TOPIC, part)
    return delivery(sql, part, subject)


def expire(sql: Sql, now: datetime) -> int:
    """Delete up to AT_ONCE deliveries older than RETENTION that are not waiting; return their number."""
    old = "SELECT id FROM deliveries WHERE created < ? AND state <> 'waiting' ORDER BY created, number LIMIT ?"
    limit = (stored(now - RETENTION), AT_ONCE)
    sql.run(f"DELETE FROM delivery_attempts WHERE delivery IN ({old})", *limit)
    return sql.run(f"DELETE FROM deliveries WHERE id IN ({old})", *limit)


def _delivery(row: Mapping[str, Any]) -> Delivery:
    return Delivery(
        id=row["id"],
        part=row["part_id"],
        trigger=row["trigger_name"],
        event=row["event"],
        entry=row["entry"],
        type=row["type"],
        value=row["value"],
        target=row["target"],
        about=json.loads(row["about"]),
        test=bool(row["test"]),
        created=moment_of(row["created"]),
        method=row["method"],
        headers=tuple((name, value) for name, value in json.loads(row["headers"])),
        body=bytes(row["body"]),
        state=DeliveryState(row["state"]),
        due=moment_of(row["due"]),
        tries=row["tries"],
        attempts=row["attempts"],
        number=row["number"],
    )


# ---- stopped targets


@dataclass(frozen=True, slots=True)
class Stop:
    """A target that answered that it is gone. A changed trigger has another digest `entry`, which starts it again."""

    trigger: str
    target: str
    entry: str
    stopped: datetime
    reason: str


def stop(sql: Sql, delivery: Delivery, reason: str, now: datetime) -> None:
    """Create no further deliveries for the target of this one."""
    sql.run(
        """
        INSERT INTO trigger_stops (part_id, trigger_name, target, entry, stopped, reason) VALUES (?, ?, ?, ?, ?, ?)
        ON CONFLICT (part_id, trigger_name, target) DO UPDATE
            SET entry = excluded.entry, stopped = excluded.stopped, reason = excluded.reason
        """,
        delivery.part,
        delivery.trigger,
        delivery.value,
        delivery.entry,
        stored(now),
        reason,
    )


def stops(sql: Sql, part: str) -> list[Stop]:
    """Return the stopped targets of a part."""
    rows = sql.rows("SELECT * FROM trigger_stops WHERE part_id = ? ORDER BY trigger_name, target", part)
    return [
        Stop(row["trigger_name"], row["target"], row["entry"], moment_of(row["stopped"]), row["reason"]) for row in rows
    ]


def start_again(sql: Sql, part: str, triggers: Iterable[str]) -> int:
    """Resume deliveries to the targets of these triggers; return how many were stopped."""
    return sum(
        sql.run("DELETE FROM trigger_stops WHERE part_id = ? AND trigger_name = ?", part, trigger)
        for trigger in triggers
    )
