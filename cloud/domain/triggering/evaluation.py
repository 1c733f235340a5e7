"""Evaluation of events: one transaction deletes an event and creates its deliveries.

No event is lost, and none creates two deliveries for one target, even if the process is killed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final
from urllib.parse import quote

import structlog
import trio

from cloud.domain.machines import logs
from cloud.domain.machines.logs import LogRecord
from cloud.domain.organizations.tenants import metadata
from cloud.domain.triggering import deliveries, queue, training_messages
from cloud.domain.triggering.configured import digest, in_force, where
from cloud.domain.triggering.deliveries import PLACEHOLDER_SENDER, Delivery, Page
from cloud.domain.triggering.hourly import OWN
from cloud.domain.triggering.queue import Queued
from cloud.store.events import Events
from cloud.store.sql import Sql, Store
from cloud.values.names import new_id
from cloud.values.times import moment_of, stored
from schema import ErrorKind, MachineError
from schema.decoding import Effort
from triggers import (
    EMAIL,
    MAX_TARGETS,
    OWNERS,
    WEBHOOK,
    Firing,
    Ingested,
    Notification,
    TrainingEnded,
    Trigger,
    TriggerEvent,
    Where,
    cooldown,
    fires,
    is_address,
    mail,
    unsigned_request,
)

BATCH: Final = 100  # events in one transaction
EFFORT: Final = 1_000_000
"""Limit of comparisons and expression steps for one event, and about the limit for all events of a transaction.

It takes about a second, during which all other writers wait.
"""
PARTS: Final = 10  # parts in one transaction, which share the wait for the disk

_log: structlog.stdlib.BoundLogger = structlog.get_logger("cloud.triggers")


Observe = Callable[[Sql, Queued, Where | None], None]
"""Function that lets an event happen to alerts, in the same transaction; the place of the part, if it exists."""


def observe_nothing(sql: Sql, queued: Queued, place: Where | None) -> None:
    """Observe nothing."""


async def evaluate(
    store: Store,
    events: Events,
    page: Page,
    observe: Observe = observe_nothing,
    *,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Evaluate queued events until cancelled. Several processes may do so concurrently."""
    with events.listening(queue.TOPIC) as news:
        task_status.started()
        while True:
            while await store.write(partial(evaluate_many, page=page, observe=observe)):
                pass
            await news.all()


def evaluate_many(sql: Sql, page: Page, observe: Observe = observe_nothing) -> int:
    """Evaluate the oldest events of a few parts; return how many, 0 if none is waiting."""
    count, effort = 0, Effort(EFFORT)
    for _ in range(PARTS):
        done = evaluate_some(sql, page, effort, observe)
        count += done
        if not done or count >= BATCH or effort.left <= 0:
            break
    return count


def evaluate_some(sql: Sql, page: Page, effort: Effort | None = None, observe: Observe = observe_nothing) -> int:
    """Evaluate the oldest events of one part while `effort` lasts; return how many, 0 if none is waiting."""
    effort = Effort(EFFORT) if effort is None else effort
    events = queue.take(sql, BATCH)
    if not events:
        return 0
    part = events[0].part
    if isinstance(events[0].event, TrainingEnded):
        for queued in events:
            try:
                created = [*training_messages.messages(sql, queued, page)]
            except Exception:  # a bug must not block all later events
                _log.exception("a message about a training job could not be created", organization=queued.part)
                continue
            for delivery in created:
                deliveries.add(sql, delivery)
            observe(sql, queued, None)
        queue.done(sql, events)
        return len(events)
    try:
        place = where(sql, part)
    except MachineError as error:
        if error.kind is not ErrorKind.NOT_FOUND:
            raise
        place = None  # the part was deleted; drop its events
    if place is not None:
        triggers = in_force(sql, part)
        stopped = {(stop.trigger, stop.target): stop.entry for stop in deliveries.stops(sql, part)}
        for number, queued in enumerate(events, 1):
            event_effort = Effort(EFFORT)
            for trigger, entry in triggers if isinstance(queued.event, TriggerEvent) else ():
                _create_deliveries(sql, queued, trigger, entry, place, stopped, page, event_effort)
            observe(sql, queued, place)
            if event_effort.left <= 0:
                logs.append(sql, part, [_effort_exceeded(queued)], queued.happened)
            effort.left -= EFFORT - event_effort.left
            if effort.left <= 0:
                events = events[:number]
                break
    queue.done(sql, events)
    return len(events)


def _effort_exceeded(queued: Queued) -> LogRecord:
    text = (
        f"the conditions for one upload needed more than {EFFORT} comparisons and steps of expressions: "
        "its other readings were not evaluated"
    )
    return LogRecord(time=queued.happened, level="error", logger=f"{OWN}conditions", message=text)


def _create_deliveries(
    sql: Sql,
    queued: Queued,
    trigger: Trigger,
    entry: str,
    place: Where,
    stopped: Mapping[tuple[str, str], str],
    page: Page,
    effort: Effort,
) -> None:
    try:
        assert isinstance(queued.event, TriggerEvent), "an event for alerts, or of an organization"
        firing = fires(trigger, queued.event, effort)
    except Exception:  # a bug that one trigger meets must not block all later events
        _log.exception("a trigger could not be evaluated", part=queued.part, trigger=trigger.name)
        return
    if firing is None:
        return
    for notification in trigger.notifications:
        if stopped.get((trigger.name, notification.value)) == entry:
            continue
        if not _cooldown_over(sql, queued, trigger, notification):
            continue
        addresses = recipients(sql, notification, place)
        try:
            created = new_deliveries(trigger, notification, firing, place, addresses, queued.happened, page)
        except Exception:
            _log.exception("a message could not be created", part=queued.part, trigger=trigger.name)
            continue
        for delivery in created:
            deliveries.add(sql, delivery)


def _cooldown_over(sql: Sql, queued: Queued, trigger: Trigger, notification: Notification) -> bool:
    """Return whether the cooldown of a target allows a notification; if so, restart the cooldown."""
    interval = cooldown.interval(trigger, notification)
    if not interval:
        return True
    if not cooldown.due(notified(sql, queued.part, trigger, notification), queued.happened, interval):
        return False
    sql.run(
        """
        INSERT INTO trigger_clocks (part_id, trigger_name, target, notified) VALUES (?, ?, ?, ?)
        ON CONFLICT (part_id, trigger_name, target) DO UPDATE SET notified = excluded.notified
        """,
        queued.part,
        trigger.name,
        cooldown.clock(trigger, notification),
        stored(queued.happened),
    )
    return True


def notified(sql: Sql, part: str, trigger: Trigger, notification: Notification) -> datetime | None:
    """Return when the target of a notification was last notified; None if never."""
    row = sql.row(
        "SELECT notified FROM trigger_clocks WHERE part_id = ? AND trigger_name = ? AND target = ?",
        part,
        trigger.name,
        cooldown.clock(trigger, notification),
    )
    return None if row is None else moment_of(row["notified"])


def new_deliveries(
    trigger: Trigger,
    notification: Notification,
    firing: Firing,
    place: Where,
    addresses: Sequence[str],
    now: datetime,
    page: Page,
    *,
    test: bool = False,
) -> list[Delivery]:
    """Return the deliveries for one notification, with new ids: one, or for emails one for each of `addresses`."""
    common: dict[str, Any] = {
        "part": place.part_id,
        "trigger": trigger.name,
        "event": trigger.event.type,
        "entry": digest(trigger),
        "type": notification.type,
        "value": notification.value,
        "about": _about(firing.happening),
        "test": test,
        "created": now,
    }
    if notification.type == WEBHOOK:
        request = unsigned_request(trigger, notification, firing, place)
        return [
            Delivery(
                id=new_id(),
                target=request.url,
                method=request.method,
                headers=request.headers,
                body=request.body,
                **common,
            )
        ]
    empty: dict[str, Any] = {"method": "", "headers": ()}
    if notification.type != EMAIL:
        return [Delivery(id=new_id(), target=notification.value, body=b"", **empty, **common)]
    emails = []
    link = page(f"/machines/{quote(place.machine_id)}")
    for address in addresses or [OWNERS]:
        delivery_id = new_id()
        message = mail(
            trigger,
            notification,
            firing,
            place,
            delivery_id,
            now,
            sender=PLACEHOLDER_SENDER,
            recipients=[address],
            link=link,
        )
        emails.append(Delivery(id=delivery_id, target=address, body=message.as_bytes(), **empty, **common))
    return emails


def _about(happening: TriggerEvent) -> dict[str, str]:
    if not isinstance(happening, Ingested):
        return {}
    return {"component": happening.component_name, "method": happening.method}


def recipients(sql: Sql, notification: Notification, place: Where) -> list[str]:
    """Return the recipients of an email.

    Keys have no addresses, so owners are reached at `email` in the metadata of the machine, its location or its
    organization, whichever has one first.
    """
    if notification.type != EMAIL:
        return []
    if notification.value != OWNERS:
        return [notification.value]
    for kind, subject in (
        ("robot", place.machine_id),
        ("location", place.location_id),
        ("organization", place.organization_id),
    ):
        configured = metadata(sql, kind, subject).get("email")
        addresses = configured if isinstance(configured, list) else [configured]
        valid = [address.strip() for address in addresses if isinstance(address, str) and is_address(address.strip())]
        if valid:
            return list(dict.fromkeys(valid))[:MAX_TARGETS]
    return []
