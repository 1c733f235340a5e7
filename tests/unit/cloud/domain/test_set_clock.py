"""No part appears offline because the clock of the cloud was set forward or its computer was suspended."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
import trio
import trio.testing

from cloud.domain.machines.machines import note_seen
from cloud.domain.triggering.presence import Watch, went_offline
from cloud.server.memory import MemoryCloud
from cloud.store.sql import Sql
from tests.unit.cloud.conftest import Clock
from tests.unit.cloud.pages import HOST, signed_in

LIMIT = 30.0
ORIGIN = {"origin": f"http://{HOST}"}


@pytest.fixture
async def part(cloud: MemoryCloud, machine: str, clock: Clock, nursery: trio.Nursery) -> AsyncIterator[str]:
    """Yield a part that has just called a cloud with a running watch; then the clock jumps forward by five hours."""
    subject: str = (await cloud.app("get_robot_parts", robot_id=machine))[0]["id"]
    store, events = cloud.cloud.store, cloud.cloud.events
    await nursery.start(Watch(store, events, clock).run)
    with trio.fail_after(LIMIT), events.listening("presence", subject) as news:
        await store.write(lambda sql: note_seen(sql, subject, clock()))
        await news.next()
    clock.now += timedelta(hours=5)
    yield subject
    nursery.cancel_scope.cancel()


async def give_up(cloud: MemoryCloud, part: str) -> None:
    """Do what the watch does after one minute of silence."""
    assert await cloud.cloud.store.write(lambda sql: went_offline(sql, [part], cloud.cloud.clock())) == []


async def test_a_deleted_part_is_forgotten(cloud: MemoryCloud, part: str) -> None:
    def work(sql: Sql) -> list[str]:
        sql.run("INSERT INTO trigger_presence (part_id, online, changed) VALUES ('deleted', 1, 0)")
        return went_offline(sql, ["deleted", part], cloud.cloud.clock())

    assert await cloud.cloud.store.write(work) == []
    rows = await cloud.cloud.store.read(lambda sql: sql.rows("SELECT part_id, online FROM trigger_presence"))
    assert [(row["part_id"], row["online"]) for row in rows] == [(part, 0)]


async def states(cloud: MemoryCloud, machine: str, part: str) -> set[tuple[str, int]]:
    """Return the state and the seconds since the last contact, from every call that reports them."""
    (location,) = await cloud.app("list_machine_summaries", organization_id=cloud.first.organization)
    (summary,) = location["machine_summaries"]
    messages: list[Any] = [
        await cloud.app("get_robot", id=machine),
        (await cloud.app("get_robot_part", id=part))["part"],
        *summary["part_summaries"],
    ]
    return {(message["online_state"], int(message["seconds_since_online"])) for message in messages}


async def test_calls_keep_a_part_online_until_the_time_limit(cloud: MemoryCloud, machine: str, part: str) -> None:
    assert await states(cloud, machine, part) == {("ONLINE", 0)}
    await give_up(cloud, part)
    assert await states(cloud, machine, part) == {("OFFLINE", 5 * 3600)}


@pytest.mark.parametrize("page", ["/", "/machines/{part}"])
async def test_pages_show_that_a_part_is_online(cloud: MemoryCloud, part: str, page: str) -> None:
    text = (await (await signed_in(cloud)).get(page.format(part=part))).text
    assert "is-online" in text
    assert "is-offline" not in text


@pytest.mark.parametrize(
    ("page", "before"),
    [
        ("/live/machines", "is-online"),
        ("/live/machines/{part}", "is-online"),
        ("/machines/{part}/config/live", "does not run revision 1 yet"),
    ],
)
async def test_live_pages_show_when_a_part_goes_offline(cloud: MemoryCloud, part: str, page: str, before: str) -> None:
    person = await signed_in(cloud)
    with trio.fail_after(LIMIT):
        async with person.live(page.format(part=part), ORIGIN) as shown:
            text = "".join((await shown.patch()).values())
            assert before in text
            assert "is offline" not in text
            await give_up(cloud, part)
            text = "".join((await shown.patch()).values())
            assert "is-offline" in text or "is offline" in text
