"""From event to delivery: queued with the data, evaluated once and in order, with persistent notification intervals."""

from __future__ import annotations

import itertools
import json
import string
from datetime import timedelta
from functools import partial
from random import Random
from typing import Any

import pytest
import trio

from cloud.domain.configurations import configurations
from cloud.domain.data.readings import new_reading
from cloud.domain.machines import logs
from cloud.domain.machines.logs import LogQuery, LogRecord
from cloud.domain.triggering import deliveries, queue
from cloud.domain.triggering.configured import listens
from cloud.domain.triggering.evaluation import evaluate, evaluate_many, evaluate_some
from cloud.domain.triggering.hourly import INTERVAL, check
from cloud.domain.triggering.ingestion import Ingestion, ingested
from cloud.server.memory import MemoryCloud
from cloud.store.sql import Sql
from schema.errors import MachineError
from tests.unit.cloud.conftest import BOTH
from tests.unit.cloud.triggering_help import (
    URL,
    configure,
    email,
    evaluated,
    hotter,
    log,
    rows,
    tabular,
    trigger,
    upload,
    webhook,
)
from triggers.document import MAX_NAME
from triggers.ssrf import MAX_URL


async def waiting(cloud: MemoryCloud) -> int:
    return await cloud.cloud.store.read(queue.waiting)


async def test_an_upload_becomes_one_request_with_body_and_headers(cloud: MemoryCloud, part: str) -> None:
    await configure(cloud, part, tabular("all data", webhook(auth={"basic": {"username": "u", "password": "secret"}})))
    await upload(cloud, part, 20.5)
    (item,) = await evaluated(cloud, part)
    body = json.loads(item.body)
    assert (item.method, item.target, item.event) == ("POST", URL, "part_data_ingested")
    assert (body["component_name"], body["machine_name"], body["org_name"]) == ("oven", "rover", "Test")
    assert body["data"]["data"] == {"readings": {"celsius": 20.5}}
    assert dict(item.headers)["Part-Id"] == part
    assert "secret" not in repr(item)  # the password is added when the delivery is sent
    assert "Authorization" not in dict(item.headers)
    assert await waiting(cloud) == 0


async def test_events_without_triggers_are_not_queued(cloud: MemoryCloud, part: str) -> None:
    await upload(cloud, part, 1.0)
    await configure(cloud, part, trigger("on", "part_online"))
    await upload(cloud, part, 1.0)
    assert await waiting(cloud) == 0


async def test_an_upload_that_fails_queues_nothing(cloud: MemoryCloud, part: str) -> None:
    await configure(cloud, part, tabular("all"))
    now = cloud.cloud.clock()

    def work(sql: Sql) -> None:
        ingested(sql, Ingestion(part, "sensor", "oven", "Readings", "tabular", "f", now, now))
        raise MachineError("the disk is full")

    with pytest.raises(MachineError):
        await cloud.cloud.store.write(work)
    assert await waiting(cloud) == 0


async def test_conditions_select_readings(cloud: MemoryCloud, part: str) -> None:
    await configure(cloud, part, hotter("hot", 30), hotter("hotter", 40))
    await upload(cloud, part, 20, 35)
    await upload(cloud, part, 45)
    await upload(cloud, part, 10)
    assert [item.trigger for item in await evaluated(cloud, part)] == ["hot", "hot", "hotter"]


async def test_a_failure_in_the_transaction_leaves_the_event_and_no_delivery(cloud: MemoryCloud, part: str) -> None:
    await configure(cloud, part, tabular("all"))
    await upload(cloud, part, 1)

    def fails(sql: Sql) -> None:
        assert evaluate_some(sql, cloud.cloud.links.page) == 1
        raise MachineError("killed")

    for _ in range(3):
        with pytest.raises(MachineError):
            await cloud.cloud.store.write(fails)
    assert await log(cloud, part) == []
    assert await waiting(cloud) == 1
    assert len(await evaluated(cloud, part)) == 1
    assert len(await evaluated(cloud, part)) == 1


async def test_events_are_evaluated_in_order_and_fairly_among_parts(
    cloud: MemoryCloud, machine: str, part: str
) -> None:
    other = await cloud.app("new_robot_part", robot_id=machine, part_name="arm")
    await configure(cloud, part, tabular("all"))
    await configure(cloud, other, tabular("all"))
    for number in range(250):
        await upload(cloud, part if number % 2 else other, number)
    for first, rest in ((part, 1), (other, 0)):
        results = [
            json.loads(each.body)["data"]["data"]["readings"]["celsius"] for each in await evaluated(cloud, first)
        ]
        assert results == list(range(rest, 250, 2))


async def test_a_pause_applies_per_target_and_survives_restarts(cloud: MemoryCloud, part: str, clock: Any) -> None:
    often, seldom = webhook("https://a.test/", seconds_between_notifications=10), webhook("https://b.test/")
    seldom["seconds_between_notifications"] = 100
    await configure(cloud, part, tabular("all", often, seldom))
    for _ in range(30):
        await upload(cloud, part, 1)
        await evaluated(cloud, part)  # each transaction reads its state from the tables
        clock.now += timedelta(seconds=5)
    result = await evaluated(cloud, part)
    for target, interval, count in (("https://a.test/", 10, 15), ("https://b.test/", 100, 2)):
        times = [item.created for item in result if item.target == target]
        assert len(times) == count
        assert all(b - a >= timedelta(seconds=interval) for a, b in itertools.pairwise(times))


async def test_pauses_are_separate_per_part(cloud: MemoryCloud, machine: str, part: str) -> None:
    other = await cloud.app("new_robot_part", robot_id=machine, part_name="arm")
    for item in (part, other):
        await configure(cloud, item, tabular("all", webhook(seconds_between_notifications=1000)))
        await upload(cloud, item, 1)
        await upload(cloud, item, 2)
    assert len(await evaluated(cloud, part)) == 1
    assert len(await evaluated(cloud, other)) == 1


async def test_setting_the_clock_back_does_not_stop_deliveries(cloud: MemoryCloud, part: str, clock: Any) -> None:
    await configure(cloud, part, tabular("all", webhook(seconds_between_notifications=60)))
    await upload(cloud, part, 1)
    clock.now -= timedelta(days=300)
    await upload(cloud, part, 1)
    assert len(await evaluated(cloud, part)) == 2


async def test_one_invalid_trigger_does_not_stop_others(cloud: MemoryCloud, part: str) -> None:
    await configure(cloud, part, {"name": "broken"}, {"name": 5, "event": 7}, tabular("good"))
    await upload(cloud, part, 1)
    assert [item.trigger for item in await evaluated(cloud, part)] == ["good"]


async def test_events_and_deliveries_of_a_deleted_machine_are_deleted(
    cloud: MemoryCloud, machine: str, part: str
) -> None:
    await configure(cloud, part, tabular("all", webhook(seconds_between_notifications=60)))
    await upload(cloud, part, 1)
    await evaluated(cloud, part)
    await upload(cloud, part, 1)
    await cloud.app("delete_robot", id=machine)
    assert len(await evaluated(cloud, part)) == 1  # existing deliveries stay in the log
    assert await waiting(cloud) == 0
    assert await cloud.cloud.store.write(lambda sql: queue.forget(sql, cloud.cloud.clock())) == 2
    assert await rows(cloud, "SELECT * FROM trigger_clocks") == []


async def test_emails_go_to_addresses_and_to_owners_in_the_metadata(cloud: MemoryCloud, part: str) -> None:
    await configure(cloud, part, tabular("all", email("ann@example.com"), email("all_machine_owners")))
    await upload(cloud, part, 1)
    assert [item.target for item in await evaluated(cloud, part)] == ["ann@example.com", "all_machine_owners"]
    place = cloud.first.location
    await cloud.app("update_location_metadata", location_id=place, data={"email": ["b@c.de", " f@g.hi ", 7, "no"]})
    await upload(cloud, part, 1)
    entry = (await evaluated(cloud, part))[2:]
    assert [element.target for element in entry] == ["ann@example.com", "b@c.de", "f@g.hi"]
    assert len({result.id for result in entry}) == 3
    assert f"http://cloud.test/machines/{(await cloud.app('get_robot_part', id=part))['part']['robot']}" in str(
        entry[0].body.replace(b"=\r\n", b"")
    )


async def test_a_stopped_target_is_not_called_until_the_trigger_changes(cloud: MemoryCloud, part: str) -> None:
    store, clock = cloud.cloud.store, cloud.cloud.clock
    await configure(cloud, part, tabular("all", webhook("https://gone.test/"), webhook()))
    await upload(cloud, part, 1)
    gone = next(item for item in await evaluated(cloud, part) if item.target == "https://gone.test/")
    await store.write(lambda sql: deliveries.stop(sql, gone, "answered 410", clock()))
    await upload(cloud, part, 2)
    assert [element.target for element in (await evaluated(cloud, part))[2:]] == [URL]
    await configure(cloud, part, {**tabular("all", webhook("https://gone.test/"), webhook()), "notes": "new"})
    await upload(cloud, part, 3)
    assert [result.target for result in (await evaluated(cloud, part))[3:]] == ["https://gone.test/", URL]


async def test_triggers_of_a_fragment_apply(cloud: MemoryCloud, part: str) -> None:
    fragment = await cloud.app(
        "create_fragment",
        name="alarms",
        config={"triggers": [tabular("from the fragment")]},
        organization_id=cloud.first.organization,
    )
    text = json.dumps({"fragments": [{"id": fragment["id"]}]})
    await cloud.app("update_robot_part", id=part, name="", robot_config_json=text)
    assert (await cloud.cloud.store.read(lambda sql: configurations.resolved(sql, part)))["triggers"]
    await upload(cloud, part, 1)
    assert [item.trigger for item in await evaluated(cloud, part)] == ["from the fragment"]


async def test_logs_are_checked_every_hour(cloud: MemoryCloud, part: str, clock: Any) -> None:
    store = cloud.cloud.store
    await configure(cloud, part, trigger("errors", "conditional_logs_ingested", log_levels=["error", "warn"]))

    async def say(level: str, message: str, logger: str = "rdk") -> None:
        entry = {"host": "", "level": level, "time": clock(), "logger_name": logger, "message": message}
        await cloud.client(part, "robot-secret").call("viam.app.v1.RobotService", "", "log", id=part, logs=[entry])

    await say("error", "before the first check")
    due = await store.write(lambda sql: check(sql, clock()))
    await say("error", "it broke")
    await say("info", "all well")
    await say("error", "a webhook was not delivered", "app.trigger.errors")
    clock.now += INTERVAL / 2
    assert await store.write(lambda sql: check(sql, clock())) == due  # as after a restart: not yet due
    assert await evaluated(cloud, part) == []
    clock.now += INTERVAL / 2
    await store.write(lambda sql: check(sql, clock()))
    (item,) = await evaluated(cloud, part)
    assert [line["message"] for line in json.loads(item.body)] == ["it broke"]
    clock.now += INTERVAL
    await store.write(lambda sql: check(sql, clock()))
    assert len(await evaluated(cloud, part)) == 1  # no new entries
    await say("warn", "it smokes")
    clock.now += INTERVAL
    await store.write(lambda sql: check(sql, clock()))
    assert len(await evaluated(cloud, part)) == 2


async def test_a_late_log_entry_is_not_skipped(cloud: MemoryCloud, part: str, clock: Any) -> None:
    """Of two replicas that store entries at the same time, the one with the lower number may commit last."""
    store = cloud.cloud.store
    await configure(cloud, part, trigger("errors", "conditional_logs_ingested", log_levels=["error"]))
    await store.write(lambda sql: check(sql, clock()))
    clock.now += INTERVAL

    def keep(sql: Sql, number: int) -> None:
        logs.append(sql, part, [LogRecord(clock(), "error", "rdk", f"entry {number}")], clock())
        sql.run("UPDATE log_entries SET number = ? WHERE message = ?", number, f"entry {number}")

    for number in (8, 7):
        await store.write(partial(keep, number=number))
        await store.write(lambda sql: check(sql, clock()))
        clock.now += INTERVAL
    await store.write(lambda sql: check(sql, clock()))
    messages = [line["message"] for item in await evaluated(cloud, part) for line in json.loads(item.body)]
    assert sorted(messages) == ["entry 7", "entry 8"]


async def test_setting_the_clock_back_does_not_repeat_log_events(cloud: MemoryCloud, part: str, clock: Any) -> None:
    store = cloud.cloud.store
    await configure(cloud, part, trigger("errors", "conditional_logs_ingested", log_levels=["error"]))
    await store.write(lambda sql: check(sql, clock()))
    await store.write(lambda sql: logs.append(sql, part, [LogRecord(clock(), "error", "rdk", "once")], clock()))
    for step in (INTERVAL, -timedelta(days=1), 2 * timedelta(days=1), INTERVAL):
        clock.now += step
        await store.write(lambda sql: check(sql, clock()))
    assert len(await evaluated(cloud, part)) == 1


async def test_expensive_expressions_are_abandoned_without_delaying_others(
    cloud: MemoryCloud, machine: str, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cloud.domain.triggering.evaluation.EFFORT", 20_000)
    other = await cloud.app("new_robot_part", robot_id=machine, part_name="arm")
    slow = {"operator": "regex", "value": {"text": "(a?){300}c"}}
    conditional = {"data_capture_method": "sensor:oven:Readings", "conditions": {"evals": [slow]}}
    hog = trigger("hog", "conditional_data_ingested", conditional=conditional)
    await configure(cloud, part, hog, tabular("all", webhook("https://a.test/")))
    await configure(cloud, other, tabular("all"))
    now = cloud.cloud.clock()
    text = new_reading(now, now, {"readings": {"text": "a" * 8000}})
    what = Ingestion(part, "sensor", "oven", "Readings", "tabular", "f", now, now, (text,) * 50)
    for _ in range(2):
        await cloud.cloud.store.write(lambda sql: ingested(sql, what, now))
    await upload(cloud, other, 1)
    write, page = cloud.cloud.store.write, cloud.cloud.links.page
    assert await write(lambda sql: evaluate_many(sql, page)) == 1  # one page per call: then other parts are served
    assert await write(lambda sql: evaluate_many(sql, page)) == 1
    assert await write(lambda sql: evaluate_many(sql, page)) == 1
    assert [entry.trigger for entry in await log(cloud, part)] == ["all", "all"]
    assert [item.trigger for item in await log(cloud, other)] == ["all"]
    said = await cloud.cloud.store.read(lambda sql: logs.query(sql, part, LogQuery()))
    assert {element.logger for element in said} == {"app.trigger.conditions"}
    assert "its other readings were not evaluated" in said[0].message


@BOTH
async def test_names_of_any_length_can_be_indexed(cloud: MemoryCloud, part: str) -> None:
    """PostgreSQL refuses index rows over about 2,700 bytes; an error here would stop evaluation."""
    letters = Random(1)
    name = "".join(chr(letters.randrange(0x20000, 0x2A6D0)) for _ in range(MAX_NAME))
    path = "".join(letters.choice(string.ascii_letters + string.digits) for _ in range(MAX_URL - 15))
    target = webhook(f"https://a.test/{path}", seconds_between_notifications=5)
    await configure(cloud, part, tabular(name, target), tabular(name + "x"))
    await upload(cloud, part, 1)
    (item,) = await evaluated(cloud, part)
    await cloud.cloud.store.write(lambda sql: deliveries.stop(sql, item, "gone", cloud.cloud.clock()))
    await upload(cloud, part, 1)
    assert len(await evaluated(cloud, part)) == 1


async def test_invalid_addresses_in_metadata_are_skipped(cloud: MemoryCloud, machine: str, part: str) -> None:
    odd = ["a b@x.com", "a@x.com\nBcc: b@x.com", "=?utf-8?q?a=40y.com=2C?=@x.com", '"a"@x.com', "a\x7f@x.com", 5]
    await cloud.app("update_robot_metadata", id=machine, data={"email": [*odd, "ann@example.com", "ann@example.com"]})
    await configure(cloud, part, tabular("all", email("all_machine_owners")))
    await upload(cloud, part, 1)
    assert [item.target for item in await evaluated(cloud, part)] == ["ann@example.com"]


async def test_a_part_is_watched_according_to_its_configuration(cloud: MemoryCloud, part: str) -> None:
    online = frozenset({"part_online"})
    for triggers, expected in ((), False), ((trigger("a", "part_online"),), True), ((tabular("b"),), False):
        await configure(cloud, part, *triggers)
        assert await cloud.cloud.store.read(lambda sql: listens(sql, part, online)) is expected
    await cloud.app("update_robot_part", id=part, name="", robot_config_json='{"triggers": {"event": 5}}')
    assert await cloud.cloud.store.read(lambda sql: listens(sql, part, online)) is False
    assert await cloud.cloud.store.read(lambda sql: listens(sql, "nobody", online)) is False


async def test_events_left_by_a_killed_process_are_evaluated_at_the_start(cloud: MemoryCloud, part: str) -> None:
    await configure(cloud, part, tabular("all"))
    await upload(cloud, part, 1)
    with cloud.cloud.events.listening(deliveries.TOPIC) as created:
        async with trio.open_nursery() as nursery:
            await nursery.start(evaluate, cloud.cloud.store, cloud.cloud.events, cloud.cloud.links.page)
            with trio.fail_after(30):
                await created.next()
                await upload(cloud, part, 2)  # later events are evaluated when they arrive
                await created.next()
            nursery.cancel_scope.cancel()
    assert len(await log(cloud, part)) == 2
