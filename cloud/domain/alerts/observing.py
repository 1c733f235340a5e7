"""What the cloud receives, as observations of the rules that it concerns.

Presence and health are facts about a part that are in the database: an event says only that a part is to be looked at,
so that repeated and late events do no harm. Everything else is in the event.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import structlog

from cloud.domain.alerts.deadlines import leave
from cloud.domain.alerts.life import Level, Observed
from cloud.domain.alerts.reading import keys_of, level_of, value_of
from cloud.domain.alerts.rule import Condition, Kind
from cloud.domain.alerts.rules import RuleRecord, applies, enabled
from cloud.domain.alerts.states import apply
from cloud.domain.alerts.subjects import Subject, subject_at
from cloud.domain.data.readings import NewReading
from cloud.domain.data.sources import last_segment
from cloud.domain.machines.machines import part
from cloud.domain.machines.reported import problem_count, rejected
from cloud.domain.organizations.tenants import organization
from cloud.domain.triggering.queue import CheckDue, Queued, UpdateEnded
from cloud.store.sql import Sql
from cloud.values.times import Clock
from schema import ErrorKind, MachineError, shortened
from triggers import Ingested, TrainingEnded, Where

MAX_READINGS: Final = 1000
"""Readings of one upload that are compared with each rule: the newest ones. Others are as if they came too late."""
MAX_REASON: Final = 200  # characters

_log: structlog.stdlib.BoundLogger = structlog.get_logger("cloud.alerts")
_NO_TIME: Final = datetime(1970, 1, 1, tzinfo=UTC)


Observations = tuple[RuleRecord, Subject, Sequence[Observed]]


class Observer:
    """Observes the events of the queue, in the transaction that takes them from it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def __call__(self, sql: Sql, queued: Queued, place: Where | None) -> None:
        """Let an event happen to all alerts that it concerns. `place` is that of the part, if it is about one."""
        now = self._clock()
        if isinstance(queued.event, CheckDue) and place is not None:
            leave(sql, place, now)
        for record, subject, observed in _observations(sql, queued, place):
            apply(sql, record, subject, observed, now)


def _observations(sql: Sql, queued: Queued, place: Where | None) -> Iterator[Observations]:
    event = queued.event
    if isinstance(event, TrainingEnded):
        yield from _of_training(sql, queued.part, event, queued.happened)
    elif place is None:
        return
    elif isinstance(event, CheckDue):
        yield from _of_facts(sql, place, queued.happened)
    elif isinstance(event, UpdateEnded):
        failed = event.result != "updated"
        value = shortened(f"{event.version}: {event.reason or event.result}", MAX_REASON)
        level = Level.BAD if failed else Level.GOOD
        for record in _chosen(sql, place, Kind.UPDATE):
            yield record, subject_at(place, event.program), [Observed(queued.happened, level, value)]
    elif isinstance(event, Ingested) and event.readings:
        yield from _of_readings(sql, place, event)


def _chosen(sql: Sql, place: Where, *kinds: Kind) -> list[RuleRecord]:
    records = enabled(sql, place.organization_id, *kinds)
    return [record for record in records if applies(sql, record.rule, place)]


def _of_training(sql: Sql, owner: str, event: TrainingEnded, at: datetime) -> Iterator[Observations]:
    if event.state not in ("failed", "completed"):
        return
    try:
        organization(sql, owner)
    except MachineError as error:
        if error.kind is not ErrorKind.NOT_FOUND:
            raise
        return  # it was deleted
    failed = event.state == "failed"
    value = shortened(event.error, MAX_REASON) if failed else event.model_version
    for record in enabled(sql, owner, Kind.TRAINING):
        level = Level.BAD if failed else Level.GOOD
        yield record, Subject(owner, "", event.model_name), [Observed(at, level, value)]


def _of_facts(sql: Sql, place: Where, at: datetime) -> Iterator[Observations]:
    row = sql.row("SELECT online FROM trigger_presence WHERE part_id = ?", place.part_id)
    if row is None:
        return  # it has never called
    online = bool(row["online"])
    for record in _chosen(sql, place, Kind.OFFLINE, Kind.HEALTH):
        if record.rule.kind is Kind.OFFLINE:
            yield record, subject_at(place), [Observed(at, Level.GOOD if online else Level.BAD)]
        elif online:  # otherwise its last report says nothing about now
            problems = problems_of(part(sql, place.part_id).reported)
            yield record, subject_at(place), [Observed(at, Level.BAD if problems else Level.GOOD, problems)]


def problems_of(reported: Mapping[str, Any]) -> float:
    """Return the number of problems in the last report of a part, a rejected configuration included."""
    return float(problem_count(reported) + bool(rejected(reported)))


def _of_readings(sql: Sql, place: Where, event: Ingested) -> Iterator[Observations]:
    records = [
        record
        for record in enabled(sql, place.organization_id, Kind.READING)
        if record.rule.condition is not None and _is_about(record.rule.condition, event)
    ]
    if not records:
        return
    readings = sorted(event.readings, key=lambda reading: reading.requested)[-MAX_READINGS:]
    for record in records:
        if not applies(sql, record.rule, place):
            continue
        condition = record.rule.condition
        assert condition is not None
        subject = subject_at(place, f"{event.component_type}:{event.component_name}:{event.method}")
        pairs = [(each.requested, each.data) for each in readings]
        try:
            observed = observations(condition, pairs, record.rule.timing.patience)
        except Exception:  # a bug that one rule meets must not block all later events
            _log.exception("readings could not be compared", part=place.part_id, rule=record.id)
            continue
        if observed:
            yield record, subject, observed


def observations(condition: Condition, readings: Iterable[tuple[datetime, Any]], patience: timedelta) -> list[Observed]:
    """Return the readings that can change a state, in order: others of a run of the same level are left out.

    Of a run, the first, the last, and as many between as show that there was no gap longer than `patience`.
    """
    kept: list[Observed] = []
    later: Observed | None = None
    for at, data in readings:
        value = value_of(condition, data)
        level = level_of(condition, value)
        if level is None:
            continue
        new = Observed(at, level, value)
        if later is not None and (level is not later.level or (patience and at - kept[-1].at > patience)):
            kept.append(later)
            later = None
        if not kept or level is not kept[-1].level or (patience and at - kept[-1].at > patience):
            kept.append(new)
            later = None
        else:
            later = new
    return [*kept, later] if later is not None else kept


def _is_about(condition: Condition, event: Ingested) -> bool:
    return (
        condition.component in ("", event.component_name)
        and condition.component_type in ("", event.component_type)
        and condition.method in ("", event.method)
    )


def listens(
    sql: Sql, owner: str, component_type: str, component: str, method: str, readings: Sequence[NewReading]
) -> bool:
    """Return whether a rule may be about these readings, by the names in their JSON: every upload asks this."""
    event = Ingested(last_segment(component_type), component, method, "", "", _NO_TIME, _NO_TIME)
    for record in enabled(sql, owner, Kind.READING):
        condition = record.rule.condition
        if condition is None or not _is_about(condition, event):
            continue
        keys = keys_of(condition)
        if any(all(key in text for key in keys) for _, _, text in readings):
            return True
    return False
