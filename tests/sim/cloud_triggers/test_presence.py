"""Presence to the second: silence, restarts, clocks that jump, replicas, deleted parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from cloud.domain.machines import machines
from cloud.domain.machines.online import Presence, presence
from cloud.domain.triggering.presence import Watch
from cloud.store.events import EVERY, Events
from cloud.store.sql import Sql
from tests.helpers.disk_store import DiskStore
from tests.sim.cloud_triggers.world import World, clock


class Cloud:
    """One disk and the processes that watch it."""

    def __init__(self) -> None:
        self.world = World(0)
        self.part = self.world.part("rover")
        self.processes: list[tuple[DiskStore, Events]] = []
        self.ahead: list[timedelta] = []
        self.jump = timedelta(0)

    def now(self) -> datetime:
        return clock() + self.jump

    async def start(self, nursery: trio.Nursery, ahead: timedelta = timedelta(0)) -> trio.CancelScope:
        """Start another process, whose clock is `ahead` of the others."""
        events = Events()
        store = DiskStore(self.world.disk, events, 10**9)
        scope = trio.CancelScope()

        async def run() -> None:
            with scope:
                await Watch(store, events, lambda: self.now() + ahead).run()

        nursery.start_soon(run)
        self.processes.append((store, events))
        self.ahead.append(ahead)
        await wait_all_tasks_blocked()
        return scope

    async def call(self, process: int = 0, *, notify: bool = True) -> None:
        """Let the machine call a replica. With `notify`, notify the others; otherwise the replica died first."""
        store, _ = self.processes[process]

        def work(sql: Sql) -> None:
            machines.note_seen(sql, self.part, self.now() + self.ahead[process])

        await store.write(work if notify else _silently(work))
        for number, (_, events) in enumerate(self.processes):
            if notify and number != process:
                events.notify("seen", self.part)
        await wait_all_tasks_blocked()

    def shown(self) -> Presence:
        """Return the presence that pages and calls show."""
        part = machines.part(self.world.sql(), self.part)
        return presence(part.seen, self.now(), online=part.online)

    def events(self) -> list[tuple[float, bool]]:
        """Return the recorded events as (seconds since the beginning, online)."""
        rows = self.world.sql().rows(
            "SELECT happened, event FROM trigger_events WHERE kind = 'presence' ORDER BY number"
        )
        return [(row["happened"] / 1e6 - 1_767_225_600, '"online":true' in row["event"]) for row in rows]


def _silently(work: Callable[[Sql], None]) -> Callable[[Sql], None]:
    def quiet(sql: Sql) -> None:
        work(sql)
        sql.events.clear()  # type: ignore[attr-defined]

    return quiet


@pytest.fixture
def cloud() -> Iterator[Cloud]:
    created = Cloud()
    yield created
    created.world.close()


def whole(cloud: Cloud) -> list[tuple[int, bool]]:
    return [(round(at), online) for at, online in cloud.events()]


async def test_offline_after_a_minute_of_silence(
    cloud: Cloud, nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    await cloud.start(nursery)
    await trio.sleep(100)
    assert cloud.events() == []  # the part is awaiting its setup
    for _ in range(20):
        await cloud.call()
        await trio.sleep(59)
    await trio.sleep(1000)
    await cloud.call()
    await trio.sleep(1000)
    begin, end = 100, 100 + 19 * 59 + 60
    again = 100 + 20 * 59 + 1000
    assert whole(cloud) == [(begin, True), (end, False), (again, True), (again + 60, False)]


async def test_after_a_restart_parts_have_a_full_minute_and_events_are_not_repeated(
    cloud: Cloud, nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    scope = await cloud.start(nursery)
    await cloud.call()
    scope.cancel()
    await trio.sleep(3600)  # the cloud is down
    scope = await cloud.start(nursery)
    await trio.sleep(50)
    scope.cancel()
    await cloud.start(nursery)
    await trio.sleep(1000)
    assert whole(cloud) == [(0, True), (3600 + 50 + 60, False)]


async def test_a_call_right_before_a_kill_causes_its_event(
    cloud: Cloud, nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    scope = await cloud.start(nursery)
    await trio.sleep(10)
    await cloud.call(notify=False)
    scope.cancel()
    await cloud.start(nursery)
    await trio.sleep(1000)
    assert whole(cloud) == [(10, True), (70, False)]


async def test_changes_without_a_watcher_cause_no_events(
    cloud: Cloud, nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    scope = await cloud.start(nursery)
    scope.cancel()
    await cloud.call(notify=False)
    await trio.sleep(3600)
    await cloud.start(nursery)
    await trio.sleep(1000)
    assert whole(cloud) == []


@pytest.mark.parametrize("hours", [-5, 5])
async def test_setting_the_clock_takes_no_part_offline(
    cloud: Cloud, nursery: trio.Nursery, autojump_clock: MockClock, hours: int
) -> None:
    await cloud.start(nursery)
    await cloud.call()
    await trio.sleep(30)
    cloud.jump = timedelta(hours=hours)
    assert cloud.shown() is Presence.ONLINE
    await trio.sleep(20)
    assert cloud.shown() is Presence.ONLINE
    await cloud.call()
    assert len(cloud.events()) == 1
    await trio.sleep(50)
    assert len(cloud.events()) == 1
    assert cloud.shown() is Presence.ONLINE
    await trio.sleep(20)
    assert [online for _, online in cloud.events()] == [True, False]
    assert cloud.shown() is Presence.OFFLINE


@pytest.mark.parametrize("hours", [-5, 5])
async def test_a_silent_machine_is_offline_after_a_minute_whatever_the_clock_says(
    cloud: Cloud, nursery: trio.Nursery, autojump_clock: MockClock, hours: int
) -> None:
    await cloud.start(nursery)
    await cloud.call()
    await trio.sleep(30)
    cloud.jump = timedelta(hours=hours)
    await trio.sleep(29)
    assert cloud.shown() is Presence.ONLINE
    await trio.sleep(2)
    assert cloud.shown() is Presence.OFFLINE


@pytest.mark.parametrize("seconds", [-3600, -50, 50, 3600])
async def test_different_clocks_of_replicas_take_no_part_offline(
    cloud: Cloud, nursery: trio.Nursery, autojump_clock: MockClock, seconds: int
) -> None:
    """The times that one replica writes look wrong to the other."""
    await cloud.start(nursery)
    await cloud.start(nursery, timedelta(seconds=seconds))
    for number in (0, 1, 1, 1, 1, 0, 0, 0, 0, 1):
        await cloud.call(number)
        await trio.sleep(50)
    assert [online for _, online in cloud.events()] == [True]
    await trio.sleep(120)
    assert [online for _, online in cloud.events()] == [True, False]


async def test_a_resumed_cloud_waits_a_minute_before_parts_go_offline(
    cloud: Cloud, nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    await cloud.start(nursery)
    await cloud.call()
    await trio.sleep(30)
    autojump_clock.jump(3600)
    await wait_all_tasks_blocked()
    await trio.sleep(50)
    await cloud.call()
    assert whole(cloud) == [(0, True)]
    await trio.sleep(30)
    autojump_clock.jump(3600)
    await wait_all_tasks_blocked()
    assert whole(cloud) == [(0, True)]
    await trio.sleep(100)
    assert whole(cloud) == [(0, True), (2 * 3600 + 110 + 60, False)]


async def test_a_lost_message_of_a_replica_takes_no_part_offline(
    cloud: Cloud, nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    await cloud.start(nursery)
    await cloud.call()
    await trio.sleep(40)
    await cloud.call(notify=False)  # the connection that notifies replicas is down
    await trio.sleep(40)
    assert len(cloud.events()) == 1
    for _, events in cloud.processes:
        events.notify("seen", EVERY)  # the connection is back, and what was missed is unknown
    await trio.sleep(1000)
    assert whole(cloud) == [(0, True), (140, False)]


async def test_two_replicas_report_every_change_once(
    cloud: Cloud, nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    await cloud.start(nursery)
    await trio.sleep(7)
    other = await cloud.start(nursery)
    for number in range(10):
        await cloud.call(number % 2)
        await trio.sleep(20)
    await trio.sleep(100)
    await cloud.call(1)
    await trio.sleep(10)
    other.cancel()  # the other process continues
    await trio.sleep(1000)
    assert whole(cloud) == [(7, True), (7 + 180 + 60, False), (307, True), (367, False)]


async def test_a_part_offline_at_another_replica_comes_online_here(
    cloud: Cloud, nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    await cloud.start(nursery)
    await cloud.call()
    await trio.sleep(10)
    cloud.world.sql().run("UPDATE trigger_presence SET online = 0")  # a change that this process does not know of
    await cloud.call()
    assert whole(cloud) == [(0, True), (10, True)]


async def test_a_deleted_part_is_no_longer_watched(
    cloud: Cloud, nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    await cloud.start(nursery)
    await cloud.call()
    sql = cloud.world.sql()
    machines.delete_machine(sql, machines.part(sql, cloud.part).machine_id)
    await trio.sleep(1000)
    assert whole(cloud) == [(0, True)]
    assert sql.rows("SELECT * FROM trigger_presence") == []
