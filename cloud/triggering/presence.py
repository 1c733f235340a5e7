"""Parts that come online and go offline: every transition is an event, once, whatever restarts or runs beside it.

Every part that calls is followed, whether it has triggers or not: pages and calls show what is recorded here.

A part is offline when nothing was heard of it for cloud.online.SILENCE, counted by a clock that nobody sets from the
moment when its call was written, which is at most cloud.seen.FLUSH later; after a start of the cloud, for as long from
that start. Of several replicas that one tells of a transition whose UPDATE
makes it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import trio

from cloud.online import SILENCE
from cloud.store.events import EVERY, Events
from cloud.store.sql import Sql, Store
from cloud.times import Clock, moment_of, stored
from cloud.triggering.configured import PRESENCE, listens
from cloud.triggering.queue import enqueue
from rpc.silence import stood_still
from triggers.events import Presence

SEEN: Final = "seen"  # told by cloud.machines.note_seen
CHANGED: Final = "presence"  # told by this module: pages show a part as online or offline
BATCH: Final = 500  # parts of one query


@dataclass(frozen=True, slots=True)
class Known:
    """A part that has called once. `online` is what was told last; False before anything was."""

    part: str
    online: bool
    seen: datetime


def known(sql: Sql) -> list[Known]:
    """Every part that has called."""
    rows = sql.rows(
        """
        SELECT parts.id AS id, seen, online FROM parts LEFT JOIN trigger_presence ON part_id = parts.id
        WHERE seen IS NOT NULL
        """
    )
    return [Known(row["id"], bool(row["online"]), moment_of(row["seen"])) for row in rows]


def strangers(sql: Sql, parts: Sequence[str]) -> list[str]:
    """Those of the parts that are not known to be online."""
    online: set[str] = set()
    for start in range(0, len(parts), BATCH):
        some = parts[start : start + BATCH]
        marks = ", ".join("?" * len(some))
        found = sql.rows(f"SELECT part_id FROM trigger_presence WHERE online = 1 AND part_id IN ({marks})", *some)
        online.update(row["part_id"] for row in found)
    return [part for part in parts if part not in online]


def came(sql: Sql, parts: Iterable[str], now: datetime) -> None:
    """These parts called and are online: tells of those that were not."""
    for part in parts:
        if sql.row("SELECT id FROM parts WHERE id = ?", part) is None:
            continue  # deleted meanwhile
        changed = sql.run(
            """
            INSERT INTO trigger_presence (part_id, online, changed) VALUES (?, 1, ?)
            ON CONFLICT (part_id) DO UPDATE SET online = 1, changed = excluded.changed
                WHERE trigger_presence.online = 0
            """,
            part,
            stored(now),
        )
        if changed:
            sql.notify(CHANGED, part)
            _tell(sql, part, now, online=True)


def went(sql: Sql, parts: Iterable[str], now: datetime) -> list[str]:
    """Nothing was heard of these parts: they are offline. Returned are those that are not: they called a replica."""
    alive = []
    for part in parts:
        row = sql.row("SELECT seen FROM parts WHERE id = ?", part)
        if row is None:
            sql.run("DELETE FROM trigger_presence WHERE part_id = ?", part)
        elif row["seen"] is not None and timedelta(0) <= now - moment_of(row["seen"]) < SILENCE:
            alive.append(part)
        elif sql.run(
            "UPDATE trigger_presence SET online = 0, changed = ? WHERE part_id = ? AND online = 1", stored(now), part
        ):
            sql.notify(CHANGED, part)
            _tell(sql, part, now, online=False)
    return alive


def _tell(sql: Sql, part: str, now: datetime, *, online: bool) -> None:
    if listens(sql, part, PRESENCE):
        enqueue(sql, part, Presence(online), now)


class Watch:
    """Follows who calls. Run it once in each process."""

    def __init__(self, store: Store, events: Events, clock: Clock) -> None:
        self._store = store
        self._events = events
        self._clock = clock
        self._deadlines: dict[str, float] = {}  # of parts that are online: when they are given up; Trio's clock

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Watch until cancelled; ready when it hears of everything that happens from now on."""
        with self._events.listening(SEEN) as news:
            await self._start()
            task_status.started()
            while True:
                heard: list[str] = []
                with trio.move_on_at(min(self._deadlines.values(), default=math.inf)):
                    heard = await news.all()
                if EVERY in heard:  # it is not known who called
                    await self._start()
                elif heard:
                    await self._hear(heard)
                await self._give_up()

    async def _start(self) -> None:
        now = self._clock()
        found = await self._store.read(known)
        recent = [one.part for one in found if not one.online and timedelta(0) <= now - one.seen < SILENCE]
        if recent:
            await self._store.write(lambda sql: came(sql, recent, self._clock()))
        self._online([*(one.part for one in found if one.online), *recent])

    async def _hear(self, heard: list[str]) -> None:
        new = await self._store.read(lambda sql: strangers(sql, heard))
        if new:
            await self._store.write(lambda sql: came(sql, new, self._clock()))
        self._online(heard)

    async def _give_up(self) -> None:
        moment = trio.current_time()
        silent = [part for part, deadline in self._deadlines.items() if deadline <= moment]
        window = SILENCE.total_seconds()
        if silent and stood_still(min(self._deadlines.values()), window):
            self._online(tuple(self._deadlines))  # this process did not run: who called meanwhile is heard now
        elif silent:
            alive = await self._store.write(lambda sql: went(sql, silent, self._clock()))
            for part in silent:
                del self._deadlines[part]
            self._online(alive)

    def _online(self, parts: Iterable[str]) -> None:
        deadline = trio.current_time() + SILENCE.total_seconds()
        self._deadlines.update(dict.fromkeys(parts, deadline))
