"""Who is notified of alerts: the targets of a rule, or else those of its organization."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Final

from cloud.domain.triggering.training_targets import MessageTarget, check_target
from cloud.store.sql import Sql, Value, counted, inserted
from cloud.values.limits import ALERT_TARGETS
from cloud.values.times import moment_of, stored
from schema import ErrorKind, MachineError
from triggers import EMAIL, Notification

ALERT: Final = "alert"
"""Event type of deliveries about alerts. Their `part` is the organization, and their `trigger` the id of the rule."""


def add(sql: Sql, owner: str, kind: str, value: str, secret: str, now: datetime) -> None:
    """Notify a target of the alerts of all rules of an organization that have no targets of their own.

    A target that exists gets the secret. INVALID for a type, URL, address or secret that cannot be used, EXHAUSTED if
    there are too many.
    """
    check_target(kind, value, secret)
    changed = sql.run(
        "UPDATE alert_targets SET secret = ? WHERE organization_id = ? AND type = ? AND value = ?",
        *(secret, owner, kind, value),
    )
    if changed:
        return
    ALERT_TARGETS.check_count(counted(sql, "alert_targets", "organization_id", owner), "the organization")
    row: dict[str, Value] = {
        "organization_id": owner,
        "type": kind,
        "value": value,
        "secret": secret,
        "created": stored(now),
    }
    inserted(sql, "alert_targets", row)


def remove(sql: Sql, owner: str, kind: str, value: str) -> None:
    """Notify a target of the organization no more; NOT_FOUND. Messages that wait are not sent."""
    removed = sql.run(
        "DELETE FROM alert_targets WHERE organization_id = ? AND type = ? AND value = ?", owner, kind, value
    )
    if not removed:
        raise MachineError(f"the organization has no such {kind[:40]} target", kind=ErrorKind.NOT_FOUND)


def of_organization(sql: Sql, owner: str) -> list[MessageTarget]:
    """Return the targets of an organization, oldest first."""
    rows = sql.rows("SELECT * FROM alert_targets WHERE organization_id = ? ORDER BY created, value", owner)
    return [MessageTarget(row["type"], row["value"], row["secret"], moment_of(row["created"])) for row in rows]


def of_rule(sql: Sql, owner: str, rule: str) -> list[MessageTarget]:
    """Return the targets that a rule notifies now: its own, or else those of the organization."""
    row = sql.row("SELECT document, created FROM alert_rules WHERE organization_id = ? AND id = ?", owner, rule)
    own = [] if row is None else json.loads(row["document"]).get("targets", [])
    if not own or row is None:
        return of_organization(sql, owner)
    created = moment_of(row["created"])
    return [MessageTarget(each["type"], each["value"], each.get("secret", ""), created) for each in own]


def current(sql: Sql, owner: str, rule: str, kind: str, value: str) -> Notification | None:
    """Return a target of a rule as it is now; None if it was removed."""
    for target in of_rule(sql, owner, rule):
        if (target.type, target.value) == (kind, value):
            return Notification(type="email" if kind == EMAIL else "webhook", value=value, secret=target.secret)
    return None
