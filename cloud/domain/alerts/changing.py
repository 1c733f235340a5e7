"""Changes of rules, with what follows for their alerts, in one transaction.

Alerts continue if only the name or the notifications of a rule change. If what it means changes, they end without a
notification, and the machines are checked again.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from cloud.domain.alerts import rules, states
from cloud.domain.alerts.quieting import silences
from cloud.domain.alerts.quieting.silences import Silence
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
        silences.remove(sql, owner, subject, "")  # it would count toward their limit
        states.end_all(sql, owner, before, "the rule was deleted", now)


def silence(sql: Sql, owner: str, silenced: Silence, now: datetime) -> None:
    """Send nothing about the alerts of a rule or a machine before a time, later ones included. NOT_FOUND, EXHAUSTED."""
    if silenced.rule:
        rules.rule(sql, owner, silenced.rule)
    silences.put(sql, owner, silenced, now)
    _look(sql, owner, silenced.rule, silenced.machine, now)


def unsilence(sql: Sql, owner: str, rule: str, machine: str, now: datetime) -> None:
    """End a silence; what has begun to fire meanwhile is sent. Nothing happens if there is none."""
    silences.remove(sql, owner, rule, machine)
    _look(sql, owner, rule, machine, now)


def _look(sql: Sql, owner: str, rule: str, machine: str, now: datetime) -> None:
    if rule:
        states.look_at_all(sql, owner, rule, now)
    else:
        states.look_at_machine(sql, owner, machine, now)
    sql.notify(states.TOPIC, owner)  # pages show silences also without alerts


def _follow(sql: Sql, owner: str, before: RuleRecord | None, after: RuleRecord, now: datetime) -> None:
    if before is not None and before.rule.enabled == after.rule.enabled and before.rule.means(after.rule):
        states.look_at_all(sql, owner, after.id, now)
        return
    if before is not None:
        reason = "the rule was changed" if after.rule.enabled else "the rule was disabled"
        states.end_all(sql, owner, before, reason, now)
    if after.rule.enabled and after.rule.kind in FACTS:
        enqueue_checks(sql, owner, now)
