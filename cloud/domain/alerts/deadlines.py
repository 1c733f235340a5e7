"""Deadlines of alerts: durations, reminders, missing data, ends of silences, and messages that are to be made.

The next deadline is in the database. A process waits for it, and for changes; it neither polls nor reads all alerts.
After a restart, deadlines that have passed come at once.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial
from typing import Final

import trio

from cloud.domain.alerts import notices, states
from cloud.domain.alerts.life import Tick
from cloud.domain.alerts.rules import applies, rule, rules
from cloud.domain.alerts.states import AlertRecord
from cloud.domain.alerts.subjects import subject_of
from cloud.domain.triggering.deliveries import Page
from cloud.store.events import Events
from cloud.store.sql import Sql, Store
from cloud.values.times import Clock
from schema import ErrorKind, MachineError
from triggers import Where

BATCH: Final = 50  # alerts in one transaction, during which other writers wait
LEFT: Final = "the rule does not apply to the machine any more"
BROKEN: Final = timedelta(hours=1)  # before an alert that cannot be changed is processed again


async def run(
    store: Store,
    events: Events,
    clock: Clock,
    page: Page,
    *,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Let deadlines come until cancelled. Run it once in each process; replicas share the deadlines."""
    up = clock()
    with events.listening(states.TOPIC) as news:
        task_status.started()
        while True:
            moment = await store.read(next_deadline)
            now = clock()
            if moment is not None and moment <= now:
                await store.write(partial(come_due, now=now, up=up, page=page))
                continue
            with trio.move_on_after(float("inf") if moment is None else (moment - now).total_seconds()):
                await news.all()


def next_deadline(sql: Sql) -> datetime | None:
    """Return the next deadline of an alert or a message; None if there is none."""
    moments = [states.next_due(sql), notices.next_due(sql)]
    return min((moment for moment in moments if moment is not None), default=None)


def come_due(sql: Sql, now: datetime, page: Page, up: datetime | None = None) -> int:
    """Let some deadlines come that have passed: of alerts first, then of one message. Return how many; 0 if none has.

    `up` is since when this cloud receives data; before that, none can be missing.
    """
    alerts = states.take_due(sql, now, BATCH)
    for alert in alerts:
        _come(sql, alert, now, up)
    return len(alerts) or int(notices.flush(sql, now, page))


def _come(sql: Sql, alert: AlertRecord, now: datetime, up: datetime | None) -> None:
    if alert.ending:
        states.finish(sql, alert, now)
        return
    try:
        record = rule(sql, alert.organization, alert.rule_id)
    except MachineError as error:
        if error.kind is not ErrorKind.NOT_FOUND:
            raise
        states.drop(sql, alert)
        return
    subject, place = subject_of(sql, alert.organization, alert.part, alert.source)
    if not record.rule.enabled:
        states.close(sql, alert, record.rule.name, "the rule was disabled", now)
    elif alert.part and place is None:
        states.close(sql, alert, record.rule.name, "the machine was deleted", now)
    elif place is not None and not applies(sql, record.rule, place):
        states.close(sql, alert, record.rule.name, LEFT, now)
    elif states.apply(sql, record, subject, [Tick(up)], now) is None:
        states.postpone(sql, alert.id, now + BROKEN)


def leave(sql: Sql, place: Where, now: datetime) -> None:
    """End the alerts of a part that rules do not apply to any more, because it was moved or has other tags."""
    scoped = {record.id: record.rule for record in rules(sql, place.organization_id) if record.rule.scope}
    if not scoped:
        return
    for alert in states.of_part(sql, place.organization_id, place.part_id):
        chosen = scoped.get(alert.rule_id)
        if chosen is not None and not applies(sql, chosen, place):
            states.close(sql, alert, chosen.name, LEFT, now)
