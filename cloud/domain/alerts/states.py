"""States of alerts in the database: the only place that stores a step of an alert's life.

The state, its events in the history, and the notices of which messages are made are written in one transaction, with
the cause. A process that is killed therefore neither loses nor repeats any of them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec
import structlog

from cloud.domain.alerts import notices
from cloud.domain.alerts.life import (
    OPEN,
    Closed,
    Event,
    Happened,
    Level,
    Output,
    Phase,
    State,
    Timing,
    due,
    is_silent,
    step,
)
from cloud.domain.alerts.quieting import silences
from cloud.domain.alerts.quieting.hours import quiet_until
from cloud.domain.alerts.rules import RuleRecord
from cloud.domain.alerts.subjects import Subject, subject_of
from cloud.domain.organizations.tenants import missing
from cloud.store.sql import Sql, Value, counted, inserted
from cloud.values.limits import ALERTS, PART_ALERTS
from cloud.values.names import new_id
from cloud.values.times import moment_of, stored

TOPIC: Final = "alerts"
"""Event topic; the subject is the id of an organization with an alert or a deadline that has changed."""
AGAIN: Final = timedelta(seconds=1)  # before a deadline that did not change anything is looked at again
FULL: Final = timedelta(minutes=1)  # before an alert that cannot fire, because too many do, is looked at again
AT_ONCE: Final = 50  # events of one alert in one upload that are recorded: the newest ones
KEPT: Final = timedelta(days=30)  # states without an alert are kept so long after their last change

_log: structlog.stdlib.BoundLogger = structlog.get_logger("cloud.alerts")


@dataclass(frozen=True, slots=True)
class AlertRecord:
    """A stored alert."""

    id: str
    organization: str
    rule_id: str
    part: str
    source: str
    state: State
    due: datetime | None
    touched: datetime
    ending: str = ""  # set by `end_all`; only `finish` reads it


def apply(sql: Sql, record: RuleRecord, subject: Subject, events: Sequence[Event], now: datetime) -> State | None:
    """Let events happen to the alert of a rule at a place, in order; return its new state.

    None if nothing is known about it and nothing has to be, if the part has too many alerts, or if it would fire and
    too many alerts of the organization do.
    """
    row = sql.row(
        "SELECT * FROM alerts WHERE organization_id = ? AND rule_id = ? AND part_id = ? AND source = ?",
        *(subject.organization, record.id, subject.part, subject.source),
    )
    alert = None if row is None else _record(row)
    if alert is not None and alert.ending:
        finish(sql, alert, now)
        alert = None
    before = State() if alert is None else alert.state
    quiet = record.rule.quiet
    muted = quiet is not None and quiet.mode == "drop" and quiet_until(quiet, now) is not None
    covered = silences.end_of(sql, subject.organization, record.id, subject.machine_id, now)
    state = before
    outputs: list[Output] = []
    try:
        for event in events:
            state, happened = step(record.rule.timing, state, event, now, muted=muted, covered=covered)
            outputs += happened
    except Exception:  # a bug that one alert meets must not block all later events
        _log.exception("an alert could not be changed", rule=record.id, part=subject.part)
        return None
    if alert is None:
        if _is_trivial(state, record):
            return None
        if subject.part and counted(sql, "alerts", "part_id", subject.part) >= PART_ALERTS.value:
            _log.warning("a part has too many alerts", part=subject.part, rule=record.id)
            return None
    if alert is not None and is_silent(state, now) and notices.forget(sql, subject.organization, record.id, alert.id):
        state = replace(state, announced=False)  # what has waited for its group is not sent
    identity = new_id() if alert is None else alert.id
    if state.phase in OPEN and before.phase not in OPEN and _open(sql, subject.organization) >= ALERTS.value:
        _log.warning("an organization has too many alerts", organization=subject.organization, rule=record.id)
        if alert is not None:
            _store(sql, identity, alert, record, subject, before, now, again=FULL)
        return None
    _store(sql, identity, alert, record, subject, state, now)
    for output in outputs[-AT_ONCE:]:
        _record_event(sql, identity, record.id, record.rule.name, subject, output, now)
        if output.notify:
            kind, value = output.happened.value, json.dumps(output.value, ensure_ascii=False)
            notices.add(sql, subject.organization, record, identity, kind, output.at, value, state.since, now)
    return state


def _open(sql: Sql, organization: str) -> int:
    row = sql.row("SELECT COUNT(*) AS count FROM alerts WHERE organization_id = ? AND open = 1", organization)
    assert row is not None
    return int(row["count"])


def _is_trivial(state: State, record: RuleRecord) -> bool:
    """Return whether a state need not be stored. Of readings, the time of the newest one has to be remembered."""
    idle = state.phase is Phase.OK and state.silenced is None
    return idle and (not record.rule.timing.patience or state.seen is None)


def _store(
    sql: Sql,
    identity: str,
    alert: AlertRecord | None,
    record: RuleRecord,
    subject: Subject,
    state: State,
    now: datetime,
    *,
    again: timedelta = AGAIN,
) -> None:
    moment = due(record.rule.timing, state)
    if moment is not None and moment <= now:
        moment = now + again
    columns: dict[str, Value] = {
        "open": int(state.phase in OPEN),
        "state": _encoded(state),
        "due": None if moment is None else stored(moment),
        "touched": stored(now),
    }
    if alert is None:
        names: dict[str, Value] = {
            "id": identity,
            "organization_id": subject.organization,
            "rule_id": record.id,
            "part_id": subject.part,
            "source": subject.source,
        }
        inserted(sql, "alerts", names | columns)
    else:
        changes = ", ".join(f"{name} = ?" for name in columns)
        sql.run(f"UPDATE alerts SET {changes} WHERE id = ?", *columns.values(), identity)
    if alert is None or alert.due != moment or alert.state.phase is not state.phase:
        sql.notify(TOPIC, subject.organization)


def _record_event(
    sql: Sql, identity: str, rule_id: str, rule: str, subject: Subject, output: Output, now: datetime
) -> None:
    """Write an event into the history, unless it is only a reminder."""
    if output.happened is Happened.REMINDED:
        return
    row: dict[str, Value] = {
        "organization_id": subject.organization,
        "alert_id": identity,
        "rule_id": rule_id,
        "rule": rule,
        "part_id": subject.part,
        "machine": subject.machine,
        "location": subject.location,
        "source": subject.source,
        "happened": stored(output.at),
        "recorded": stored(now),
        "kind": output.happened.value,
        "value": json.dumps(output.value, ensure_ascii=False),
        "detail": output.detail,
    }
    inserted(sql, "alert_events", row)
    sql.notify(TOPIC, subject.organization)


# ---- reading


def alert(sql: Sql, owner: str, subject: str) -> AlertRecord:
    """Return one alert of an organization; NOT_FOUND."""
    row = sql.row("SELECT * FROM alerts WHERE id = ? AND organization_id = ? AND ending = ''", subject, owner)
    if row is None:
        raise missing("alert", subject)
    return _record(row)


def owner_of(sql: Sql, subject: str) -> tuple[str, str]:
    """Return the organization and the part of an alert; NOT_FOUND."""
    row = sql.row("SELECT organization_id, part_id FROM alerts WHERE id = ? AND ending = ''", subject)
    if row is None:
        raise missing("alert", subject)
    return row["organization_id"], row["part_id"]


class _Brief(msgspec.Struct):
    phase: str
    changed: int = 0


@dataclass(frozen=True, slots=True)
class OpenAlert:
    """An alert that fires or was acknowledged, in short. `moment` is when that began, as it is stored."""

    id: str
    rule_id: str
    part: str
    fires: bool
    moment: int


def open_alerts(sql: Sql, owner: str) -> list[OpenAlert]:
    """Return the alerts of an organization that fire or were acknowledged, at most ALERTS; decodes no whole state."""
    query = "SELECT id, rule_id, part_id, state FROM alerts WHERE organization_id = ? AND open = 1 LIMIT ?"
    alerts = []
    for row in sql.rows(query, owner, ALERTS.value):
        brief = _briefs.decode(row["state"])
        fires = brief.phase == Phase.FIRING.value
        alerts.append(OpenAlert(row["id"], row["rule_id"], row["part_id"], fires, brief.changed))
    return alerts


def firing(sql: Sql, owner: str) -> list[tuple[str, str]]:
    """Return rule and part of each alert of an organization that fires, at most ALERTS; decodes no state."""
    rows = sql.rows(
        "SELECT rule_id, part_id FROM alerts WHERE organization_id = ? AND open = 1 AND state LIKE ? LIMIT ?",
        owner,
        f'%"phase":"{Phase.FIRING.value}"%',  # quotes within other values are escaped
        ALERTS.value,
    )
    return [(row["rule_id"], row["part_id"]) for row in rows]


def open_of_rules(sql: Sql, owner: str) -> dict[str, int]:
    """Return how many alerts each rule of an organization has that fire or were acknowledged."""
    query = "SELECT rule_id, COUNT(*) AS count FROM alerts WHERE organization_id = ? AND open = 1 GROUP BY rule_id"
    return {row["rule_id"]: row["count"] for row in sql.rows(query, owner)}


def of_part(sql: Sql, owner: str, part: str) -> list[AlertRecord]:
    """Return all states of an organization at a part that have not ended, at most PART_ALERTS."""
    query = "SELECT * FROM alerts WHERE part_id = ? AND organization_id = ? AND ending = '' LIMIT ?"
    return [_record(row) for row in sql.rows(query, part, owner, PART_ALERTS.value)]


def next_due(sql: Sql) -> datetime | None:
    """Return the next deadline of any alert."""
    row = sql.row("SELECT MIN(due) AS due FROM alerts WHERE due IS NOT NULL")
    return None if row is None or row["due"] is None else moment_of(row["due"])


def take_due(sql: Sql, now: datetime, limit: int) -> list[AlertRecord]:
    """Return alerts whose deadline has come, which this transaction must change; replicas take others."""
    rows = sql.rows(
        f"SELECT * FROM alerts WHERE due IS NOT NULL AND due <= ? ORDER BY due LIMIT ?{sql.skip_locked}",
        stored(now),
        limit,
    )
    return [_record(row) for row in rows]


def postpone(sql: Sql, subject: str, until: datetime) -> None:
    """Look at an alert later again."""
    sql.run("UPDATE alerts SET due = ? WHERE id = ?", stored(until), subject)


def look_at_all(sql: Sql, owner: str, rule: str, now: datetime) -> None:
    """Look at all alerts of a rule at once, because their next deadlines may be others."""
    if sql.run("UPDATE alerts SET due = ? WHERE organization_id = ? AND rule_id = ?", stored(now), owner, rule):
        sql.notify(TOPIC, owner)


def look_at_machine(sql: Sql, owner: str, machine: str, now: datetime) -> None:
    """Look at all alerts of a machine at once, as `look_at_all` does for a rule."""
    parts = "SELECT id FROM parts WHERE machine_id = ?"
    condition = f"organization_id = ? AND part_id IN ({parts})"
    if sql.run(f"UPDATE alerts SET due = ? WHERE {condition}", stored(now), owner, machine):
        sql.notify(TOPIC, owner)


# ---- ends


def end_all(sql: Sql, owner: str, record: RuleRecord, reason: str, now: datetime) -> None:
    """End all alerts of a rule, without notifications. They are in no list any more.

    There may be thousands, during which other writers would wait: `finish` writes their history later.
    """
    ending = json.dumps([reason, record.rule.name], ensure_ascii=False)
    count = sql.run(
        "UPDATE alerts SET open = 0, due = ?, ending = ? WHERE organization_id = ? AND rule_id = ? AND ending = ''",
        *(stored(now), ending, owner, record.id),
    )
    if count:
        notices.forget_rule(sql, owner, record.id)
        sql.notify(TOPIC, owner)


def finish(sql: Sql, alert: AlertRecord, now: datetime) -> None:
    """Record in the history that `end_all` has ended an alert, and forget its state."""
    reason, rule = json.loads(alert.ending)
    close(sql, alert, rule, reason, now)


def close(sql: Sql, alert: AlertRecord, rule: str, reason: str, now: datetime) -> None:
    """End an alert that has no meaning any more, without a notification, and forget its state."""
    if alert.state.phase in OPEN:
        subject, _ = subject_of(sql, alert.organization, alert.part, alert.source)
        for output in step(Timing(), alert.state, Closed(reason), now)[1]:
            _record_event(sql, alert.id, alert.rule_id, rule, subject, output, now)
    drop(sql, alert)


def drop(sql: Sql, alert: AlertRecord) -> None:
    """Forget the state of an alert, and what people have not been notified of."""
    notices.forget(sql, alert.organization, alert.rule_id, alert.id)
    sql.run("DELETE FROM alerts WHERE id = ?", alert.id)
    sql.notify(TOPIC, alert.organization)


def expire(sql: Sql, now: datetime) -> int:
    """Delete states without an alert that have not changed for KEPT, and let all listeners look at their deadlines.

    The clock may have been set in the meantime, which no deadline notices. Deadlines that lie further ahead than one
    can have been set come now.
    """
    count = sql.run("DELETE FROM alerts WHERE touched < ? AND open = 0 AND due IS NULL", stored(now - KEPT))
    count += silences.expire(sql, now)
    moment = stored(now)
    ahead = sql.run("UPDATE alerts SET due = ?, touched = ? WHERE touched > ?", moment, moment, stored(now + AGAIN))
    ahead += sql.run("UPDATE alert_notices SET due = ? WHERE due > ?", moment, stored(now + notices.LONGEST))
    sql.notify(TOPIC, "")
    return count + ahead


# ---- JSON

_briefs: Final = msgspec.json.Decoder(_Brief)


def _encoded(state: State) -> str:
    values = {name: getattr(state, name) for name in State.__slots__}
    row: dict[str, Any] = {}
    for name, value in values.items():
        if value is None or value is False or value == "":
            continue
        row[name] = stored(value) if isinstance(value, datetime) else value.value if hasattr(value, "name") else value
    return msgspec.json.encode(row).decode()


def _decoded(text: str) -> State:
    row = msgspec.json.decode(text)
    times = {name: moment_of(row[name]) for name in _TIMES if name in row}
    level = Level(row["level"]) if "level" in row else None
    return State(**{**row, **times, "phase": Phase(row["phase"]), "level": level})


_TIMES: Final = ("since", "changed", "seen", "heard", "calm", "silenced", "covered", "reminded")


def _record(row: Mapping[str, Any]) -> AlertRecord:
    return AlertRecord(
        row["id"],
        row["organization_id"],
        row["rule_id"],
        row["part_id"],
        row["source"],
        _decoded(row["state"]),
        None if row["due"] is None else moment_of(row["due"]),
        moment_of(row["touched"]),
        row["ending"],
    )
