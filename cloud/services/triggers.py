"""Triggers for pages and commands: those in force, their deliveries, and tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from cloud.domain.data import readings
from cloud.domain.data.filters import DataFilter, Scope
from cloud.domain.data.pages import Page
from cloud.domain.fleet.fleet import fleet
from cloud.domain.machines.machines import part as part_of
from cloud.domain.organizations.tenants import missing
from cloud.domain.permissions import call_rules
from cloud.domain.permissions.access import ObjectKind, Role, place_of, role_at
from cloud.domain.permissions.shown import reads_secrets
from cloud.domain.triggering import deliveries
from cloud.domain.triggering.configured import digest, examined, where, with_triggers
from cloud.domain.triggering.deliveries import PAGE, Attempt, Delivery, State, shown_delivery
from cloud.domain.triggering.evaluation import new_deliveries, notified, recipients
from cloud.services.common.base import Service, guarded
from cloud.store.sql import Sql
from schema.errors import ErrorKind, MachineError
from schema.secrets import origin_of
from triggers import cooldown
from triggers.document import CONDITIONAL, DATA, LOGS, ONLINE, WEBHOOK, Notification, Trigger, split_method
from triggers.evaluate import Explanation, explain, fires
from triggers.events import Firing, Happening, Ingested, Logged, LogLine, Presence, Reading, Where

NOTHING_YET: Final = "no reading has been captured yet: pass a reading to test the trigger with"


@dataclass(frozen=True, slots=True)
class Target:
    """A recipient. `until` is the end of the pause after the last message, `stopped` the reason why nothing is sent."""

    type: str
    value: str
    seconds: float  # between notifications
    signed: bool
    until: datetime | None = None
    stopped: str = ""


@dataclass(frozen=True, slots=True)
class Rule:
    """A trigger in force. `condition` is its event as configured."""

    name: str
    event: str
    condition: Mapping[str, Any]
    notes: str
    targets: tuple[Target, ...]


@dataclass(frozen=True, slots=True)
class Triggers:
    """The triggers of a part, with the problems of those that are not in force."""

    triggers: tuple[Rule, ...]
    problems: tuple[str, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TriggerTest:
    """The effect of a reading. `targets` are the recipients with their present state."""

    explanation: Explanation
    targets: tuple[Target, ...]
    reading: Mapping[str, Any] | None  # the reading that was evaluated


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


@guarded(call_rules.TRIGGERS)
class TriggerService(Service):
    """A call of a page or a command."""

    async def overview(self) -> list[Overview]:
        """Return all parts that have triggers, or problems in them, sorted by name."""

        def work(sql: Sql) -> list[Overview]:
            shown = [
                (machine, part)
                for machine in fleet(sql, self.author)
                if machine.role >= Role.OPERATOR
                for part in machine.parts
            ]
            configured = with_triggers(sql, [part.id for _, part in shown])
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

    async def place(self, part: str) -> tuple[Where, bool]:
        """Return the location of a part, and whether the caller is an owner there."""

        def work(sql: Sql) -> tuple[Where, bool]:
            return where(sql, part), role_at(sql, self.author, place_of(sql, ObjectKind.PART, part)) >= Role.OWNER

        return await self.read(work)

    async def list_triggers(self, part: str) -> Triggers:
        """Return the triggers of a part."""

        def work(sql: Sql) -> Triggers:
            configured, whole = examined(sql, part), self._whole(sql, part)
            rules = tuple(
                Rule(
                    trigger.name,
                    trigger.event.type,
                    _condition(trigger),
                    trigger.notes,
                    tuple(
                        _target(sql, part, trigger, target, self.now(), whole=whole) for target in trigger.notifications
                    ),
                )
                for trigger in configured.triggers
            )
            return Triggers(rules, tuple(map(str, configured.problems)), tuple(map(str, configured.warnings)))

        return await self.read(work)

    async def list_deliveries(
        self, part: str, trigger: str = "", state: str = "", before: int | None = None, limit: int = PAGE
    ) -> list[Delivery]:
        """Return the deliveries of a part, newest first, below number `before`. Deliveries are kept for 30 days."""
        if state and state not in {value.value for value in State}:
            raise MachineError(
                f"{state[:40]!r} is not a valid state",
                kind=ErrorKind.INVALID,
                remedy=f"use {', '.join(value.value for value in State)}",
            )
        requested_state = State(state) if state else None

        def work(sql: Sql) -> list[Delivery]:
            matching = deliveries.deliveries(
                sql, part, trigger=trigger, state=requested_state, before=before, limit=limit
            )
            whole = self._whole(sql, part)
            return [shown_delivery(delivery, whole=whole) for delivery in matching]

        return await self.read(work)

    async def get_delivery(self, part: str, delivery: str) -> tuple[Delivery, list[Attempt]]:
        """Return a delivery with all its attempts."""

        def work(sql: Sql) -> tuple[Delivery, list[Attempt]]:
            record = deliveries.delivery(sql, part, delivery)
            return shown_delivery(record, whole=self._whole(sql, part)), deliveries.attempts(sql, delivery)

        return await self.read(work)

    async def explain_trigger(self, part: str, trigger: str, reading: Mapping[str, Any] | None = None) -> TriggerTest:
        """Explain whether a reading, by default the newest captured one, would fire a trigger."""

        def work(sql: Sql) -> TriggerTest:
            configured = _trigger(sql, part, trigger)
            now = self.now()
            evaluated = reading if reading is not None else _newest(sql, part, configured)
            explanation = explain(configured, _happening(configured, evaluated, now))
            if evaluated is None and configured.event.type == CONDITIONAL and not explanation.fires:
                explanation = replace(explanation, reason=NOTHING_YET)
            whole = self._whole(sql, part)
            targets = tuple(
                _target(sql, part, configured, target, now, whole=whole) for target in configured.notifications
            )
            return TriggerTest(explanation, targets, evaluated)

        return await self.read(work)

    async def send_test(
        self, part: str, trigger: str, value: str = "", reading: Mapping[str, Any] | None = None
    ) -> list[str]:
        """Send a test message to the targets of a trigger, or only to `value`; return the ids of the deliveries.

        It is delivered like any other, but is tried once, starts no pause and ignores conditions.
        """

        def work(sql: Sql) -> list[str]:
            configured = _trigger(sql, part, trigger)
            now, place = self.now(), where(sql, part)
            evaluated = reading if reading is not None else _newest(sql, part, configured)
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

        return await self.write(work)

    async def replay_delivery(self, part: str, delivery: str) -> None:
        """Send a delivery again immediately, with the same body and id. PRECONDITION while it is being sent."""
        await self.write(lambda sql: deliveries.replay(sql, part, delivery, self.now()))

    async def start_trigger(self, part: str, trigger: str) -> None:
        """Resume sending to targets of a trigger that had reported that they are gone."""

        def work(sql: Sql) -> None:
            _trigger(sql, part, trigger)
            deliveries.start_again(sql, part, [trigger])

        await self.write(work)

    def _whole(self, sql: Sql, part: str) -> bool:
        return reads_secrets(sql, self.author, ObjectKind.PART, part)


def _trigger(sql: Sql, part: str, name: str) -> Trigger:
    configured = examined(sql, part)
    for trigger in configured.triggers:
        if trigger.name == name:
            return trigger
    raise missing("trigger", name)


def _condition(trigger: Trigger) -> dict[str, Any]:
    event = trigger.event
    if event.conditional is not None and event.type == CONDITIONAL:
        evals = [{"operator": condition.operator, "value": condition.value} for condition in event.conditional.evals]
        return {"data_capture_method": event.conditional.data_capture_method, "evals": evals}
    if event.data_ingested is not None and event.type == DATA:
        return {"data_types": list(event.data_ingested.data_types)}
    return {"log_levels": list(event.log_levels)} if event.type == LOGS else {}


def _target(sql: Sql, part: str, trigger: Trigger, target: Notification, now: datetime, *, whole: bool) -> Target:
    entry = digest(trigger)
    stopped = [
        stop.reason
        for stop in deliveries.stops(sql, part)
        if (stop.trigger, stop.target, stop.entry) == (trigger.name, target.value, entry)
    ]
    last, interval = notified(sql, part, trigger, target), cooldown.interval(trigger, target)
    pausing = bool(interval) and last is not None and not cooldown.due(last, now, interval)
    return Target(
        target.type,
        target.value if whole or target.type != WEBHOOK else origin_of(target.value),
        target.seconds_between_notifications,
        bool(target.secret or trigger.secret) and target.type == WEBHOOK,
        last + interval if pausing and last is not None else None,
        stopped[0] if stopped else "",
    )


def _newest(sql: Sql, part: str, trigger: Trigger) -> Mapping[str, Any] | None:
    """Return the newest reading of a trigger's source; None if there is none."""
    if trigger.event.type not in {DATA, CONDITIONAL}:
        return None
    source = part_of(sql, part)  # its present location: guests have no access to data of earlier locations
    conditional = trigger.event.conditional if trigger.event.type == CONDITIONAL else None
    _, component, method = split_method(conditional.data_capture_method) if conditional is not None else ("", "", "")
    source_filter = DataFilter(locations=(source.location_id,), part=part, component=component, method=method)
    newest = readings.query(sql, source_filter, Scope(machines=(source.machine_id,)), Page(limit=1, descending=True))
    return newest[0].data if newest else None


def _happening(trigger: Trigger, reading: Mapping[str, Any] | None, now: datetime) -> Happening:
    """Return the event that fires this trigger, provided that its conditions hold for `reading`."""
    event = trigger.event
    if event.type == LOGS:
        return Logged({event.log_levels[0]: (LogLine(now, event.log_levels[0], "test", "a test of the trigger"),)})
    if event.type not in {DATA, CONDITIONAL}:
        return Presence(event.type == ONLINE)
    captured = () if reading is None else (Reading(now, now, reading),)
    if event.type == CONDITIONAL and event.conditional is not None:
        kind, component, method = split_method(event.conditional.data_capture_method)
        return Ingested(kind, component, method, "tabular", "", now, now, captured)
    data_type = event.data_ingested.data_types[0] if event.data_ingested is not None else "tabular"
    return Ingested("sensor", "test", "Readings", data_type, "", now, now, captured)


def _firing(trigger: Trigger, happening: Happening) -> Firing:
    """Return a firing even if the conditions do not hold: a test checks whether the message arrives."""
    firing = fires(trigger, happening)
    if firing is not None:
        return firing
    assert isinstance(happening, Ingested)
    evals = trigger.event.conditional.evals if trigger.event.conditional is not None else ()
    return Firing(trigger.name, trigger.event.type, happening, evals, next(iter(happening.readings), None), 0)
