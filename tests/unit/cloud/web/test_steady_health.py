"""Health of a machine: one count on every page, in calls and metrics, and offline at once after a goodbye."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from typing import Any

import trio

from cloud.domain.triggering.presence import came_online
from cloud.server.memory import ROBOT, MemoryCloud
from rpc.api.cloud_v1 import HEALTH
from tests.unit.cloud.conftest import Clock
from tests.unit.cloud.pages import signed_in
from tests.unit.cloud.web.test_web_fleet import part_of, report
from tests.unit.cloud.web.test_web_machine import LIMIT, connected


async def health(cloud: MemoryCloud) -> dict[str, Any]:
    (entry,) = await cloud.client().call(HEALTH, "", "list_health")
    return dict(entry)


async def test_every_page_call_and_metric_has_the_same_count(cloud: MemoryCloud, machine: str) -> None:
    person, subject = await signed_in(cloud), await part_of(cloud, machine)
    await report(cloud, subject, problems=1, unhealthy=2, waiting=1, revision="1")
    fleet = (await person.get("/")).text
    assert f'<a class="is-unhealthy" href="/machines/{subject}#resources">4</a>' in fleet
    assert "4 problems</a>" in (await person.get(f"/machines/{subject}")).text
    assert "but has 4 problems." in (await person.get(f"/machines/{subject}/config")).text
    metrics = (await person.get("/metrics")).text
    assert re.search(r"^machine_cloud_machine_problems\{[^}]*\} 4\.0$", metrics, re.MULTILINE)
    entry = await health(cloud)
    assert (entry["part_id"], entry["state"], entry["problems"]) == (subject, "degraded", 4)


async def test_a_caller_without_a_role_sees_no_health(cloud: MemoryCloud, machine: str) -> None:
    from cloud.domain.organizations.first import create_owner

    other = await cloud.cloud.store.write(lambda sql: create_owner(sql, "Other", cloud.cloud.clock()))
    assert await cloud.client(other.id).call(HEALTH, "", "list_health") == []


async def test_a_machine_that_stops_orderly_is_offline_at_once(
    cloud: MemoryCloud, clock: Clock, machine: str, part: str
) -> None:
    store = cloud.cloud.store
    with trio.fail_after(LIMIT), cloud.cloud.events.listening("presence", part) as news:
        async with connected(cloud, part) as follower:
            await report(cloud, part, unhealthy=1)
            await store.write(lambda sql: came_online(sql, [part], clock()))
            await news.next()
            assert (await health(cloud))["state"] == "degraded"
            await follower.says(goodbye=True)
            await news.next()
        assert (await health(cloud))["state"] == "offline"
        assert "is-offline" in (await (await signed_in(cloud)).get(f"/machines/{part}")).text
        clock.now += timedelta(seconds=1)
        entry = {"host": "", "level": "info", "time": clock.now, "logger_name": "rdk", "message": "stopped"}
        await cloud.client(part, "robot-secret").call(ROBOT, "", "log", id=part, logs=[entry])
        assert (await health(cloud))["state"] == "offline", "its last messages arrive later"
        rows = await store.read(lambda sql: sql.rows("SELECT online FROM trigger_presence"))
        assert [row["online"] for row in rows] == [1], "triggers ignore a restart"
        async with connected(cloud, part):
            assert (await health(cloud))["state"] == "degraded"


async def test_a_machine_whose_connection_is_lost_stays_as_it_is(cloud: MemoryCloud, machine: str, part: str) -> None:
    with trio.fail_after(LIMIT):
        async with connected(cloud, part) as follower:
            await report(cloud, part)
            await follower.sends(json.dumps({"goodbye": "no"}))
    assert (await health(cloud))["state"] == "online"
