"""Reports of agents: the newest of each part, and the outcomes of its updates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from cloud.domain.machines import listed
from cloud.domain.machines.machines import note_gone, note_seen
from cloud.domain.machines.machines import part as part_of
from cloud.domain.machines.reported import UPDATES
from cloud.domain.releases import agent_report, rollouts
from cloud.domain.releases.agent_report import Program, Report, moment
from cloud.domain.triggering.queue import UpdateEnded, enqueue
from cloud.store.sql import Sql
from cloud.values.times import moment_of, stored
from uplink.releases import AGENT, SERVER

TOPIC: Final = "agent report"
"""Topic of events about reports; the subject is the part."""

OUTCOMES: Final = 100
"""Outcomes that are kept of a part and a program, the newest."""

RECENT: Final = timedelta(days=1)
"""Outcomes that ended longer ago cause no alerts."""

_MAX_TEXT: Final = 500  # characters of a stored reason


@dataclass(frozen=True, slots=True)
class Received:
    """The newest report of a part."""

    received: datetime
    report: str  # JSON; `agent_report.report_of` reads it


@dataclass(frozen=True, slots=True)
class RecordedOutcome:
    """How an update ended. `ended` is by the clock of the machine, `received` by that of the cloud."""

    program: str
    version: str
    version_from: str
    digest: str
    result: str
    reason: str
    ended: datetime
    received: datetime


def store(sql: Sql, subject: str, report: Report, now: datetime) -> None:
    """Store a report as the newest of a part, with its outcomes, and stop rollouts that fail."""
    record = part_of(sql, subject)
    sql.run(
        "INSERT INTO agent_reports (part_id, received, report) VALUES (?, ?, ?) "
        "ON CONFLICT (part_id) DO UPDATE SET received = excluded.received, report = excluded.report",
        subject,
        stored(now),
        msgspec.json.encode(report).decode(),
    )
    short = agent_report.summary(report)
    note_gone(sql, subject, gone=False)
    note_seen(sql, subject, now, {**record.reported, UPDATES: short} if record.reported.get(UPDATES) != short else None)
    for program, its_report in ((AGENT, report.agent), (SERVER, report.server)):
        _store_program(sql, subject, program, its_report)
        if not its_report.history:
            continue
        before = {(entry.digest, stored(entry.ended)) for entry in outcomes(sql, subject, program)}
        new = [row for entry in its_report.history if (row := _row(subject, program, entry, now)) is not None]
        new = [row for row in new if (row[2], row[3]) not in before]
        sql.many(_INSERT, new[-OUTCOMES:])
        if new:
            listed.look(sql, record.machine_id)
            _keep_newest(sql, subject, program)
            _announce(sql, subject, max(new, key=lambda row: row[3]), now)
        for version in sorted({str(row[5]) for row in new if row[7] == rollouts.ROLLED_BACK}):
            rollouts.stop_if_failing(sql, record.organization_id, program, version, now)
    sql.notify(TOPIC, subject)


def newest(sql: Sql, subject: str) -> Received | None:
    """Return the newest report of a part, or None."""
    row = sql.row("SELECT received, report FROM agent_reports WHERE part_id = ?", subject)
    return None if row is None else Received(moment_of(row["received"]), row["report"])


def outcomes(sql: Sql, subject: str, program: str = "") -> list[RecordedOutcome]:
    """Return the outcomes of a part, newest first, of both programs or one."""
    rows = sql.rows(
        f"""
        SELECT program, version, version_from, digest, result, reason, ended, received FROM agent_outcomes
        WHERE part_id = ? {"AND program = ?" if program else ""} ORDER BY received DESC, ended DESC
        """,
        subject,
        *([program] if program else []),
    )
    return [
        RecordedOutcome(
            row["program"],
            row["version"],
            row["version_from"],
            row["digest"],
            row["result"],
            row["reason"],
            moment_of(row["ended"]),
            moment_of(row["received"]),
        )
        for row in rows
    ]


def progress(sql: Sql, owner: str, program: str, version: str, limit: int) -> list[rollouts.RolloutProgress]:
    """Return how the machines of an organization fare with a version: those with an outcome, or that install it."""
    rows = sql.rows(
        """
        SELECT parts.id, parts.name, machines.name AS machine, locations.name AS place, version, target, step, since
        FROM agent_programs JOIN parts ON parts.id = agent_programs.part_id JOIN machines ON machines.id = machine_id
            JOIN locations ON locations.id = location_id
        WHERE organization_id = ? AND program = ? ORDER BY machines.name, parts.name
        """,
        owner,
        program,
    )
    latest = _latest_outcomes(sql, owner, program, version)
    entries = []
    for row in rows:
        outcome = latest.get(row["id"])
        if row["target"] == version:
            state, reason = row["step"] or "waiting", ""
            since = None if row["since"] is None else moment_of(row["since"])
        elif outcome is not None:
            state, reason, since = outcome.result, outcome.reason, outcome.received
        elif row["version"] == version:
            state, reason, since = "updated", "", None
        else:
            continue
        identity = (row["id"], row["name"], row["machine"], row["place"])
        entries.append(rollouts.RolloutProgress(*identity, state, row["version"], reason, since))
        if len(entries) == limit:
            break
    return entries


def _latest_outcomes(sql: Sql, owner: str, program: str, version: str) -> dict[str, RecordedOutcome]:
    rows = sql.rows(
        """
        SELECT agent_outcomes.part_id, version_from, digest, result, reason, ended, agent_outcomes.received
        FROM agent_outcomes JOIN parts ON parts.id = agent_outcomes.part_id JOIN machines ON machines.id = machine_id
            JOIN locations ON locations.id = location_id
        WHERE organization_id = ? AND program = ? AND version = ? ORDER BY agent_outcomes.received, ended
        """,
        owner,
        program,
        version,
    )
    return {
        row["part_id"]: RecordedOutcome(
            program,
            version,
            row["version_from"],
            row["digest"],
            row["result"],
            row["reason"],
            moment_of(row["ended"]),
            moment_of(row["received"]),
        )
        for row in rows
    }


_INSERT: Final = (
    "INSERT INTO agent_outcomes (part_id, program, digest, ended, received, version, version_from, result, reason) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (part_id, program, digest, ended) DO NOTHING"
)


def _store_program(sql: Sql, subject: str, program: str, report: Program) -> None:
    since = moment(report.step_since)
    texts = [text[:_MAX_TEXT] for text in (report.version, report.target, report.step)]
    sql.run(
        "INSERT INTO agent_programs (part_id, program, version, target, step, since) VALUES (?, ?, ?, ?, ?, ?) "
        "ON CONFLICT (part_id, program) DO UPDATE SET version = excluded.version, target = excluded.target, "
        "step = excluded.step, since = excluded.since",
        subject,
        program,
        *texts,
        None if since is None else stored(since),
    )


def _announce(sql: Sql, subject: str, row: Sequence[Any], now: datetime) -> None:
    """Queue the newest outcome of a report for alerts, unless it is old: a new agent reports its whole history."""
    _, program, _, ended, _, version, _, result, reason = row
    if result != "superseded" and now - moment_of(ended) < RECENT:
        enqueue(sql, subject, UpdateEnded(program, version, result, reason), now)


def _row(subject: str, program: str, outcome: agent_report.AgentUpdateOutcome, now: datetime) -> Sequence[Any] | None:
    """Return the row of an outcome; None if its time is outside the range of dates."""
    ended = moment(outcome.ended)
    if ended is None:
        return None
    times = (outcome.sha256, stored(ended), stored(now))
    result, reason = outcome.result[:40], outcome.reason[:_MAX_TEXT]
    return (subject, program, *times, outcome.version_to, outcome.version_from, result, reason)


def _keep_newest(sql: Sql, subject: str, program: str) -> None:
    surplus = outcomes(sql, subject, program)[OUTCOMES:]
    sql.many(
        "DELETE FROM agent_outcomes WHERE part_id = ? AND program = ? AND digest = ? AND ended = ?",
        [(subject, program, outcome.digest, stored(outcome.ended)) for outcome in surplus],
    )
