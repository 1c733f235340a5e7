"""Last-seen times: many calls share one write, and no call is lost at the end."""

from __future__ import annotations

from datetime import datetime, timedelta
from math import inf

import pytest
import trio
import trio.testing

from cloud.domain.fleet.seen import FRESH, Seen
from cloud.domain.machines.machines import part
from cloud.domain.machines.online import SILENCE, Presence, presence, silent_for
from cloud.server.memory import APP, ROBOT, MemoryCloud
from tests.unit.cloud.conftest import Clock

LIMIT = 30.0


async def new_part(cloud: MemoryCloud, name: str = "rover") -> str:
    robot = await cloud.client().call(APP, "", "new_robot", name=name, location=cloud.first.location)
    return str((await cloud.client().call(APP, "", "get_robot_parts", robot_id=robot))[0]["id"])


async def called(cloud: MemoryCloud, subject: str) -> datetime | None:
    """Return the last-seen time of the part in the database."""
    return (await cloud.cloud.store.read(lambda sql: part(sql, subject))).seen


async def silence(cloud: MemoryCloud, subject: str) -> float:
    """Return for how many seconds the part has been silent according to the database; infinite if it never called."""
    moment = await called(cloud, subject)
    return inf if moment is None else (cloud.cloud.clock() - moment).total_seconds()


async def test_the_first_call_is_stored_at_once_and_later_ones_together(cloud: MemoryCloud, clock: Clock) -> None:
    subject = await new_part(cloud)
    machine = cloud.client(subject, "robot-secret")
    assert await silence(cloud, subject) == inf
    await machine.call(ROBOT, "", "config", id=subject)
    assert await silence(cloud, subject) < 1

    clock.now += timedelta(seconds=10)
    for method, more in (("config", {}), ("needs_restart", {}), ("log", {"logs": [{"message": "m"}]})):
        await machine.call(ROBOT, "", method, id=subject, **more)
    assert await silence(cloud, subject) >= 10  # nothing was written
    taken = cloud.cloud.seen.take()
    assert taken.keys() == {subject}
    assert clock.now - taken[subject] < timedelta(seconds=1)

    clock.now += FRESH
    await machine.call(ROBOT, "", "needs_restart", id=subject)
    assert await silence(cloud, subject) < 1


async def test_pending_contacts_are_stored_at_the_end(cloud: MemoryCloud, clock: Clock) -> None:
    subject, seen = await new_part(cloud), Seen()
    assert seen.called(subject, clock())
    clock.now += timedelta(seconds=5)
    assert not seen.called(subject, clock())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(seen.run, cloud.cloud.store)
        await trio.testing.wait_all_tasks_blocked()
        assert await silence(cloud, subject) == inf
        nursery.cancel_scope.cancel()
    assert await silence(cloud, subject) < 1


async def test_a_connection_is_stored_soon_and_announced(cloud: MemoryCloud, clock: Clock) -> None:
    subject = await new_part(cloud)
    with trio.fail_after(LIMIT), cloud.cloud.events.listening("seen") as news:
        cloud.cloud.seen.contacted(subject, clock())
        assert await news.next() == subject
    assert await silence(cloud, subject) < 1


def test_silent_parts_are_forgotten_even_if_the_clock_was_set_back(clock: Clock) -> None:
    seen = Seen()
    assert seen.called("a", clock())
    clock.now += timedelta(seconds=100)
    assert seen.called("b", clock())
    assert not seen.take()
    assert seen._last_calls.keys() == {"b"}
    clock.now -= timedelta(seconds=50)
    assert seen.called("b", clock())


def test_setting_the_clock_back_does_not_cause_a_write_per_call(clock: Clock) -> None:
    """Not even if a part with a later time never calls again."""
    seen = Seen()
    for item in ("gone", "stays"):
        assert seen.called(item, clock())
    clock.now -= timedelta(days=1)
    assert seen.called("stays", clock())
    for _ in range(5):
        seen.take()
        clock.now += timedelta(seconds=10)
        assert not seen.called("stays", clock())


async def test_a_wrong_clock_shows_no_part_online(cloud: MemoryCloud, clock: Clock) -> None:
    """The computer of the cloud started with tomorrow's date, which was corrected later."""
    clock.now += timedelta(days=1)
    subject, silent = await new_part(cloud), await new_part(cloud, "silent")
    for item in (subject, silent):
        await cloud.client(item, "robot-secret").call(ROBOT, "", "needs_restart", id=item)
    clock.now -= timedelta(days=1)
    assert presence(await called(cloud, silent), clock(), online=False) is Presence.OFFLINE
    assert silent_for(await called(cloud, silent), clock(), online=False) == 0
    with trio.fail_after(LIMIT), cloud.cloud.events.listening("seen", subject) as news:
        cloud.cloud.seen.contacted(subject, clock())
        await news.next()
    assert presence(await called(cloud, subject), clock(), online=False) is Presence.ONLINE


@pytest.mark.parametrize(
    ("ago", "expected", "seconds"),
    [
        (timedelta(0), Presence.ONLINE, 0),
        (timedelta(seconds=-5), Presence.ONLINE, 0),  # the clock of a replica may be slightly ahead
        (SILENCE - timedelta(seconds=1), Presence.ONLINE, 0),
        (SILENCE, Presence.OFFLINE, 60),
        (-SILENCE, Presence.OFFLINE, 0),
    ],
)
def test_parts_that_are_online(ago: timedelta, expected: Presence, seconds: int, clock: Clock) -> None:
    assert presence(clock.now - ago, clock.now, online=False) is expected
    assert silent_for(clock.now - ago, clock.now, online=False) == seconds
    assert presence(clock.now - ago, clock.now, online=True) is Presence.ONLINE
    assert silent_for(clock.now - ago, clock.now, online=True) == 0
    assert presence(None, clock.now, online=False) is Presence.NEVER


async def test_an_older_contact_does_not_replace_a_newer_one(cloud: MemoryCloud, clock: Clock) -> None:
    """Of two replicas that heard a part, the one that writes last may have the older time."""
    subject = await new_part(cloud)
    first, other = Seen(), Seen()
    for replica in (first, other):
        replica.called(subject, clock())
        replica.called(subject, clock())
        clock.now += timedelta(seconds=3)
    for replica in (other, first):
        await replica._write(cloud.cloud.store)
    assert await silence(cloud, subject) < 4


async def test_a_new_secret_does_not_notify_listeners_of_keys(cloud: MemoryCloud) -> None:
    """Creating a machine must not make every connected machine reload its configuration."""
    with cloud.cloud.events.listening("key") as keys, cloud.cloud.events.listening("key", also=["secret"]) as both:
        subject = await new_part(cloud)
        with trio.fail_after(LIMIT):
            assert subject in await both.all()
        with trio.move_on_after(0):
            raise AssertionError(await keys.next())


async def test_a_concurrently_deleted_part_is_ignored(cloud: MemoryCloud, clock: Clock) -> None:
    subject, seen = await new_part(cloud), Seen()
    for item in ("gone", subject):
        seen.called(item, clock())
        seen.called(item, clock())
    await seen._write(cloud.cloud.store)
    assert await silence(cloud, subject) < 1
