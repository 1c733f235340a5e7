"""Changes of rules, with what follows for their alerts, in one transaction.

Alerts continue if only the name or the notifications of a rule change. If what it means changes, they end without a
notification, and the machines are checked again.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from cloud.domain.alerts import notices, rules, states
from cloud.domain.alerts.rule import Kind, Rule
from cloud.domain.alerts.rules import RuleRecord
from cloud.domain.triggering.queue import enqueue_checks
from cloud.store.sql import Sql

FACTS: Final = frozenset({Kind.OFFLINE, Kind.HEALTH})
"""Kinds of rules about what the cloud knows at any time."""


def change(sql: Sql, owner: str, subject: str, new: Rule, now: datetime) -> str:
    """Create a rule, or change the one with the id `subject`; return its id. See `rules.save` for its errors."""
    before = rules.rule(sql, owner, subject) if subject else None
    identity = rules.save(sql, owner, subject, new, now)
    _follow(sql, owner, before, rules.rule(sql, owner, identity), now)
    return identity


def remove(sql: Sql, owner: str, subject: str, now: datetime) -> None:
    """Delete a rule, or return a built-in one to what is built in; NOT_FOUND."""
    before = rules.rule(sql, owner, subject)
    rules.delete(sql, owner, subject)
    if before.builtin:
        _follow(sql, owner, before, rules.rule(sql, owner, subject), now)
    else:
        states.close(sql, before, states.of_rule(sql, owner, subject), "the rule was deleted", now)
        notices.forget_rule(sql, owner, subject)


def _follow(sql: Sql, owner: str, before: RuleRecord | None, after: RuleRecord, now: datetime) -> None:
    same = before is not None and before.rule.enabled == after.rule.enabled and before.rule.means(after.rule)
    alerts = states.of_rule(sql, owner, after.id) if before is not None else []
    if same:
        for alert in alerts:
            states.postpone(sql, alert.id, now)  # its next deadline may be another one
        if alerts:
            sql.notify(states.TOPIC, owner)
        return
    if before is not None:
        reason = "the rule was changed" if after.rule.enabled else "the rule was disabled"
        states.close(sql, before, alerts, reason, now)
    if after.rule.enabled and after.rule.kind in FACTS:
        enqueue_checks(sql, owner, now)
