"""Notices: changes of which people are to be notified. Those of a rule that come together make one message.

A notice waits for the group of its rule, and for the end of quiet hours that delay. Making the message, its deliveries
to all targets, and deleting the notices are one transaction.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import quote

from cloud.domain.alerts.quieting.hours import quiet_until
from cloud.domain.alerts.rule import MAX_GROUP
from cloud.domain.alerts.rules import RuleRecord, rule
from cloud.domain.alerts.subjects import subject_of
from cloud.domain.alerts.wording import SHOWN, Entry, body_of, line_of, shown_value, subject_of_message
from cloud.domain.organizations.tenants import organization
from cloud.domain.triggering import deliveries
from cloud.domain.triggering.alert_targets import ALERT, of_rule
from cloud.domain.triggering.deliveries import PLACEHOLDER_SENDER, Delivery, Page
from cloud.domain.triggering.training_targets import MessageTarget
from cloud.store.sql import Row, Sql, Value, inserted
from cloud.values.names import new_id
from cloud.values.times import moment_of, stored
from schema import MachineError
from triggers import WEBHOOK, alert_request, mail_about_alerts

LONGEST: Final = timedelta(days=9, seconds=MAX_GROUP)
"""No notice waits longer: quiet hours that follow each other for a week, and the group."""
TOGETHER: Final = 500  # notices in one message; more make another one


def add(
    sql: Sql,
    owner: str,
    record: RuleRecord,
    alert: str,
    kind: str,
    happened: datetime,
    value: str,
    since: datetime | None,
    now: datetime,
) -> None:
    """Store a notice, in place of one of the same alert that waits. It joins an open group of the rule or opens one."""
    due = _due(sql, owner, record, now)
    before = sql.row(
        "SELECT MIN(due) AS due FROM alert_notices WHERE organization_id = ? AND rule_id = ? AND alert_id = ?",
        *(owner, record.id, alert),
    )
    if before is not None and before["due"] is not None:
        due = min(due, moment_of(before["due"]))
        forget(sql, owner, record.id, alert)
    row: dict[str, Value] = {
        "organization_id": owner,
        "rule_id": record.id,
        "alert_id": alert,
        "kind": kind,
        "happened": stored(happened),
        "value": value,
        "since": None if since is None else stored(since),
        "due": stored(due),
    }
    inserted(sql, "alert_notices", row)


def _due(sql: Sql, owner: str, record: RuleRecord, now: datetime) -> datetime:
    row = sql.row(
        "SELECT MIN(due) AS due FROM alert_notices WHERE organization_id = ? AND rule_id = ? AND due > ?",
        *(owner, record.id, stored(now)),
    )
    moment = now + timedelta(seconds=record.rule.group_seconds)
    if row is not None and row["due"] is not None:
        moment = min(moment, moment_of(row["due"]))
    quiet = record.rule.quiet
    end = quiet_until(quiet, moment) if quiet is not None and quiet.mode == "delay" else None
    return moment if end is None else end


def forget(sql: Sql, owner: str, rule_id: str, alert: str) -> int:
    """Delete the notices of an alert that still wait; return their number."""
    return sql.run(
        "DELETE FROM alert_notices WHERE organization_id = ? AND rule_id = ? AND alert_id = ?", owner, rule_id, alert
    )


def forget_rule(sql: Sql, owner: str, rule_id: str) -> None:
    """Delete the notices of a rule that still wait."""
    sql.run("DELETE FROM alert_notices WHERE organization_id = ? AND rule_id = ?", owner, rule_id)


def next_due(sql: Sql) -> datetime | None:
    """Return when the next message is to be made."""
    row = sql.row("SELECT MIN(due) AS due FROM alert_notices")
    return None if row is None or row["due"] is None else moment_of(row["due"])


def flush(sql: Sql, now: datetime, page: Page) -> bool:
    """Make the message of the rule whose notices are due first, if any; return whether there was one."""
    head = sql.row(
        "SELECT organization_id, rule_id FROM alert_notices WHERE due <= ? ORDER BY due, number LIMIT 1"
        f"{sql.skip_locked}",
        stored(now),
    )
    if head is None:
        return False
    owner, rule_id = head["organization_id"], head["rule_id"]
    rows = sql.rows(
        "SELECT * FROM alert_notices WHERE organization_id = ? AND rule_id = ? AND due <= ? "
        "ORDER BY due, number LIMIT ?",
        *(owner, rule_id, stored(now), TOGETHER),
    )
    sql.many("DELETE FROM alert_notices WHERE number = ?", [(row["number"],) for row in rows])
    try:
        record = rule(sql, owner, rule_id)
    except MachineError:
        return True  # it was deleted
    entries = _entries(sql, owner, rows, page)
    for delivery in messages(sql, owner, record, entries, of_rule(sql, owner, rule_id), now, page):
        deliveries.add(sql, delivery)
    return True


def _entries(sql: Sql, owner: str, rows: Sequence[Row], page: Page) -> list[Entry]:
    """Return the last notice of each alert, in the order of the first ones."""
    last: dict[str, Row] = {}
    for row in sorted(rows, key=lambda row: int(row["number"])):
        last[row["alert_id"]] = row
    entries = []
    for alert, row in last.items():
        place_row = sql.row("SELECT part_id, source FROM alerts WHERE id = ?", alert)
        if place_row is None:
            continue  # the rule or the machine is gone
        subject, _ = subject_of(sql, owner, place_row["part_id"], place_row["source"])
        entries.append(
            Entry(
                alert=alert,
                state=row["kind"],
                machine_id=subject.machine_id,
                machine=subject.machine,
                location=subject.location,
                component=subject.source,
                value=json.loads(row["value"]),
                since=None if row["since"] is None else moment_of(row["since"]),
                at=moment_of(row["happened"]),
                link=page(f"/alerts/{quote(alert)}"),
            )
        )
    return entries


def messages(
    sql: Sql,
    owner: str,
    record: RuleRecord,
    entries: Sequence[Entry],
    targets: Sequence[MessageTarget],
    now: datetime,
    page: Page,
    *,
    test: bool = False,
) -> list[Delivery]:
    """Return a delivery to each target, about these alerts; none if there are no alerts."""
    if not entries or not targets:
        return []
    name, chosen, link = organization(sql, owner).name, record.rule, page("/alerts")
    threshold = shown_value(chosen.condition.threshold) if chosen.condition is not None else ""
    lines = [line_of(chosen.message, chosen.name, threshold, entry) for entry in entries[:SHOWN]]
    body = body_of(record.id, chosen.name, {"id": owner, "name": name}, lines, entries, link)
    if test:
        body["test"] = True
    created = []
    for target in targets:
        common: dict[str, Any] = {
            "id": new_id(),
            "part": owner,
            "trigger": record.id,
            "event": ALERT,
            "entry": "",
            "type": target.type,
            "value": target.value,
            "target": target.value,
            "about": _about(entries),
            "test": test,
            "created": now,
        }
        if target.type == WEBHOOK:
            request = alert_request(target.value, owner, name, body)
            created.append(Delivery(method=request.method, headers=request.headers, body=request.body, **common))
            continue
        shown = lines + ([f"and {len(entries) - SHOWN} more"] if len(entries) > SHOWN else [])
        message = mail_about_alerts(
            subject_of_message(chosen.name, lines, entries),
            [("Rule", chosen.name), ("Organization", name)],
            shown,
            common["id"],
            now,
            sender=PLACEHOLDER_SENDER,
            recipient=target.value,
            link=entries[0].link if len(entries) == 1 else link,
        )
        created.append(Delivery(method="", headers=(), body=message.as_bytes(), **common))
    return created


def _about(entries: Sequence[Entry]) -> Mapping[str, str]:
    return {"alert": entries[0].alert} if len(entries) == 1 else {"alerts": str(len(entries))}
