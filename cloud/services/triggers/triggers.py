"""Triggers for commands and pages: those in force, their deliveries, and tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from cloud.documents.pieces import LARGE, heavy
from cloud.documents.readable import check_readable
from cloud.domain.data import sources
from cloud.domain.data.filters import DataFilter, DataScope
from cloud.domain.data.pages import Page
from cloud.domain.fleet.fleet import fleet
from cloud.domain.fleet.listing import FleetFilter, Listing
from cloud.domain.machines.machines import part as part_of
from cloud.domain.organizations.tenants import missing
from cloud.domain.permissions.access import ObjectKind, Role, place_of, role_at
from cloud.domain.permissions.rules import ROLE_ANYWHERE, allow, operator, owner
from cloud.domain.permissions.shown import reads_secrets
from cloud.domain.triggering import deliveries
from cloud.domain.triggering.configured import digest, examined, where, with_triggers
from cloud.domain.triggering.deliveries import PAGE, Attempt, Delivery, DeliveryState, shown_delivery
from cloud.domain.triggering.evaluation import new_deliveries, notified, recipients
from cloud.services.common.base import Service, guarded
from cloud.services.triggers import trigger_messages as m
from cloud.store.sql import Sql
from schema import ErrorKind, MachineError, origin_of, whole_numbers
from triggers import (
    CONDITIONAL,
    DATA,
    LOGS,
    ONLINE,
    WEBHOOK,
    Firing,
    Ingested,
    Logged,
    LogLine,
    Notification,
    Presence,
    TabularReading,
    Trigger,
    TriggerEvent,
    Where,
    cooldown,
    explain,
    fires,
    split_method,
)

METHODS: Final = 200  # that a page offers
MAX_PARTS: Final = 10_000  # that the overview examines
NOTHING_YET: Final = "no reading has been captured yet: pass a reading to test the trigger with"


@dataclass(frozen=True, slots=True)
class Overview:
    """A part in the overview."""

    part: str
    machine: str
    name: str
    location: str
    triggers: int
    problems: int
    latest: Delivery | None


@guarded
class TriggerService(Service):
    """machine.cloud.v1.TriggerService: triggers and deliveries for commands, and further methods for pages."""

    @allow(ROLE_ANYWHERE)
    async def overview(self) -> list[Overview]:
        """Return the parts that have triggers, or problems in them, sorted by name: of the first MAX_PARTS."""

        def work(sql: Sql) -> list[Overview]:
            parts = [part.id for part in Listing(sql, self.author).parts(FleetFilter(), MAX_PARTS)]
            configured = with_triggers(sql, parts)
            shown = [
                (machine, part)
                for machine in fleet(sql, self.author, list(configured))
                if machine.role >= Role.OPERATOR
                for part in machine.parts
            ]
            sent = deliveries.latest(sql, list(configured))
            rows = [
                Overview(
                    part.id,
                    machine.name,
                    machine.name if part.main else f"{machine.name} / {part.name}",
                    machine.location.path,
                    len(configured[part.id].triggers),
                    len(configured[part.id].problems),
                    sent.get(part.id),
                )
                for machine, part in shown
                if part.id in configured
            ]
            return sorted(rows, key=lambda row: row.name.lower())

        return await self.read(work)

    @allow(operator(ObjectKind.PART, "part_id", inside=True))
    async def place(self, part_id: str) -> tuple[Where, bool]:
        """Return the location of a part, and whether the caller is an owner there."""

        def work(sql: Sql) -> tuple[Where, bool]:
            return where(sql, part_id), role_at(sql, self.author, place_of(sql, ObjectKind.PART, part_id)) >= Role.OWNER

        return await self.read_checked(work)

    @allow(operator(ObjectKind.PART, "part_id"))
    async def list_triggers(self, part_id: str) -> m.Triggers:
        """Return the triggers of a part."""

        def work(sql: Sql) -> m.Triggers:
            configured, whole = examined(sql, part_id), self._whole(sql, part_id)
            rules = tuple(
                m.Trigger(
                    trigger.name,
                    trigger.event.type,
                    _condition(trigger),
                    trigger.notes,
                    tuple(
                        _target(sql, part_id, trigger, target, self.now(), whole=whole)
                        for target in trigger.notifications
                    ),
                )
                for trigger in configured.triggers
            )
            return m.Triggers(rules, tuple(map(str, configured.problems)), tuple(map(str, configured.warnings)))

        return await self.read(work)

    @allow(operator(ObjectKind.PART, "part_id"))
    async def captured_methods(self, part_id: str) -> list[str]:
        """Return what a part has captured, such as `sensor:door:Readings`, sorted, at most METHODS."""
        return await self.read(lambda sql: sources.methods_of(sql, part_id, METHODS))

    @allow(operator(ObjectKind.PART, "part_id"))
    async def list_deliveries(
        self, part_id: str, trigger: str = "", state: str = "", before: int | None = None, limit: int = 0
    ) -> list[m.Delivery]:
        """Return the deliveries of a part in the last 30 days, newest first, below number `before`.

        At most `limit`; 0 means 50, and more than 500 mean 500.
        """
        if limit < 0:
            raise MachineError(f"limit is {limit}", kind=ErrorKind.INVALID, remedy="give 0 or more, or leave it out")
        page = await self._deliveries(part_id, trigger, state, before, limit or PAGE)
        return [_summary(delivery) for delivery in page]

    @allow(operator(ObjectKind.PART, "part_id"))
    async def stored_deliveries(
        self, part_id: str, trigger: str = "", state: str = "", before: int | None = None, limit: int = PAGE
    ) -> list[Delivery]:
        """Return deliveries as `list_deliveries` does."""
        return await self._deliveries(part_id, trigger, state, before, limit)

    async def _deliveries(
        self, part_id: str, trigger: str, state: str, before: int | None, limit: int
    ) -> list[Delivery]:
        if state and state not in {value.value for value in DeliveryState}:
            raise MachineError(
                f"{state[:40]!r} is not a valid state",
                kind=ErrorKind.INVALID,
                remedy=f"use {', '.join(value.value for value in DeliveryState)}",
            )
        requested_state = DeliveryState(state) if state else None

        def work(sql: Sql) -> list[Delivery]:
            matching = deliveries.deliveries(
                sql, part_id, trigger=trigger, state=requested_state, before=before, limit=limit
            )
            whole = self._whole(sql, part_id)
            return [shown_delivery(delivery, whole=whole) for delivery in matching]

        return await self.read(work)

    @allow(operator(ObjectKind.PART, "part_id"))
    async def get_delivery(self, part_id: str, delivery_id: str) -> m.DeliveryRecord:
        """Return a delivery with its headers, its body and all its attempts."""
        delivery, attempts = await self._delivery(part_id, delivery_id)
        return m.DeliveryRecord(_summary(delivery), dict(delivery.headers), delivery.body, attempts)

    @allow(operator(ObjectKind.PART, "part_id"))
    async def stored_delivery(self, part_id: str, delivery_id: str) -> tuple[Delivery, list[Attempt]]:
        """Return a delivery with all its attempts."""
        return await self._delivery(part_id, delivery_id)

    async def _delivery(self, part_id: str, delivery_id: str) -> tuple[Delivery, list[Attempt]]:
        def work(sql: Sql) -> tuple[Delivery, list[Attempt]]:
            record = deliveries.delivery(sql, part_id, delivery_id)
            return shown_delivery(record, whole=self._whole(sql, part_id)), deliveries.attempts(sql, delivery_id)

        return await self.read(work)

    @allow(operator(ObjectKind.PART, "part_id"))
    async def explain_trigger(
        self, part_id: str, trigger: str, reading: Mapping[str, Any] | None = None
    ) -> m.TriggerTest:
        """Explain whether a reading, by default the newest captured one, would fire a trigger."""
        evaluated = await self._sample(part_id, trigger, reading)

        def work(sql: Sql) -> m.TriggerTest:
            configured = _trigger(sql, part_id, trigger)
            now = self.now()
            explanation = explain(configured, _happening(configured, evaluated, now))
            if evaluated is None and configured.event.type == CONDITIONAL and not explanation.fires:
                explanation = replace(explanation, reason=NOTHING_YET)
            whole = self._whole(sql, part_id)
            targets = tuple(
                _target(sql, part_id, configured, target, now, whole=whole) for target in configured.notifications
            )
            return m.TriggerTest(explanation, targets, evaluated)

        return await self.read(work)

    @allow(owner(ObjectKind.PART, "part_id"))
    async def send_test(
        self, part_id: str, trigger: str, value: str = "", reading: Mapping[str, Any] | None = None
    ) -> list[str]:
        """Send a test message to the targets of a trigger, or only to `value`; return the ids of the deliveries.

        It is delivered like any other, but is tried once, starts no pause and ignores conditions.
        """
        evaluated = await self._sample(part_id, trigger, reading)

        def work(sql: Sql) -> list[str]:
            configured = _trigger(sql, part_id, trigger)
            now, place = self.now(), where(sql, part_id)
            firing = _firing(configured, _happening(configured, evaluated, now))
            sent = []
            for target in configured.notifications:
                if value and target.value != value:
                    continue
                addresses = recipients(sql, target, place)
                for delivery in new_deliveries(
                    configured, target, firing, place, addresses, now, self.cloud.links.page, test=True
                ):
                    deliveries.add(sql, delivery)
                    sent.append(delivery.id)
            if not sent:
                raise missing("target", value)
            return sent

        return await self.change(work)

    @allow(owner(ObjectKind.PART, "part_id"))
    async def replay_delivery(self, part_id: str, delivery_id: str) -> None:
        """Send a delivery again immediately, with the same body and id. PRECONDITION while it is being sent."""
        await self.change(lambda sql: deliveries.replay(sql, part_id, delivery_id, self.now()))

    @allow(owner(ObjectKind.PART, "part_id"))
    async def start_trigger(self, part_id: str, trigger: str) -> None:
        """Resume sending to targets of a trigger that had reported that they are gone."""

        def work(sql: Sql) -> None:
            _trigger(sql, part_id, trigger)
            deliveries.start_again(sql, part_id, [trigger])

        await self.change(work)

    async def _sample(self, part_id: str, trigger: str, reading: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        """Return a reading of the caller with whole numbers as integers, or else the newest one of a trigger's source.

        None if there is none. INVALID if JSON cannot represent the reading of the caller.
        """
        if reading is None:
            return await self._newest(part_id, trigger)

        def sample() -> Mapping[str, Any]:
            check_readable(reading)
            numbers: Mapping[str, Any] = whole_numbers(reading)
            return numbers

        return await self.offload(LARGE if heavy(reading) else 0, sample)

    async def _newest(self, part_id: str, trigger: str) -> Mapping[str, Any] | None:
        def work(sql: Sql) -> tuple[DataFilter, DataScope, str] | None:
            return _source_of(sql, part_id, _trigger(sql, part_id, trigger))

        source = await self.read(work)
        if source is None:
            return None
        source_filter, scope, organization = source
        stored = self.cloud.readings(self, lambda sql: scope, organization)
        newest = await stored.page(source_filter, Page(limit=1, descending=True))
        return newest[0].data if newest else None

    def _whole(self, sql: Sql, part: str) -> bool:
        return reads_secrets(sql, self.author, ObjectKind.PART, part)


def _trigger(sql: Sql, part: str, name: str) -> Trigger:
    configured = examined(sql, part)
    for trigger in configured.triggers:
        if trigger.name == name:
            return trigger
    raise missing("trigger", name)


def _summary(delivery: Delivery) -> m.Delivery:
    return m.Delivery(
        delivery.id,
        delivery.number,
        delivery.trigger,
        delivery.event,
        delivery.type,
        delivery.target,
        delivery.state.value,
        delivery.attempts,
        delivery.created,
        delivery.due if delivery.state is DeliveryState.WAITING else None,
        delivery.test,
        delivery.about,
    )


def _condition(trigger: Trigger) -> dict[str, Any]:
    event = trigger.event
    if event.conditional is not None and event.type == CONDITIONAL:
        evals = [{"operator": condition.operator, "value": condition.value} for condition in event.conditional.evals]
        return {"data_capture_method": event.conditional.data_capture_method, "evals": evals}
    if event.data_ingested is not None and event.type == DATA:
        return {"data_types": list(event.data_ingested.data_types)}
    return {"log_levels": list(event.log_levels)} if event.type == LOGS else {}


def _target(sql: Sql, part: str, trigger: Trigger, target: Notification, now: datetime, *, whole: bool) -> m.Target:
    entry = digest(trigger)
    stopped = [
        stop.reason
        for stop in deliveries.stops(sql, part)
        if (stop.trigger, stop.target, stop.entry) == (trigger.name, target.value, entry)
    ]
    last, interval = notified(sql, part, trigger, target), cooldown.interval(trigger, target)
    pausing = bool(interval) and last is not None and not cooldown.due(last, now, interval)
    return m.Target(
        target.type,
        target.value if whole or target.type != WEBHOOK else origin_of(target.value),
        target.seconds_between_notifications,
        bool(target.secret or trigger.secret) and target.type == WEBHOOK,
        last + interval if pausing and last is not None else None,
        stopped[0] if stopped else "",
    )


def _source_of(sql: Sql, part: str, trigger: Trigger) -> tuple[DataFilter, DataScope, str] | None:
    """Return filter and scope of the readings that a trigger evaluates, and their organization; None for others."""
    if trigger.event.type not in {DATA, CONDITIONAL}:
        return None
    source = part_of(sql, part)  # its present location: guests have no access to data of earlier locations
    conditional = trigger.event.conditional if trigger.event.type == CONDITIONAL else None
    _, component, method = split_method(conditional.data_capture_method) if conditional is not None else ("", "", "")
    source_filter = DataFilter(locations=(source.location_id,), part=part, component=component, method=method)
    return source_filter, DataScope(machines=(source.machine_id,)), source.organization_id


def _happening(trigger: Trigger, reading: Mapping[str, Any] | None, now: datetime) -> TriggerEvent:
    """Return the event that fires this trigger, provided that its conditions hold for `reading`."""
    event = trigger.event
    if event.type == LOGS:
        return Logged({event.log_levels[0]: (LogLine(now, event.log_levels[0], "test", "a test of the trigger"),)})
    if event.type not in {DATA, CONDITIONAL}:
        return Presence(event.type == ONLINE)
    captured = () if reading is None else (TabularReading(now, now, reading),)
    if event.type == CONDITIONAL and event.conditional is not None:
        kind, component, method = split_method(event.conditional.data_capture_method)
        return Ingested(kind, component, method, "tabular", "", now, now, captured)
    data_type = event.data_ingested.data_types[0] if event.data_ingested is not None else "tabular"
    return Ingested("sensor", "test", "Readings", data_type, "", now, now, captured)


def _firing(trigger: Trigger, happening: TriggerEvent) -> Firing:
    """Return a firing even if the conditions do not hold: a test checks whether the message arrives."""
    firing = fires(trigger, happening)
    if firing is not None:
        return firing
    assert isinstance(happening, Ingested)
    evals = trigger.event.conditional.evals if trigger.event.conditional is not None else ()
    return Firing(trigger.name, trigger.event.type, happening, evals, next(iter(happening.readings), None), 0)
