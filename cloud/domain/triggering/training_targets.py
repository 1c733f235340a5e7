"""Who is notified when a training job of an organization has ended: webhooks and email addresses."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from cloud.domain.triggering import deliveries
from cloud.domain.triggering.deliveries import Attempt, Delivery
from cloud.store.sql import Sql, Value, counted, inserted
from cloud.values.limits import TRAINING_TARGETS
from cloud.values.times import moment_of, stored
from schema import ConfigError, ConfigErrors, ErrorKind, MachineError
from triggers import EMAIL, OWNERS, WEBHOOK, Notification, is_address

TYPES: Final = (WEBHOOK, EMAIL)


@dataclass(frozen=True, slots=True)
class MessageTarget:
    """A webhook or an email address. `secret` signs webhooks."""

    type: str
    value: str
    secret: str
    created: datetime


@dataclass(frozen=True, slots=True)
class Used:
    """A target, with the newest message to it and its last attempt; None if there is none yet."""

    target: MessageTarget
    delivery: Delivery | None
    attempt: Attempt | None


def add(sql: Sql, owner: str, kind: str, value: str, secret: str, now: datetime) -> None:
    """Notify a target of the ends of all jobs of an organization; a target that exists gets the secret.

    INVALID for a type, URL, address or secret that cannot be used, EXHAUSTED if there are too many.
    """
    check_target(kind, value, secret)
    if get(sql, owner, kind, value) is not None:
        sql.run(
            "UPDATE training_notifications SET secret = ? WHERE organization_id = ? AND type = ? AND value = ?",
            secret,
            owner,
            kind,
            value,
        )
        return
    TRAINING_TARGETS.check_count(count(sql, owner), "the organization")
    row: dict[str, Value] = {
        "organization_id": owner,
        "type": kind,
        "value": value,
        "secret": secret,
        "created": stored(now),
    }
    inserted(sql, "training_notifications", row)


def check_target(kind: str, value: str, secret: str) -> None:
    """Raise INVALID for a type, URL, address or secret that cannot be used."""
    if kind not in TYPES:
        raise MachineError(
            f"type={kind[:40]!r} is not a type of notification",
            kind=ErrorKind.INVALID,
            remedy=f"use {' or '.join(TYPES)}",
        )
    if value == OWNERS:
        raise MachineError(
            f"value={OWNERS!r} is for triggers of machines", kind=ErrorKind.INVALID, remedy="write an email address"
        )
    if kind == EMAIL and not is_address(value):
        raise MachineError(
            f"{value[:80]!r} is not an email address",
            kind=ErrorKind.INVALID,
            remedy="write an address such as ann@example.com",
        )
    try:
        Notification(type="webhook" if kind == WEBHOOK else "email", value=value, secret=secret)
    except (ConfigError, ConfigErrors) as error:
        raise MachineError(str(error), kind=ErrorKind.INVALID) from None


def remove(sql: Sql, owner: str, kind: str, value: str) -> None:
    """Notify a target no more; NOT_FOUND. Messages that wait are not sent."""
    removed = sql.run(
        "DELETE FROM training_notifications WHERE organization_id = ? AND type = ? AND value = ?", owner, kind, value
    )
    if not removed:
        raise MachineError(f"the organization has no such {kind[:40]} notification", kind=ErrorKind.NOT_FOUND)


def count(sql: Sql, owner: str) -> int:
    """Return the number of targets of an organization."""
    return counted(sql, "training_notifications", "organization_id", owner)


def get(sql: Sql, owner: str, kind: str, value: str) -> MessageTarget | None:
    """Return one target; None if it does not exist."""
    return next((target for target in all_of(sql, owner) if (target.type, target.value) == (kind, value)), None)


def all_of(sql: Sql, owner: str) -> list[MessageTarget]:
    """Return the targets of an organization, oldest first."""
    rows = sql.rows("SELECT * FROM training_notifications WHERE organization_id = ? ORDER BY created, value", owner)
    return [MessageTarget(row["type"], row["value"], row["secret"], moment_of(row["created"])) for row in rows]


def used(sql: Sql, owner: str) -> list[Used]:
    """Return the targets of an organization with the newest message to each."""
    result = []
    for target in all_of(sql, owner):
        newest = deliveries.newest_to(sql, owner, target.type, target.value)
        attempts = deliveries.attempts(sql, newest.id) if newest is not None else []
        result.append(Used(target, newest, attempts[-1] if attempts else None))
    return result
