"""Silences of all alerts of a rule or of a machine, those that begin to fire later included."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from cloud.domain.organizations.tenants import missing
from cloud.store.sql import Sql, Value, counted, inserted
from cloud.values.limits import ALERT_SILENCES
from cloud.values.times import moment_of, stored


@dataclass(frozen=True, slots=True)
class Silence:
    """A silence of a rule or of a machine, by their ids, of which the other is empty. `by` is the name of a key."""

    rule: str
    machine: str
    until: datetime
    by: str = ""
    name: str = ""  # of the machine


def put(sql: Sql, owner: str, silence: Silence, now: datetime) -> None:
    """Store a silence, in place of the one that the rule or machine has. The rule must exist. NOT_FOUND, EXHAUSTED."""
    expire(sql, now)
    if not silence.rule and not _machine_name(sql, owner, silence.machine):
        raise missing("machine", silence.machine)
    remove(sql, owner, silence.rule, silence.machine)
    ALERT_SILENCES.check_count(counted(sql, "alert_silences", "organization_id", owner), "the organization")
    row: dict[str, Value] = {
        "organization_id": owner,
        "rule_id": silence.rule,
        "machine_id": silence.machine,
        "until": stored(silence.until),
        "author": silence.by,
    }
    inserted(sql, "alert_silences", row)


def remove(sql: Sql, owner: str, rule: str, machine: str) -> None:
    """Delete a silence, if there is one."""
    sql.run(
        "DELETE FROM alert_silences WHERE organization_id = ? AND rule_id = ? AND machine_id = ?", owner, rule, machine
    )


def silences(sql: Sql, owner: str, now: datetime) -> list[Silence]:
    """Return the silences of an organization that have not ended, the next to end first; at most ALERT_SILENCES.

    Those of machines that were deleted are left out, and those of rules have no name.
    """
    rows = sql.rows(
        "SELECT * FROM alert_silences WHERE organization_id = ? AND until > ? ORDER BY until LIMIT ?",
        *(owner, stored(now), ALERT_SILENCES.value),
    )
    listed = []
    for row in rows:
        rule, machine = row["rule_id"], row["machine_id"]
        name = "" if rule else _machine_name(sql, owner, machine)
        if rule or name:
            listed.append(Silence(rule, machine, moment_of(row["until"]), row["author"], name))
    return listed


def end_of(sql: Sql, owner: str, rule: str, machine: str, now: datetime) -> datetime | None:
    """Return when the silences end that cover an alert of a rule at a machine; None if there are none."""
    row = sql.row(
        "SELECT MAX(until) AS until FROM alert_silences WHERE organization_id = ? AND until > ? "
        "AND (rule_id, machine_id) IN ((?, ''), ('', ?))",
        *(owner, stored(now), rule, machine),
    )
    return None if row is None or row["until"] is None else moment_of(row["until"])


def expire(sql: Sql, now: datetime) -> int:
    """Delete silences that have ended."""
    return sql.run("DELETE FROM alert_silences WHERE until <= ?", stored(now))


def _machine_name(sql: Sql, owner: str, machine: str) -> str:
    row = sql.row(
        "SELECT machines.name AS name FROM machines JOIN locations ON locations.id = location_id "
        "WHERE machines.id = ? AND organization_id = ?",
        *(machine, owner),
    )
    return "" if row is None else str(row["name"])
