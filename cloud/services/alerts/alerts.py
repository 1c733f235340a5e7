"""machine.cloud.v1.AlertService: alerts, their history, and what people do about them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from cloud.domain.alerts import changing, history, states
from cloud.domain.alerts.life import OPEN, Acknowledged, Event, Phase, Silenced
from cloud.domain.alerts.quieting import silences
from cloud.domain.alerts.quieting.silences import Silence
from cloud.domain.alerts.rule import Rule
from cloud.domain.alerts.rules import RuleRecord, rule, rules
from cloud.domain.alerts.states import AlertRecord, OpenAlert
from cloud.domain.alerts.subjects import subject_of
from cloud.domain.alerts.wording import shown_value
from cloud.domain.fleet.fleet import fleet
from cloud.domain.organizations.keys import key
from cloud.domain.organizations.tenants import missing
from cloud.domain.permissions.access import ObjectKind, Role, holder, operated, place_of
from cloud.domain.permissions.rules import AT_ALERTS, allow, operator
from cloud.services.alerts import alert_messages as m
from cloud.services.alerts.rules import Rules
from cloud.services.common.base import guarded
from cloud.store.sql import Sql
from schema import ErrorKind, MachineError

LONGEST_SILENCE: Final = timedelta(days=30)
PAGES: Final = 10  # pages of events that one call looks through for those that the caller may see


MAX_ALERTS: Final = 500  # in one answer


@dataclass(frozen=True, slots=True)
class AlertOverview:
    """The number of alerts that fire, of all open ones, and some of them."""

    firing: int
    count: int
    alerts: list[m.Alert]


def _urgency(alert: OpenAlert) -> tuple[bool, int]:
    return not alert.fires, -alert.moment


@guarded
class AlertService(Rules):
    """Alerts of the organization of the caller, at machines at which the caller has a role."""

    @allow(AT_ALERTS)
    async def list_alerts(self) -> list[m.Alert]:
        """Return the alerts that fire or were acknowledged, those that fire first, then the newest ones first.

        At most MAX_ALERTS.
        """
        return (await self.overview(MAX_ALERTS)).alerts

    @allow(AT_ALERTS)
    async def overview(self, limit: int) -> AlertOverview:
        """Return at most `limit` alerts, as `list_alerts` does, and the numbers of all of them. Not an RPC."""

        def work(sql: Sql) -> AlertOverview:
            owner = holder(sql, self.author).organization
            if not owner:
                return AlertOverview(0, 0, [])
            records = states.open_alerts(sql, owner)
            visible = self._visible(sql, owner, [record.part for record in records])
            by_id = {record.id: record for record in rules(sql, owner)}
            shown = [record for record in records if record.part in visible and record.rule_id in by_id]
            shown.sort(key=_urgency)
            firing = sum(record.fires for record in shown)
            listed = [
                _alert(sql, states.alert(sql, owner, record.id), by_id[record.rule_id]) for record in shown[:limit]
            ]
            return AlertOverview(firing, len(shown), listed)

        return await self.read(work)

    @allow(AT_ALERTS)
    async def firing(self) -> int:
        """Return the number of alerts that fire and that the caller may see. Not an RPC: each page asks for it."""

        def work(sql: Sql) -> int:
            owner = holder(sql, self.author).organization
            alerts = states.firing(sql, owner) if owner else []
            visible = self._visible(sql, owner, [part for _, part in alerts])
            existing = {record.id for record in rules(sql, owner)} if alerts else set()
            return sum(part in visible and rule_id in existing for rule_id, part in alerts)

        return await self.read(work)

    def _visible(self, sql: Sql, owner: str, parts: list[str]) -> set[str]:
        """Return the parts of these at which the caller has a role; "" if it may see training jobs."""
        role = holder(sql, self.author).role(place_of(sql, ObjectKind.ORGANIZATION, owner))
        named = list(dict.fromkeys(part for part in parts if part))
        if role >= Role.OPERATOR:  # all machines, and those that were deleted, which the history has too
            return {*named, *([""] if role >= Role.OWNER else [])}
        machines = fleet(sql, self.author, named) if named else []
        return {part.id for machine in machines if machine.role >= Role.OPERATOR for part in machine.parts}

    @allow(operator(ObjectKind.ALERT, "alert_id"))
    async def get_alert(self, alert_id: str) -> m.Alert:
        """Return one alert, also one that was resolved."""

        def work(sql: Sql) -> m.Alert:
            owner, _ = states.owner_of(sql, alert_id)
            record = states.alert(sql, owner, alert_id)
            return _alert(sql, record, rule(sql, owner, record.rule_id))

        return await self.read(work)

    @allow(AT_ALERTS)
    async def list_alert_events(self, alert_id: str = "", before: int = 0, limit: int = 0) -> m.AlertEvents:
        """Return events of all alerts, or of one, with numbers below `before` (0: the newest), newest first.

        At most `limit`; 0 means 50, and more than 500 mean 500.
        """
        if before < 0 or limit < 0:
            raise MachineError(f"before ({before}) and limit ({limit}) must not be negative", kind=ErrorKind.INVALID)
        most = min(limit or history.PAGE, history.MAX_PAGE)

        def work(sql: Sql) -> m.AlertEvents:
            owner = holder(sql, self.author).organization
            shown: list[m.AlertEvent] = []
            last = before
            for _ in range(PAGES if owner else 0):
                page = history.events(sql, owner, alert=alert_id, before=last or None, limit=most)
                visible = self._visible(sql, owner, [event.part for event in page])
                for event in page:
                    last = event.number
                    if event.part in visible:
                        shown.append(_event(event))
                    if len(shown) == most:
                        return m.AlertEvents(shown, last)
                if len(page) < most:
                    return m.AlertEvents(shown, 0)
            return m.AlertEvents(shown, last if owner else 0)

        return await self.read(work)

    @allow(operator(ObjectKind.ALERT, "alert_id"))
    async def acknowledge_alert(self, alert_id: str) -> None:
        """Note that the caller takes care of an alert: there are no more reminders. PRECONDITION unless it fires."""

        def work(sql: Sql) -> None:
            before = self._happen(sql, alert_id, Acknowledged(self._name(sql)))
            if before not in OPEN:
                raise MachineError(
                    f"the alert is {before.value}: only one that fires can be acknowledged", kind=ErrorKind.PRECONDITION
                )

        await self.change(work)

    @allow(operator(ObjectKind.ALERT, "alert_id"))
    async def silence_alert(self, alert_id: str, until: datetime | None = None) -> None:
        """Send nothing about an alert before `until`, at most 30 days ahead; without it, end the silence."""
        self._check_end(until)
        await self.change(lambda sql: self._happen(sql, alert_id, Silenced(until, self._name(sql))))

    @allow(operator(ObjectKind.ORGANIZATION, "organization_id"))
    async def silence_alerts(
        self, organization_id: str, rule_id: str = "", machine_id: str = "", until: datetime | None = None
    ) -> None:
        """Send nothing about all alerts of a rule or of a machine before `until`; without it, end the silence.

        It covers alerts that begin to fire later, too. `until` is at most 30 days ahead. INVALID unless either a rule
        or a machine is given; NOT_FOUND; EXHAUSTED.
        """
        if bool(rule_id) == bool(machine_id):
            raise MachineError(
                "the call names a rule and a machine, or neither", kind=ErrorKind.INVALID, remedy="name one of them"
            )
        self._check_end(until)

        def work(sql: Sql) -> None:
            if until is None:
                changing.unsilence(sql, organization_id, rule_id, machine_id, self.now())
            else:
                silence = Silence(rule_id, machine_id, until, self._name(sql))
                changing.silence(sql, organization_id, silence, self.now())

        await self.change(work)

    @allow(operator(ObjectKind.ORGANIZATION, "organization_id"))
    async def list_alert_silences(self, organization_id: str) -> list[m.AlertSilence]:
        """Return the silences of rules and machines that have not ended, the next to end first."""
        return await self.read(lambda sql: self._silences(sql, organization_id))

    @allow(AT_ALERTS)
    async def list_own_silences(self) -> tuple[str, list[m.AlertSilence]]:
        """Return the caller's organization with its silences; "" and none if it may not change them. Not an RPC."""

        def work(sql: Sql) -> tuple[str, list[m.AlertSilence]]:
            owner = operated(sql, self.author)
            return owner, self._silences(sql, owner) if owner else []

        return await self.read(work)

    def _silences(self, sql: Sql, owner: str) -> list[m.AlertSilence]:
        listed = silences.silences(sql, owner, self.now())
        names = {record.id: record.rule.name for record in rules(sql, owner)} if listed else {}
        return [
            m.AlertSilence(each.rule, each.machine, each.name or names[each.rule], each.until, each.by)
            for each in listed
            if each.name or each.rule in names
        ]

    def _check_end(self, until: datetime | None) -> None:
        if until is not None and not timedelta(0) < until - self.now() <= LONGEST_SILENCE:
            raise MachineError(
                "the end of the silence is not within the next 30 days", kind=ErrorKind.INVALID, remedy="choose another"
            )

    def _happen(self, sql: Sql, alert_id: str, event: Event) -> Phase:
        owner, _ = states.owner_of(sql, alert_id)
        record = states.alert(sql, owner, alert_id)
        subject, _ = subject_of(sql, owner, record.part, record.source)
        states.apply(sql, rule(sql, owner, record.rule_id), subject, [event], self.now())
        return record.state.phase

    def _name(self, sql: Sql) -> str:
        try:
            return key(sql, self.author.name).name
        except MachineError:
            raise missing("key", self.author.name) from None


def _alert(sql: Sql, record: AlertRecord, of: RuleRecord) -> m.Alert:
    subject, _ = subject_of(sql, record.organization, record.part, record.source)
    state, condition = record.state, of.rule.condition
    return m.Alert(
        id=record.id,
        rule_id=record.rule_id,
        rule=of.rule.name,
        kind=of.rule.kind.value,
        state=state.phase.value,
        part_id=record.part,
        machine=subject.machine,
        location=subject.location,
        source=record.source,
        since=state.since,
        fired=state.changed,
        seen=state.seen,
        value=None if state.absent else state.value,
        threshold=_threshold(of.rule),
        path=condition.path if condition is not None else "",
        acknowledged_by=state.by if state.phase is Phase.ACKNOWLEDGED else "",
        silenced_until=max(filter(None, (state.silenced, state.covered)), default=None),
        machine_id=subject.machine_id,
        covered=state.covered is not None,
    )


_SIGNS: Final = {"gt": "above", "gte": "at least", "lt": "below", "lte": "at most", "eq": "equal to", "neq": "not"}


def _threshold(chosen: Rule) -> str:
    condition = chosen.condition
    return "" if condition is None else f"{_SIGNS[condition.comparison]} {shown_value(condition.threshold)}"


def _event(event: history.AlertEvent) -> m.AlertEvent:
    return m.AlertEvent(
        number=event.number,
        alert_id=event.alert,
        rule_id=event.rule_id,
        rule=event.rule,
        part_id=event.part,
        machine=event.machine,
        location=event.location,
        source=event.source,
        kind=event.kind,
        happened=event.happened,
        value=event.value,
        detail=event.detail,
    )
