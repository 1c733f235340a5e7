"""A cloud's triggers in memory: a persistent disk, processes killed at any step, and unreliable receivers."""

from __future__ import annotations

import json
import random
import sqlite3
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeVar

import trio

from cloud.domain.configurations import configurations
from cloud.domain.data.readings import new_reading
from cloud.domain.machines import logs, machines
from cloud.domain.machines.logs import LogRecord
from cloud.domain.organizations.first import create_owner
from cloud.domain.triggering.deliveries import Delivery
from cloud.domain.triggering.evaluation import evaluate
from cloud.domain.triggering.hourly import watch
from cloud.domain.triggering.ingestion import Ingestion, ingested
from cloud.domain.triggering.outbox import Outbox
from cloud.domain.triggering.presence import Watch
from cloud.store.events import Events
from cloud.store.migrations import migrate
from cloud.store.sql import Sql
from cloud.store.sqlite import SqliteHandle
from cloud.values.author import THE_PROGRAM
from tests.helpers.disk_store import DiskStore, Killed
from triggers.document import Notification, Trigger
from triggers.retry import AttemptOutcome, of_status

T = TypeVar("T")

START: Final = datetime(2026, 1, 1, tzinfo=UTC)
ALL, SOME, HOT, PRESENCE, LOGS = (f"https://{name}.test/" for name in ("all", "some", "hot", "presence", "logs"))
PAUSES: Final = {ALL: 0, SOME: 600, HOT: 3600}
LIMIT: Final = 30.0  # degrees; above this it is hot
LONG: Final = 900.0  # seconds; a silence this long is noticed whatever is killed meanwhile


def clock() -> datetime:
    return START + timedelta(seconds=trio.current_time())


def document() -> dict[str, Any]:
    """Return the document with the triggers of every part."""

    def trigger(name: str, type: str, *targets: str, **event: Any) -> dict[str, Any]:  # noqa: A002 - field
        hooks = [
            {"type": "webhook", "value": each, "seconds_between_notifications": PAUSES.get(each, 0)} for each in targets
        ]
        return {"name": name, "event": {"type": type, **event}, "notifications": hooks}

    conditions = {"evals": [{"operator": "gt", "value": {"celsius": LIMIT}}]}
    return {
        "triggers": [
            trigger("all", "part_data_ingested", ALL, SOME, data_ingested={"data_types": ["tabular"]}),
            trigger(
                "hot",
                "conditional_data_ingested",
                HOT,
                conditional={"data_capture_method": "sensor:oven:Readings", "conditions": conditions},
            ),
            trigger("on", "part_online", PRESENCE),
            trigger("off", "part_offline", PRESENCE),
            trigger("errors", "conditional_logs_ingested", LOGS, log_levels=["error"]),
        ]
    }


@dataclass
class Seen:
    """What receivers got: the event that each reception was about."""

    ids: dict[tuple[str, str, str], str] = field(default_factory=dict)  # key: part, target, number; value: id
    order: dict[tuple[str, str], list[int]] = field(default_factory=dict)  # key: part, target
    count: Counter[str] = field(default_factory=Counter)


class World:
    """The simulated cloud. Start `live` (the processes) and `machine` (one part each) in a nursery."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.seen = Seen()
        self.kills = 0
        self.calm = False  # no faults from now on
        self.refused: set[str] = set()  # ids that a receiver rejected permanently
        self.calls: dict[str, list[datetime]] = {}
        self.said: dict[str, list[int]] = {}  # numbers of logged errors
        self._up = trio.Event()
        self._store: DiskStore | None = None
        self._numbers = 0
        self.disk = sqlite3.connect(":memory:", isolation_level=None)
        migrate(self.disk)
        self.disk.execute("CREATE TABLE uploads (number INTEGER PRIMARY KEY, part TEXT, at INTEGER, celsius REAL)")

    def close(self) -> None:
        self.disk.close()

    def sql(self) -> SqliteHandle:
        """Return a handle on the disk, between two steps."""
        return SqliteHandle(self.disk)

    def part(self, name: str) -> str:
        """Create a part with triggers and return its id."""
        sql = self.sql()
        row = sql.row("SELECT id FROM locations")
        place = create_owner(sql, "Sim", START).location if row is None else row["id"]
        machine = machines.create_machine(sql, place, name, START)
        part = machines.parts(sql, machine)[0].id
        configurations.save(sql, part, document(), THE_PROGRAM, START)
        return part

    # ---- processes

    async def live(self) -> None:
        """Run one process after another, each until it is killed."""
        while True:
            fuse = (
                10**9 if self.calm else self.random.choice((self.random.randint(1, 60), self.random.randint(1, 3000)))
            )
            events = Events()
            self._store = store = DiskStore(self.disk, events, fuse)
            try:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(Watch(store, events, clock).run)
                    nursery.start_soon(evaluate, store, events, lambda path: f"http://cloud.test{path}")
                    nursery.start_soon(watch, store, clock)
                    nursery.start_soon(Outbox(store, events, clock, {"webhook": self.receive}).run)
                    nursery.start_soon(self._murderer, store)
                    self._up.set()
            except* Killed:
                pass
            store.dead = True
            self.kills += 1
            self._up = trio.Event()
            await trio.sleep(self.random.choice((0.0, 1.0, self.random.uniform(0, 120))))

    async def _murderer(self, store: DiskStore) -> None:
        """Kill the process between two steps, such as during a request."""
        await trio.sleep(self.random.expovariate(1 / 7200))
        if not self.calm:
            raise Killed

    async def ask(self, work: Callable[[Sql], T]) -> T:
        """Repeat a write until it is acknowledged, as a machine does."""
        while True:
            await self._up.wait()
            assert self._store is not None
            try:
                return await self._store.write(work)
            except Killed:
                await trio.sleep(1)

    # ---- machines

    async def machine(self, part: str, until: float) -> None:
        """Simulate one machine until a time: online for minutes, offline for hours."""
        self.calls[part], self.said[part] = [], []
        while trio.current_time() < until:
            end = trio.current_time() + self.random.uniform(10, 1800)
            upload = trio.current_time()
            while trio.current_time() < end:
                await self.ask(lambda sql: self._call(sql, part))
                if trio.current_time() >= upload:
                    await self._upload(part)
                    upload += self.random.choice((1.0, 60.0, 400.0))
                if self.random.random() < 0.02:
                    await self._error(part)
                await trio.sleep(self.random.choice((1.0, 20.0, 20.0)))
            await trio.sleep(self.random.choice((5.0, 50.0, 70.0, 20000.0, self.random.uniform(0, 30000))))

    def _call(self, sql: Sql, part: str) -> None:
        """Record a call, whether or not it is acknowledged: a killed cloud has kept it as well."""
        machines.note_seen(sql, part, clock())
        self.calls[part].append(clock())

    async def _upload(self, part: str) -> None:
        self._numbers += 1
        number, celsius = self._numbers, self.random.uniform(10, 40)

        def work(sql: Sql) -> None:
            if sql.row("SELECT number FROM uploads WHERE number = ?", number) is not None:
                return  # stored by the last attempt, which was not acknowledged
            now = clock()
            micros = (now - START) // timedelta(microseconds=1)
            sql.run("INSERT INTO uploads VALUES (?, ?, ?, ?)", number, part, micros, celsius)
            data = {"readings": {"celsius": celsius, "number": number}}
            came = (new_reading(now, now, data),)
            ingested(sql, Ingestion(part, "sensor", "oven", "Readings", "tabular", str(number), now, now, came), now)

        await self.ask(work)

    async def _error(self, part: str) -> None:
        self._numbers += 1
        number = self._numbers

        def work(sql: Sql) -> None:
            if sql.row("SELECT number FROM log_entries WHERE message = ?", str(number)) is None:
                logs.append(sql, part, [LogRecord(clock(), "error", "rdk", str(number))], clock())

        await self.ask(work)
        self.said[part].append(number)

    # ---- receivers

    async def receive(self, item: Delivery, trigger: Trigger, target: Notification, now: datetime) -> AttemptOutcome:
        """Simulate a receiver that works in some hours and fails in others."""
        await trio.sleep(self.random.uniform(0.0, 0.5))
        hour = random.Random(f"{item.target} {int(trio.current_time() // 5400)}").random()
        if not self.calm and hour < 0.1:
            return AttemptOutcome(error="no connection")
        self._note(item)
        await trio.sleep(self.random.uniform(0.0, 0.5))
        if self.calm or hour < 0.6:
            return AttemptOutcome(200)
        if hour < 0.7:
            await trio.sleep(self.random.uniform(1, 100))  # the delivery has arrived, the answer may be late
            return AttemptOutcome(200)
        if hour < 0.85:
            return of_status(500 if self.random.random() < 0.7 else 200)
        if hour < 0.99:
            return of_status(429, self.random.uniform(1, 7200))
        self.refused.add(item.id)
        return of_status(404)

    def _note(self, first: Delivery) -> None:
        """Check at every reception that an event has one id, and record the order of first receptions."""
        self.seen.count[first.id] += 1
        for number in numbers_of(first):
            key = (first.part, first.target, str(number))
            assert self.seen.ids.setdefault(key, first.id) == first.id, f"{key} came under two ids"
        if self.seen.count[first.id] == 1:
            received = self.seen.order.setdefault((first.part, first.target), [])
            received.append(first.number)


def numbers_of(item: Delivery) -> list[int]:
    """Return the numbers of the upload or log entries in a delivery; for presence, the delivery's own number."""
    if not item.body:
        return [item.number]
    body = json.loads(item.body)
    if isinstance(body, list):
        return [int(line["message"]) for line in body]
    return [int(body["data"]["data"]["readings"]["number"])]
