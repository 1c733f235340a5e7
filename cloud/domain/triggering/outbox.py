"""Sends the messages in the outbox: several at a time, each with a time limit, recording every attempt.

A process takes a message for the duration LEASE. If it dies before recording the attempt, another process sends the
message again under the same id. The outbox waits for events and for the next due time.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Final

import structlog
import trio

from cloud.domain.machines import logs
from cloud.domain.machines.logs import LogRecord
from cloud.domain.triggering import alert_targets, deliveries, training_messages
from cloud.domain.triggering.alert_targets import ALERT
from cloud.domain.triggering.configured import target_of
from cloud.domain.triggering.deliveries import Attempt, Delivery, DeliveryState, shown_target
from cloud.store.events import Events
from cloud.store.sql import Sql, Store
from cloud.values.times import Clock
from triggers import EMAIL, TRAINING, AttemptOutcome, Notification, cooldown, next_try

CONCURRENT: Final = 16  # messages sent at the same time, not counting emails
EMAILS: Final = 2
"""Emails sent at the same time: the one that the mail server is processing, and the next.

A mail server that hangs does not delay other messages, and no email waits so long that its time limit passes first.
"""
LIMITS: Final = {"webhook": 15.0, "email": 60.0}  # seconds for one attempt; Svix allows a receiver 15
LEASE: Final = timedelta(seconds=75)  # the longest of LIMITS, and time to record the attempt
REST: Final = timedelta(seconds=60)
LOGGER: Final = "app.trigger"
_OF_ORGANIZATIONS: Final = frozenset({TRAINING, ALERT})
"""Events of an organization, whose id is the `part` of their deliveries."""
_REMOVED: Final = {
    False: "the trigger or this target was removed from the configuration",
    True: "this target was removed from the notifications of the organization",
}
_ARTICLES: Final = {"webhook": "a webhook", "email": "an email", "push": "a push message"}

Send = Callable[[Delivery, Notification, str, datetime], Awaitable[AttemptOutcome]]
"""Function that makes one attempt; it is cancelled at its time limit. Failures of a receiver are Outcomes.

The string is the secret that signs if the notification has no own one.
"""


class Outbox:
    """Sends due deliveries. Run it once in each process. `senders` has a Send for each type of delivery."""

    def __init__(self, store: Store, events: Events, clock: Clock, senders: Mapping[str, Send]) -> None:
        self._store = store
        self._events = events
        self._clock = clock
        self._senders = senders
        self._sending = {False: 0, True: 0}  # messages being sent, by whether they are emails
        self._log: structlog.stdlib.BoundLogger = structlog.get_logger("cloud.outbox")

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Send until cancelled."""
        with self._events.listening(deliveries.TOPIC) as news:
            await self._store.write(_release)
            task_status.started()
            async with trio.open_nursery() as nursery:
                while True:
                    wait = await self.round(nursery)
                    with trio.move_on_after(wait):
                        await news.all()

    async def round(self, nursery: trio.Nursery) -> float:
        """Start sending what is due; return the seconds until the next message is due."""
        return min([await self._start(nursery, emails=emails) for emails in (True, False)])

    async def _start(self, nursery: trio.Nursery, *, emails: bool) -> float:
        while True:
            now = self._clock()
            ready, later = await self._store.read(partial(deliveries.due, now=now, emails=emails))
            free = (EMAILS if emails else CONCURRENT) - self._sending[emails]
            if not ready or not free:
                break
            take = partial(deliveries.take, now=now, lease=LEASE, limit=free, emails=emails)
            taken = await self._store.write(take)
            for delivery in taken:
                self._sending[emails] += 1
                nursery.start_soon(self._deliver, delivery)
            if not taken:  # a replica was faster; if it dies, what it took is due when its lease ends
                later = min(later or now + LEASE, now + LEASE)
                break
        return float("inf") if later is None else max(0.0, (later - self._clock()).total_seconds())

    async def _deliver(self, delivery: Delivery) -> None:
        try:
            started, begin = self._clock(), trio.current_time()
            postponed_until = await self._store.read(lambda sql: rest_until(sql, delivery, started))
            if postponed_until is not None:
                await self._store.write(lambda sql: deliveries.postpone(sql, delivery, postponed_until))
                return
            outcome = await self._attempt(delivery, started)
            if outcome.internal:
                self._log.warning(
                    "a delivery failed", delivery=delivery.id, part=delivery.part, reason=outcome.internal
                )
            duration = timedelta(seconds=trio.current_time() - begin)
            attempt = Attempt(started, duration, outcome.status, outcome.error)
            wait = None if delivery.test else next_try(outcome, delivery.tries + 1, delivery.id)
            ended = self._clock()
            await self._store.write(lambda sql: conclude(sql, delivery, attempt, outcome, wait, ended))
        finally:
            self._sending[delivery.type == EMAIL] -= 1

    async def _attempt(self, delivery: Delivery, now: datetime) -> AttemptOutcome:
        send = self._senders.get(delivery.type)
        if send is None:
            return AttemptOutcome(error=f"this cloud does not deliver {delivery.type} messages", final=True)
        target = await self._store.read(lambda sql: _current(sql, delivery))
        if target is None:
            return AttemptOutcome(error=_REMOVED[delivery.event in _OF_ORGANIZATIONS], final=True)
        limit = LIMITS[delivery.type]
        with trio.move_on_after(limit):
            try:
                return await send(delivery, *target, now)
            except Exception as error:
                self._log.exception("a delivery failed because of an internal error", delivery=delivery.id)
                return AttemptOutcome(error=f"this cloud failed to send it: {type(error).__name__}")
        return AttemptOutcome(error=f"no answer within {limit:g} s")


def _current(sql: Sql, delivery: Delivery) -> tuple[Notification, str] | None:
    """Return the target of a delivery with the secrets that it has now; None if it was removed."""
    if delivery.event == TRAINING:
        target = training_messages.target(sql, delivery.part, delivery.type, delivery.value)
        return None if target is None else (target, "")
    if delivery.event == ALERT:
        target = alert_targets.current(sql, delivery.part, delivery.trigger, delivery.type, delivery.value)
        return None if target is None else (target, "")
    configured = target_of(sql, delivery.part, delivery.trigger, delivery.type, delivery.value)
    return None if configured is None else (configured[1], configured[0].secret)


def rest_until(sql: Sql, delivery: Delivery, now: datetime) -> datetime | None:
    """Return when a message may be sent that would follow its predecessor too soon; None if it may be sent now.

    Evaluation already applies `seconds_between_notifications` to the times of events. This applies it to arrival at the
    receiver as well, because delays differ. Backlogs are not stretched: no message waits longer than REST.
    """
    if delivery.test or delivery.attempts or delivery.event in _OF_ORGANIZATIONS or now - delivery.created >= REST:
        return None
    target = target_of(sql, delivery.part, delivery.trigger, delivery.type, delivery.value)
    interval = timedelta(0) if target is None else cooldown.interval(*target)
    last_sent = deliveries.sent_before(sql, delivery) if interval else None
    until = None if last_sent is None else min(last_sent + interval, delivery.created + REST)
    return until if until is not None and now < until else None


def _release(sql: Sql) -> int:
    """Release what a dead process had taken, unless there can be replicas; those wait for the lease to end."""
    return 0 if sql.skip_locked else deliveries.release(sql)


def conclude(
    sql: Sql, delivery: Delivery, attempt: Attempt, outcome: AttemptOutcome, wait: float | None, now: datetime
) -> None:
    """Record an attempt with the new state of the delivery, and log a failure in the machine's own log."""
    if outcome.delivered:
        deliveries.record(sql, delivery, attempt, DeliveryState.DELIVERED, None)
        return
    retry_at = None if wait is None else now + timedelta(seconds=wait)
    number = deliveries.record(
        sql, delivery, attempt, DeliveryState.FAILED if retry_at is None else DeliveryState.WAITING, retry_at
    )
    if outcome.disable:
        deliveries.stop(sql, delivery, outcome.error, now)
    if delivery.event in _OF_ORGANIZATIONS:
        return  # it is in no machine's log; the list of targets shows the last attempt
    # Log the first failure and the last, not every retry, and not the same first failure of each later message.
    if retry_at is not None and delivery.tries > 0:
        return
    # Last, because it reads all attempts of the trigger.
    repeated = not delivery.test and deliveries.last_error(sql, delivery) == attempt.error
    if retry_at is None or not repeated:
        line = _line(delivery, replace(attempt, number=number), retry_at, outcome.disable, now)
        logs.append(sql, delivery.part, [replace(line, level="info") if repeated else line], now)


def _line(delivery: Delivery, attempt: Attempt, retry_at: datetime | None, stopped: bool, now: datetime) -> LogRecord:
    if stopped:
        consequence = "no further messages are sent to this target until the trigger is changed or started again"
    elif retry_at is None:
        consequence = "it is not retried" + (f" after {attempt.number} attempts" if attempt.number > 1 else "")
    else:
        consequence = f"it is retried at {retry_at.isoformat(timespec='seconds')}"
    fields = {
        "target": shown_target(delivery),
        "part_id": delivery.part,
        **delivery.about,
        "trigger_type": delivery.event,
        "notification_type": delivery.type,
        "error": attempt.error,
        "status_code": attempt.status,
        "delivery": delivery.id,
        "attempt": attempt.number,
    }
    return LogRecord(
        time=now,
        level="error",
        logger=f"{LOGGER}.{delivery.trigger}",
        message=f"{_ARTICLES.get(delivery.type, delivery.type)} was not delivered: {attempt.error}; {consequence}",
        fields=tuple({"Key": key, "Value": value} for key, value in fields.items()),
    )
