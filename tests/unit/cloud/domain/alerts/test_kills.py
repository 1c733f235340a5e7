"""A cloud that is killed at any transaction neither loses nor doubles an event of an alert, or a message about it."""

from __future__ import annotations

import json
import random
import sqlite3
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from cloud.domain.alerts import changing, deadlines
from cloud.domain.alerts.observing import Observer
from cloud.domain.alerts.rule import decoded
from cloud.domain.data.readings import new_reading
from cloud.domain.machines import machines
from cloud.domain.organizations.first import create_owner
from cloud.domain.triggering.deliveries import Delivery
from cloud.domain.triggering.evaluation import evaluate
from cloud.domain.triggering.ingestion import Ingestion, ingested
from cloud.domain.triggering.outbox import Outbox
from cloud.store.events import Events
from cloud.store.migrations import migrate
from cloud.store.sqlite import SqliteHandle
from cloud.values.times import moment_of
from tests.helpers.disk_store import DiskStore, Killed
from tests.scope import some_of
from triggers.document import Notification
from triggers.retry import AttemptOutcome

START = datetime(2026, 1, 1, tzinfo=UTC)
MINUTES = 120
RULE: dict[str, Any] = {
    "name": "warm",
    "kind": "reading",
    "condition": {"path": "celsius", "comparison": "gt", "threshold": 8.0, "recovery": 5.0},
    "for_seconds": 300,
    "recover_seconds": 120,
    "repeat_seconds": 1200,
    "group_seconds": 30,
    "targets": [{"type": "webhook", "value": "https://receiver.test/"}],
}


def clock() -> datetime:
    return START + timedelta(seconds=trio.current_time())


class Home:
    """A disk with one freezer, and processes that are killed by their fuse: a number of steps of the store."""

    def __init__(self, seed: int, *, kills: bool) -> None:
        self.values = random.Random(seed)
        self.fuses = random.Random(seed + 1_000_000)
        self.start = clock()
        self.kills = 0
        self.mortal = kills
        self.received: dict[str, list[str]] = {}
        self.disk = sqlite3.connect(":memory:", isolation_level=None)
        migrate(self.disk)
        sql = SqliteHandle(self.disk)
        first = create_owner(sql, "Home", START)
        self.part = machines.parts(sql, machines.create_machine(sql, first.location, "freezer", START))[0].id
        changing.change(sql, first.organization, "", decoded(RULE), START)
        self.store: DiskStore | None = None
        self.up = trio.Event()
        self.process = trio.CancelScope()

    async def live(self) -> None:
        while True:
            fuse = self.fuses.randint(1, 80) if self.mortal else 10**9
            events = Events()
            self.store = store = DiskStore(self.disk, events, fuse)
            try:
                async with trio.open_nursery() as nursery:
                    self.process = nursery.cancel_scope
                    nursery.start_soon(evaluate, store, events, page, Observer(clock))
                    nursery.start_soon(deadlines.run, store, events, clock, page)
                    nursery.start_soon(Outbox(store, events, clock, {"webhook": self.receive}).run)
                    self.up.set()
            except* Killed:
                pass
            self.kills += store.dead
            store.dead = True
            self.up = trio.Event()

    async def receive(self, item: Delivery, target: Notification, secret: str, now: datetime) -> AttemptOutcome:
        self.received[item.id] = [each["state"] for each in json.loads(item.body)["alerts"]]
        return AttemptOutcome(200)

    async def measure(self) -> None:
        """Upload a reading each minute, repeated until it is acknowledged."""
        celsius = 4.0
        for minute in range(MINUTES):
            if self.values.random() < 0.1:
                celsius = self.values.choice((4.0, 6.0, 9.0, 9.0))
            await self.upload(minute, celsius)
            await trio.sleep((self.start + timedelta(minutes=minute + 1) - clock()).total_seconds())

    async def upload(self, minute: int, celsius: float) -> None:
        now = self.start + timedelta(minutes=minute)
        new = (new_reading(now, now, {"readings": {"celsius": celsius}}),)
        what = Ingestion(self.part, "sensor", "probe", "Readings", "tabular", "f", now, now, new, alerts=True)
        while True:
            await self.up.wait()
            assert self.store is not None
            try:  # an upload that was stored and not acknowledged comes again: a duplicate
                await self.store.write(lambda sql: ingested(sql, what, now))
            except Killed:  # the other tasks of the process may wait for an event
                self.process.cancel()
                await trio.sleep(0.001)
            else:
                return

    def events(self) -> list[tuple[float, str]]:
        rows = self.disk.execute("SELECT happened, kind FROM alert_events ORDER BY number").fetchall()
        return [((moment_of(happened) - self.start) / timedelta(minutes=1), kind) for happened, kind in rows]

    def messages(self) -> list[list[str]]:
        order = self.disk.execute("SELECT id FROM deliveries ORDER BY number").fetchall()
        return [self.received[identity] for (identity,) in order]


def page(path: str) -> str:
    return f"http://cloud.test{path}"


async def lived(seed: int, *, kills: bool) -> Home:
    home = Home(seed, kills=kills)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(home.live)
        await home.measure()
        home.mortal = False
        await trio.sleep(600)  # longer than any duration of the rule and its group
        nursery.cancel_scope.cancel()
    return home


@pytest.mark.parametrize("seed", some_of(20, list(range(200)), 1))
async def test_a_killed_cloud_keeps_all_events(seed: int, autojump_clock: MockClock) -> None:
    calm = await lived(seed, kills=False)
    killed = await lived(seed, kills=True)
    assert killed.kills > 5
    assert killed.events() == calm.events()
    assert killed.messages() == calm.messages()
    kinds, words = [kind for _, kind in killed.events()], [word for each in killed.messages() for word in each]
    assert (kinds.count("fired"), kinds.count("resolved")) == (words.count("firing"), words.count("resolved"))
    calm.disk.close()
    killed.disk.close()
