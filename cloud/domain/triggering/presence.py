"""Detects parts that come online and go offline. Each transition is one event, despite restarts and replicas.

All parts that call are tracked, with triggers or without, because pages and calls show what is recorded here.

A part is offline when it was silent for cloud.domain.machines.online.SILENCE, measured with a monotonic clock from the
moment when its call was stored, which is at most cloud.domain.fleet.seen.FLUSH later, or from the start of the cloud if
that is later. Among replicas, the one whose UPDATE makes the transition creates the event.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import takewhile
from typing import Final

import trio

from cloud.domain.machines import listed
from cloud.domain.machines.online import SILENCE
from cloud.domain.triggering.configured import PRESENCE, listens
from cloud.domain.triggering.queue import CheckDue, enqueue
from cloud.store.events import EVERY, Events
from cloud.store.sql import Sql, Store
from cloud.values.times import Clock, moment_of, stored
from rpc import was_suspended
from triggers import Presence

SEEN: Final = "seen"  # sent by cloud.domain.machines.machines.note_seen
CHANGED: Final = "presence"  # sent by this module: pages show a part as online or offline
BATCH: Final = 500  # parts in one query


@dataclass(frozen=True, slots=True)
class PartState:
    """A part that has called. `online` is its last recorded state; False if none was recorded."""

    part: str
    online: bool
    seen: datetime


def part_states(sql: Sql) -> list[PartState]:
    """Return all parts that have ever called."""
    rows = sql.rows(
        """
        SELECT parts.id AS id, seen, online FROM parts LEFT JOIN trigger_presence ON part_id = parts.id
        WHERE seen IS NOT NULL
        """
    )
    return [PartState(row["id"], bool(row["online"]), moment_of(row["seen"])) for row in rows]


def not_online(sql: Sql, parts: Sequence[str]) -> list[str]:
    """Return those of the parts that are not recorded as online."""
    online: set[str] = set()
    for start in range(0, len(parts), BATCH):
        batch = parts[start : start + BATCH]
        marks = ", ".join("?" * len(batch))
        rows = sql.rows(f"SELECT part_id FROM trigger_presence WHERE online = 1 AND part_id IN ({marks})", *batch)
        online.update(row["part_id"] for row in rows)
    return [part for part in parts if part not in online]


def came_online(sql: Sql, parts: Iterable[str], now: datetime) -> None:
    """Record that these parts called and are online; create events for those that were not."""
    for part in parts:
        if sql.row("SELECT id FROM parts WHERE id = ?", part) is None:
            continue  # deleted in the meantime
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
            listed.refresh_part(sql, part)
            sql.notify(CHANGED, part)
            _enqueue(sql, part, now, online=True)


def went_offline(sql: Sql, parts: Iterable[str], now: datetime) -> list[str]:
    """Record silent parts as offline. Return those that are not, because they called a replica."""
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
            listed.refresh_part(sql, part)
            sql.notify(CHANGED, part)
            _enqueue(sql, part, now, online=False)
    return alive


def _enqueue(sql: Sql, part: str, now: datetime, *, online: bool) -> None:
    if listens(sql, part, PRESENCE):
        enqueue(sql, part, Presence(online), now)
    enqueue(sql, part, CheckDue(), now)


class Watch:
    """Tracks which parts call. Run it once in each process."""

    def __init__(self, store: Store, events: Events, clock: Clock) -> None:
        self._store = store
        self._events = events
        self._clock = clock
        self._deadlines: dict[str, float] = {}  # when online parts become offline, the next first; Trio's clock

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Watch until cancelled; ready when no later call can be missed."""
        with self._events.listening(SEEN) as news:
            await self._start()
            task_status.started()
            while True:
                heard: list[str] = []
                with trio.move_on_at(self._next()):
                    heard = await news.all()
                if EVERY in heard:  # any part may have called
                    await self._start()
                elif heard:
                    await self._mark_online(heard)
                await self._mark_offline()

    async def _start(self) -> None:
        now = self._clock()
        parts = await self._store.read(part_states)
        recent = [state.part for state in parts if not state.online and timedelta(0) <= now - state.seen < SILENCE]
        if recent:
            await self._store.write(lambda sql: came_online(sql, recent, self._clock()))
        self._online([*(state.part for state in parts if state.online), *recent])

    async def _mark_online(self, callers: list[str]) -> None:
        newly_online = await self._store.read(lambda sql: not_online(sql, callers))
        if newly_online:
            await self._store.write(lambda sql: came_online(sql, newly_online, self._clock()))
        self._online(callers)

    async def _mark_offline(self) -> None:
        moment = trio.current_time()
        silent = [part for part, _ in takewhile(lambda entry: entry[1] <= moment, self._deadlines.items())]
        window = SILENCE.total_seconds()
        if silent and was_suspended(self._next(), window):
            self._online(tuple(self._deadlines))  # this process was suspended; it now learns of calls made since
        elif silent:
            alive = await self._store.write(lambda sql: went_offline(sql, silent, self._clock()))
            for part in silent:
                del self._deadlines[part]
            self._online(alive)

    def _next(self) -> float:
        return next(iter(self._deadlines.values()), math.inf)

    def _online(self, parts: Iterable[str]) -> None:
        deadline = trio.current_time() + SILENCE.total_seconds()
        for part in parts:
            self._deadlines.pop(part, None)  # an entry that is set again would keep its place
            self._deadlines[part] = deadline
