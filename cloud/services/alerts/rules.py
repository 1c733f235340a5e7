"""Rules of alerts, who is notified, test messages, and previews."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

import trio

from cloud.documents.readable import check_readable
from cloud.domain.alerts import changing, notices, states
from cloud.domain.alerts.rule import Kind, Rule, decoded, encoded
from cloud.domain.alerts.rules import RuleRecord, applies, reaches, rule, rules
from cloud.domain.alerts.subjects import place_of
from cloud.domain.alerts.wording import Entry
from cloud.domain.data.filters import DataFilter, DataScope
from cloud.domain.data.segments.plotting import captured
from cloud.domain.data.series import Plotted
from cloud.domain.permissions.access import ObjectKind, Role, role_at
from cloud.domain.permissions.access import place_of as access_place
from cloud.domain.permissions.rules import allow, operator, owner
from cloud.domain.triggering import alert_targets, deliveries
from cloud.domain.triggering.deliveries import DeliveryState
from cloud.services.alerts import alert_messages as m
from cloud.services.alerts.preview import matching, previewed
from cloud.services.common.base import Service
from cloud.services.common.standing import while_allowed
from cloud.store.sql import Sql
from cloud.values.times import moment_of
from cloud.work.openings import STREAMS
from schema import ErrorKind, MachineError, origin_of, whole_numbers

WEEK: Final = timedelta(days=7)
POINTS: Final = 2000  # buckets of a preview: 5 to 10 minutes each
TIMES: Final = 100  # times of one source in a preview
MAX_WAIT: Final = 20.0  # seconds that one call waits for answers to a test


def _waits(answers: Sequence[m.AlertAnswer]) -> bool:
    return any(answer.state == DeliveryState.WAITING.value for answer in answers)


class Rules(Service):
    """Rules of an organization."""

    @allow(operator(ObjectKind.ORGANIZATION, "organization_id"))
    async def list_alert_rules(self, organization_id: str) -> list[m.AlertRule]:
        """Return the rules, the built-in ones first."""

        def work(sql: Sql) -> list[m.AlertRule]:
            place = access_place(sql, ObjectKind.ORGANIZATION, organization_id)
            whole = role_at(sql, self.author, place) >= Role.OWNER
            counts = states.open_of_rules(sql, organization_id)
            return [
                m.AlertRule(
                    record.id,
                    record.rule.name,
                    record.builtin,
                    record.changed,
                    counts.get(record.id, 0),
                    reaches(sql, organization_id, record.id),
                    _shown(record.rule, whole=whole),
                )
                for record in rules(sql, organization_id)
            ]

        return await self.read(work)

    @allow(owner(ObjectKind.ORGANIZATION, "organization_id"))
    async def set_alert_rule(
        self, organization_id: str, rule: Mapping[str, Any], rule_id: str = "", name: str = ""
    ) -> str:
        """Create a rule, or change the one with the id `rule_id`; return its id.

        `name` is used if `rule` has none. Alerts end without a notification if the rule means something else.
        """
        new = _decoded(rule, name)
        return await self.change(lambda sql: changing.change(sql, organization_id, rule_id, new, self.now()))

    @allow(owner(ObjectKind.ORGANIZATION, "organization_id"))
    async def delete_alert_rule(self, organization_id: str, rule_id: str) -> None:
        """Delete a rule; a built-in one becomes what it was at first. Its alerts end without a notification."""
        await self.change(lambda sql: changing.remove(sql, organization_id, rule_id, self.now()))

    # ---- targets

    @allow(owner(ObjectKind.ORGANIZATION, "organization_id"))
    async def list_alert_targets(self, organization_id: str) -> list[m.AlertTarget]:
        """Return who is notified by all rules that have no targets of their own."""

        def work(sql: Sql) -> list[m.AlertTarget]:
            listed = []
            for target in alert_targets.of_organization(sql, organization_id):
                newest = deliveries.newest_to(sql, organization_id, target.type, target.value)
                attempts = deliveries.attempts(sql, newest.id) if newest is not None else []
                last = attempts[-1] if attempts else None
                listed.append(
                    m.AlertTarget(
                        target.type,
                        target.value,
                        bool(target.secret),
                        newest.state.value if newest is not None else "",
                        last.error if last is not None else "",
                        last.started if last is not None else None,
                    )
                )
            return listed

        return await self.read(work)

    @allow(owner(ObjectKind.ORGANIZATION, "organization_id"))
    async def add_alert_target(self, organization_id: str, type: str, value: str, secret: str = "") -> None:  # noqa: A002 - field of the call
        """Notify a webhook or an email address. `secret` (`whsec_` and base64) signs webhooks and is never returned."""
        await self.change(
            lambda sql: alert_targets.add(sql, organization_id, type, value.strip(), secret.strip(), self.now())
        )

    @allow(owner(ObjectKind.ORGANIZATION, "organization_id"))
    async def remove_alert_target(self, organization_id: str, type: str, value: str) -> None:  # noqa: A002 - field of the call
        """Notify a target no more."""
        await self.change(lambda sql: alert_targets.remove(sql, organization_id, type, value))

    @allow(owner(ObjectKind.ORGANIZATION, "organization_id"))
    async def send_alert_test(self, organization_id: str, rule_id: str) -> list[str]:
        """Send a test message of a rule to its targets; return the ids of the deliveries. PRECONDITION without any."""

        def work(sql: Sql) -> list[str]:
            record = rule(sql, organization_id, rule_id)
            now = self.now()
            targets = alert_targets.of_rule(sql, organization_id, rule_id)
            if not targets:
                raise MachineError(
                    "the rule has no targets",
                    kind=ErrorKind.PRECONDITION,
                    remedy="add a target to it, or for all rules",
                )
            entry = Entry("test", "fired", "", "a test", "", "", None, now, now, self.cloud.links.page("/alerts"))
            created = notices.messages(
                sql, organization_id, record, [entry], targets, now, self.cloud.links.page, test=True
            )
            for delivery in created:
                deliveries.add(sql, delivery)
            return [delivery.id for delivery in created]

        return await self.change(work)

    @allow(owner(ObjectKind.ORGANIZATION, "organization_id"))
    async def wait_for_alert_test(self, organization_id: str, delivery_ids: Sequence[str]) -> list[m.AlertAnswer]:
        """Return the answers to test messages, once all are there, or after 20 seconds."""

        def work(sql: Sql) -> list[m.AlertAnswer]:
            answers = []
            for subject in delivery_ids[:TIMES]:
                delivery = deliveries.delivery(sql, organization_id, subject)
                attempts = deliveries.attempts(sql, subject)
                last = attempts[-1] if attempts else None
                state = "answered" if last and delivery.state is DeliveryState.DELIVERED else delivery.state.value
                status, error = (last.status, last.error) if last else (0, "")
                answers.append(m.AlertAnswer(delivery.type, delivery.value, state, status, error))
            return answers

        with (
            self.cloud.openings.hold(f"the key {self.author.name}", STREAMS),
            self.cloud.events.listening(deliveries.TOPIC, organization_id) as news,
        ):
            answers = await self.read(work)
            with trio.move_on_after(MAX_WAIT):
                with while_allowed(self.cloud, self.author, self.again):
                    while _waits(answers) and not self.cloud.openings.closing:
                        await news.all()
                        answers = await self.read(work)
        return answers

    # ---- previews

    @allow(operator(ObjectKind.ORGANIZATION, "organization_id"))
    async def explain_alert_rule(
        self, organization_id: str, rule: Mapping[str, Any], name: str = ""
    ) -> m.ExplainAlertRuleResponse:
        """Return what a rule would have caused in the last week, from the readings that are stored."""
        chosen = _decoded(rule, name or "preview")
        end = self.now()
        start = end - WEEK
        if chosen.kind is not Kind.READING or chosen.condition is None:
            note = "the cloud keeps no history of this kind: only rules about readings have a preview"
            await self.read(lambda sql: None)
            return m.ExplainAlertRuleResponse(start, end, 0, [], [note])
        condition = chosen.condition
        data_filter = DataFilter(
            organizations=(organization_id,),
            component_type=condition.component_type,
            component=condition.component,
            method=condition.method,
            start=start,
            end=end,
        )
        stored = self.cloud.readings(self, lambda sql: DataScope((organization_id,)), organization_id)
        found_data = await captured(stored, data_filter, POINTS)
        if found_data is None:
            return m.ExplainAlertRuleResponse(start, end, 0, [], ["there are no readings in the last week"])
        plotted = await self.offload(found_data.size, lambda: found_data.parsed())
        inside = await self.read(lambda sql: _inside(sql, chosen, plotted))
        return await self.offload(found_data.size, lambda: _preview(chosen, plotted, inside, start=start, end=end))


def _inside(sql: Sql, chosen: Rule, plotted: Plotted) -> set[str]:
    """Return the parts among the sources of a plot that are in the scope of a rule."""
    inside = set()
    for part in {series.source.part_id for series in plotted.series}:
        place = place_of(sql, part)
        if place is not None and applies(sql, chosen, place):
            inside.add(part)
    return inside


def _preview(chosen: Rule, plotted: Plotted, inside: set[str], *, start: Any, end: Any) -> m.ExplainAlertRuleResponse:
    assert chosen.condition is not None
    sources, notes = [], []
    first = end
    for series in plotted.series:
        fields = matching(chosen.condition, series.fields)
        if series.source.part_id not in inside or not fields:
            continue
        first = min(first, *(moment_of(field.start) for field in fields))
        result = previewed(chosen, fields, plotted.buckets, end)
        if result is None:
            notes.append(f"{series.source.machine}, {series.source.component}: its values cannot be compared")
            continue
        source = f"{series.source.component_type}:{series.source.component}:{series.source.method}"
        fired, count = result.fired[-TIMES:], len(result.fired)
        sources.append(
            m.PreviewSource(series.source.machine, source, fired, count, result.open, result.least, result.greatest)
        )
    if plotted.more:
        notes.append("only the 12 sources with the newest readings were considered")
    if plotted.sampled:
        notes.append("there are many readings: a sample of them was considered")
    if sources and first > start + timedelta(hours=1):
        notes.append(f"there are no readings before {first.isoformat(timespec='minutes')}")
    if not sources:
        notes.append("no machine of the rule has readings with this field in the last week")
    return m.ExplainAlertRuleResponse(start, end, sum(source.count for source in sources), sources, notes)


def _decoded(value: Mapping[str, Any], name: str) -> Rule:
    check_readable(value)
    fields = dict(whole_numbers(value))
    if name:
        fields.setdefault("name", name)
    return decoded(fields)


def _shown(chosen: Rule, *, whole: bool) -> Mapping[str, Any]:
    shown = encoded(chosen)
    if not whole:
        for target in shown.get("targets", ()):
            target["value"] = origin_of(target["value"]) if target["type"] == "webhook" else target["value"]
    return shown


def shown_rule(record: RuleRecord) -> Mapping[str, Any]:
    """Return a rule for its owner, without secrets."""
    return _shown(record.rule, whole=True)
