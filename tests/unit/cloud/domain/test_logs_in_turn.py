"""Log entries of a part are numbered in commit order, even with two replicas."""

from __future__ import annotations

import threading

import trio

from cloud.domain.machines import logs
from cloud.domain.machines.logs import LogRecord
from cloud.store.events import Events
from cloud.store.postgres import PostgresStore
from cloud.store.sql import Sql
from cloud.values.times import now
from tests.postgresql import Cluster


def keep(sql: Sql, part: str, message: str) -> None:
    logs.append(sql, part, [LogRecord(time=now(), level="info", logger="x", message=message)], now())


async def test_followers_of_a_part_miss_no_entry(postgresql: Cluster) -> None:
    """Without a lock, the entry with the lower number could be committed last, and followers would skip it."""
    url = postgresql.fresh()
    written, go_on, kept = threading.Event(), threading.Event(), trio.Event()

    def slow(sql: Sql) -> None:
        keep(sql, "rover", "first")
        written.set()
        assert go_on.wait(30)

    async with PostgresStore(url, Events()).opened() as left, PostgresStore(url, Events()).opened() as right:

        async def second() -> None:
            await right.write(lambda sql: keep(sql, "rover", "second"))
            kept.set()

        with trio.fail_after(60):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(left.write, slow)
                assert await trio.to_thread.run_sync(written.wait, 30)
                nursery.start_soon(second)
                await right.write(lambda sql: keep(sql, "other", "at once"))  # entries of another part do not wait
                with trio.move_on_after(0.5) as waiting:
                    await kept.wait()
                go_on.set()
        assert waiting.cancelled_caught
        result = await right.read(lambda sql: logs.arrived(sql, "rover", 0))
    assert [item.message for item in result] == ["first", "second"]
