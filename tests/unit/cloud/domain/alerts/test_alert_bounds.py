"""What is kept of alerts: events for some time and up to a number, and states up to a number."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from cloud.domain.alerts import history, notices, states
from cloud.domain.alerts.life import Level, Observed, Phase, Tick
from cloud.domain.alerts.reading import MAX_FIELDS, keys_of, value_of
from cloud.domain.alerts.rule import Condition
from cloud.domain.alerts.rules import rule
from cloud.domain.alerts.subjects import Subject
from cloud.domain.alerts.wording import MAX_LINE, SHOWN, Entry, line_of
from cloud.domain.triggering.deliveries import Delivery
from cloud.domain.triggering.training_targets import MessageTarget
from cloud.server.memory import MemoryCloud
from cloud.store.sql import Sql
from cloud.values.limits import ALERT_EVENTS, ALERTS, PART_ALERTS
from cloud.values.times import moment_of, stored
from tests.unit.cloud.conftest import BOTH, Clock

EVENT = (
    "INSERT INTO alert_events (organization_id, alert_id, rule_id, rule, part_id, machine, location, source, happened, "
    "recorded, kind, value, detail) VALUES (?, 'a', 'r', 'r', 'p', 'm', 'l', '', ?, ?, 'fired', 'null', '')"
)
STATE = (
    "INSERT INTO alerts (id, organization_id, rule_id, part_id, source, open, state, due, touched) "
    """VALUES (?, ?, 'machine-offline', ?, '', ?, '{"phase":"ok"}', NULL, ?)"""
)


def counted(sql: Sql, table: str) -> int:
    row = sql.row(f"SELECT COUNT(*) AS count FROM {table}")
    assert row is not None
    return int(row["count"])


@BOTH
async def test_events_are_kept_for_some_time_and_up_to_a_number(cloud: MemoryCloud, clock: Clock) -> None:
    owner, now = cloud.first.organization, clock()
    old = stored(now - history.RETENTION - timedelta(minutes=1))

    def work(sql: Sql) -> list[int]:
        sql.many(EVENT, [(owner, old, old)] * 10)
        first = history.expire(sql, now)
        sql.many(EVENT, [(owner, stored(now), stored(now))] * (ALERT_EVENTS.value + 7))
        newest = history.events(sql, owner, limit=1)[0].number
        second = history.expire(sql, now)
        assert history.events(sql, owner, limit=1)[0].number == newest
        assert history.events(sql, owner, alert="a", before=newest, limit=1)[0].number < newest
        return [first, second, counted(sql, "alert_events")]

    assert await cloud.cloud.store.write(work) == [10, 7, ALERT_EVENTS.value]


async def test_states_without_an_alert_are_forgotten_after_a_month(cloud: MemoryCloud, clock: Clock) -> None:
    owner, now = cloud.first.organization, clock()
    old = stored(now - states.KEPT - timedelta(minutes=1))

    def work(sql: Sql) -> int:
        sql.many(
            STATE, [("idle", owner, "1", 0, old), ("open", owner, "2", 1, old), ("new", owner, "3", 0, stored(now))]
        )
        states.expire(sql, now)
        return counted(sql, "alerts")

    assert await cloud.cloud.store.write(work) == 2


@pytest.mark.parametrize("fires", [True, False])
async def test_a_limited_number_of_alerts_of_an_organization_fire(
    cloud: MemoryCloud, clock: Clock, fires: bool
) -> None:
    """States without an alert, of which each machine that captures data has some, do not count."""
    owner, now = cloud.first.organization, clock()

    def work(sql: Sql) -> tuple[Phase | None, Phase | None, timedelta | None]:
        record = rule(sql, owner, "machine-offline")
        at_once = replace(record, rule=msgspec.structs.replace(record.rule, for_seconds=0))
        sql.many(STATE, [(f"a{number}", owner, str(number), int(fires), stored(now)) for number in range(ALERTS.value)])
        observed = [Observed(now, Level.BAD)]
        new = states.apply(sql, at_once, Subject(owner, "another", ""), observed, now)
        states.apply(sql, record, Subject(owner, "waits", ""), observed, now)
        later = now + timedelta(hours=1)
        waits = states.apply(sql, record, Subject(owner, "waits", ""), [Tick()], later)
        row = sql.row("SELECT due FROM alerts WHERE part_id = 'waits'")
        assert row is not None
        due = None if row["due"] is None else moment_of(row["due"])
        return new and new.phase, waits and waits.phase, due and due - later

    new, waits, due = await cloud.cloud.store.write(work)
    if fires:
        assert (new, waits, due) == (None, None, states.FULL)
    else:
        assert (new, waits) == (Phase.FIRING, Phase.FIRING)


async def test_one_machine_cannot_take_the_alerts_of_all(cloud: MemoryCloud, clock: Clock) -> None:
    owner, now = cloud.first.organization, clock()

    def work(sql: Sql) -> tuple[int, object]:
        record = rule(sql, owner, "disk-full")
        for number in range(ALERTS.value):
            subject = Subject(owner, "hostile", f"host:computer {number}:Readings")
            states.apply(sql, record, subject, [Observed(now, Level.GOOD, 1.0)], now)
        observed = [Observed(now, Level.BAD, 99.0)]
        return counted(sql, "alerts"), states.apply(sql, record, Subject(owner, "another", ""), observed, now)

    count, accepted = await cloud.cloud.store.write(work)
    assert count == PART_ALERTS.value
    assert accepted is not None


async def test_an_alert_that_flaps_makes_one_message_and_some_events(cloud: MemoryCloud, clock: Clock) -> None:
    owner, start = cloud.first.organization, clock()

    def work(sql: Sql) -> tuple[int, int]:
        record = rule(sql, owner, "machine-offline")
        record = replace(record, rule=msgspec.structs.replace(record.rule, for_seconds=0))
        for upload in range(3):
            moments = [start + timedelta(seconds=upload, milliseconds=each) for each in range(1000)]
            observed = [Observed(each, Level.GOOD if each.microsecond // 1000 % 2 else Level.BAD) for each in moments]
            states.apply(sql, record, Subject(owner, "p", ""), observed, moments[-1])
        return counted(sql, "alert_notices"), counted(sql, "alert_events")

    assert await cloud.cloud.store.write(work) == (1, 3 * states.AT_ONCE)


async def test_an_organization_is_deleted_with_its_alerts(cloud: MemoryCloud, clock: Clock) -> None:
    owner, now = cloud.first.organization, clock()
    await cloud.cloud.store.write(lambda sql: sql.many(STATE, [("a", owner, "1", 1, stored(now))]))
    await cloud.cloud.store.write(lambda sql: sql.many(EVENT, [(owner, stored(now), stored(now))]))
    await cloud.app("delete_location", location_id=cloud.first.location)
    await cloud.app("delete_organization", organization_id=owner)
    tables = ("alerts", "alert_events")
    assert await cloud.cloud.store.read(lambda sql: [counted(sql, table) for table in tables]) == [0, 0]


def test_a_pattern_is_compared_with_a_limited_number_of_fields() -> None:
    condition = Condition(path="*.*", comparison="gt", threshold=0.0)
    wide = {f"a{number}": {f"b{inner}": 1 for inner in range(100)} for number in range(1000)}
    assert value_of(condition, wide) == 1.0
    late = {**{f"a{number}": number for number in range(MAX_FIELDS)}, "hot": {"x": 9.0}}
    assert value_of(condition, late) is None


def test_names_that_json_escapes_are_not_looked_for() -> None:
    assert keys_of(Condition(path='a"b.temperature_*_c', comparison="gt", threshold=0.0)) == ("temperature_", "_c")


def test_messages_are_short_whatever_a_template_repeats() -> None:
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    entry = Entry("a", "fired", "m", "😀" * 200, "home", "", 1.0, None, moment, "https://cloud.test/")
    assert len(line_of("{machine}" * 55, "warm", "", entry)) == MAX_LINE + 1


async def test_a_message_has_lines_about_the_first_alerts(cloud: MemoryCloud, clock: Clock) -> None:
    owner, now = cloud.first.organization, clock()
    entries = [Entry(f"a{number}", "fired", "", "m", "", "", 1.0, None, now, "") for number in range(500)]
    targets = [
        MessageTarget(kind, value, "", now) for kind, value in (("webhook", "https://a.test/"), ("email", "a@b.c"))
    ]

    def work(sql: Sql) -> list[Delivery]:
        record = rule(sql, owner, "machine-offline")
        return notices.messages(sql, owner, record, entries, targets, now, cloud.cloud.links.page)

    webhook, mail = await cloud.cloud.store.read(work)
    body = json.loads(webhook.body)
    assert (len(body["alerts"]), body["more"], body["subject"]) == (SHOWN, 480, "Machine offline: 500 firing")
    assert b"and 480 more" in mail.body
