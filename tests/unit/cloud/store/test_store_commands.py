"""Commands during the run of a cloud: the cloud receives events for their writes at once, but none for its own."""

from __future__ import annotations

from pathlib import Path

import trio
import trio.testing

from cloud.domain.certificates import authorities
from cloud.domain.certificates.authorities import PORT
from cloud.domain.certificates.machine_names import LOOPBACK
from cloud.domain.certificates.port import FromAuthority
from cloud.store.commands import follow_commands, opened_for_command
from cloud.store.events import EVERY, Events
from cloud.store.postgres import PostgresStore
from cloud.store.sqlite import SqliteStore
from cloud.values.times import now

LIMIT = 30.0  # seconds; each step takes milliseconds


async def test_the_running_cloud_uses_a_rotation_by_command_immediately(
    tmp_path: Path, database: str, nursery: trio.Nursery
) -> None:
    file, events = tmp_path / "cloud.db", Events()
    store = PostgresStore(database, events) if database else SqliteStore(file, events)
    async with store.opened() as running:
        if not database:
            await nursery.start(follow_commands, file, events)
        port = FromAuthority(running, events, lambda: LOOPBACK)
        await port.look()
        before = port.context
        nursery.start_soon(port.run)
        await trio.testing.wait_all_tasks_blocked(0.05)  # wait until it listens
        with events.listening(authorities.TOPIC) as news:
            async with opened_for_command(file, database) as command_store:
                await command_store.write(lambda sql: authorities.rotate(sql, PORT, now()))
            with trio.fail_after(LIMIT):
                await news.next()
                while port.context is before:
                    await trio.testing.wait_all_tasks_blocked(0.05)
        nursery.cancel_scope.cancel()


async def test_only_events_with_listeners_are_sent(tmp_path: Path, nursery: trio.Nursery) -> None:
    file, events = tmp_path / "cloud.db", Events()
    async with SqliteStore(file, events).opened() as running:
        await nursery.start(follow_commands, file, events)
        with events.listening("key") as news:
            await running.write(lambda sql: sql.run("DELETE FROM settings"))
            async with opened_for_command(file, "") as command_store:
                await command_store.write(lambda sql: sql.run("DELETE FROM settings"))
            await trio.testing.wait_all_tasks_blocked(0.05)
            assert not news._unread
            async with opened_for_command(file, "") as command_store:
                await command_store.write(lambda sql: sql.notify("seen", "somebody"))
            with trio.fail_after(LIMIT):
                assert await news.all() == [EVERY]
        assert oct(file.stat().st_mode & 0o777) == "0o600"
        nursery.cancel_scope.cancel()


async def test_writes_take_effect_even_if_no_event_can_be_recorded(
    tmp_path: Path,
) -> None:
    file = tmp_path / "cloud.db"
    (tmp_path / "cloud.db.changed").mkdir()
    async with opened_for_command(file, "") as store:
        await store.write(lambda sql: authorities.rotate(sql, PORT, now()))
    async with opened_for_command(file, "") as store:
        assert await store.read(lambda sql: authorities.signing_authority(sql, PORT)) is not None
