"""Measure processor time, size and queries of the pages of machine-cloud with much data.

`python -m bench cloud_pages [--machines 1000] [--lines 100000] [--readings 10000] [--files 500] [--repeat 5]`

The cloud runs in this process, on SQLite in memory; requests are passed directly to its application, without a socket.
The first machine has the log lines, the readings, the files, a trigger and 200 deliveries; every tenth machine also has
a trigger. Budgets per page: 100 ms and 100 KB. Compare runs by the ratio to the page of keys, which is small and
requires the same rights, not by absolute times.
"""

from __future__ import annotations

import argparse
import dataclasses
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar
from urllib.parse import urlencode

import trio

from cloud.domain.configurations import configurations
from cloud.domain.data import files, readings, sources
from cloud.domain.data.readings import new_reading
from cloud.domain.machines import logs, machines
from cloud.domain.machines.logs import LogRecord
from cloud.domain.triggering import deliveries
from cloud.server.memory import MemoryCloud, open_cloud
from cloud.store.sql import Row, Sql, Store, Value, Work
from cloud.values.author import KEY, Author
from cloud.web.app import application

T = TypeVar("T")
HOST = "localhost:8090"
MILLISECONDS, KILOBYTES = 100, 100  # budgets
TRIGGER = {
    "name": "warm",
    "event": {
        "type": "conditional_data_ingested",
        "conditional": {
            "data_capture_method": "sensor:climate:Readings",
            "conditions": {"evals": [{"operator": "gt", "value": {"temperature_c": 15}}]},
        },
    },
    "notifications": [{"type": "webhook", "value": "https://example.com/", "seconds_between_notifications": 60}],
}


@dataclass(frozen=True)
class Amounts:
    """The amounts of data."""

    machines: int = 1000
    lines: int = 100_000
    readings: int = 10_000
    files: int = 500
    deliveries: int = 200
    revisions: int = 40


@dataclass
class Measured:
    """The measurement of a page. `seconds` is the processor time of each request, without other programs."""

    path: str
    seconds: list[float]
    size: int
    queries: int

    @property
    def median(self) -> float:
        """The median in seconds."""
        return statistics.median(self.seconds)


class Counted:
    """A store that counts the statements of its transactions."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.count = 0

    async def read(self, work: Work[T]) -> T:
        """Return the result of `work`, which sees a single snapshot and must not change anything."""
        return await self._store.read(lambda sql: work(_Handle(sql, self)))

    async def write(self, work: Work[T]) -> T:
        """Execute `work` as a transaction; its changes are durable when this returns."""
        return await self._store.write(lambda sql: work(_Handle(sql, self)))


class _Handle:
    def __init__(self, sql: Sql, counted: Counted) -> None:
        self._sql, self._counted = sql, counted
        self.skip_locked = sql.skip_locked

    def in_turn(self, subject: str) -> None:
        self._sql.in_turn(subject)

    def run(self, statement: str, *parameters: Value) -> int:
        self._counted.count += 1
        return self._sql.run(statement, *parameters)

    def many(self, statement: str, rows: Sequence[Sequence[Value]]) -> None:
        self._counted.count += 1
        self._sql.many(statement, rows)

    def rows(self, statement: str, *parameters: Value) -> list[Row]:
        self._counted.count += 1
        return self._sql.rows(statement, *parameters)

    def row(self, statement: str, *parameters: Value) -> Row | None:
        self._counted.count += 1
        return self._sql.row(statement, *parameters)

    def notify(self, topic: str, subject: str) -> None:
        self._sql.notify(topic, subject)


class Person:
    """A visitor with the cookie of the owner's key."""

    def __init__(self, cloud: MemoryCloud) -> None:
        self.store = Counted(cloud.cloud.store)
        self._app = application(dataclasses.replace(cloud.cloud, store=self.store), loopback=True)
        self._first = cloud.first
        self._cookie = ""

    async def enter(self) -> None:
        """Log in."""
        form = urlencode({"id": self._first.id, "key": self._first.key, "next": "/"}).encode()
        _, headers, _ = await self._send("POST", "/login", form)
        self._cookie = headers["set-cookie"].partition(";")[0]

    async def get(self, path: str) -> bytes:
        """Return a page. AssertionError unless its status is 200."""
        status, _, body = await self._send("GET", path, b"")
        assert status == 200, f"{path}: {status} {body.decode()[:500]}"
        return body

    async def measured(self, path: str, repeat: int) -> Measured:
        """Measure a page with `repeat` requests."""
        result = Measured(path, [], len(await self.get(path)), 0)
        for _ in range(repeat):
            before, start = self.store.count, time.process_time()
            await self.get(path)
            result.seconds.append(time.process_time() - start)
            result.queries = self.store.count - before
        return result

    async def _send(self, method: str, target: str, body: bytes) -> tuple[int, dict[str, str], bytes]:
        path, _, query = target.partition("?")
        fields = {"host": HOST, "accept": "text/html", "origin": f"http://{HOST}", "cookie": self._cookie}
        fields |= {"content-type": "application/x-www-form-urlencoded"} if body else {}
        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "scheme": "http", "method": method,
            "path": path, "raw_path": path.encode(), "query_string": query.encode(), "root_path": "", "state": {},
            "headers": [(name.encode(), value.encode()) for name, value in fields.items()],
            "client": ("127.0.0.1", 50000), "server": ("localhost", 8090), "extensions": {},
        }  # fmt: skip
        status, headers, answer = 0, dict[str, str](), b""
        asked = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> dict[str, Any]:
            if not asked:
                await trio.sleep_forever()
            return asked.pop()

        async def send(message: Mapping[str, Any]) -> None:
            nonlocal status, answer
            if message["type"] == "http.response.start":
                status = message["status"]
                headers.update({name.decode(): value.decode() for name, value in message["headers"]})
            else:
                answer += message.get("body", b"")

        await self._app(scope, receive, send)
        return status, headers, answer


async def fill(cloud: MemoryCloud, amounts: Amounts) -> tuple[str, str]:
    """Fill a cloud with data; return the machine that has it, and the last delivery."""
    now, store = cloud.cloud.clock(), cloud.cloud.store
    author, place = Author(KEY, cloud.first.id), cloud.first.location
    status = {"version": "1.2.3", "revision": "1", "platform": "linux/arm64", "host": "pi", "state": "running"}

    def create_machines(sql: Sql) -> list[str]:
        machine_ids = [
            machines.create_machine(sql, place, f"rover-{index:05}", now) for index in range(amounts.machines)
        ]
        part_ids = [machines.parts(sql, machine_id)[0].id for machine_id in machine_ids]
        for index, part in enumerate(part_ids):
            machines.note_seen(sql, part, now - timedelta(seconds=index % 90), status)
            if index % 10 == 0:
                configurations.save(sql, part, {"components": _components(index), "triggers": [TRIGGER]}, author, now)
        return part_ids

    parts = await store.write(create_machines)
    first = parts[0]
    entries = [
        LogRecord(
            now - timedelta(seconds=amounts.lines - index), "info", "rdk.resource_manager", f"line {index} of a log"
        )
        for index in range(amounts.lines)
    ]

    def data(sql: Sql) -> str:
        for start in range(0, len(entries), logs.MAX_BATCH):
            logs.append(sql, first, entries[start : start + logs.MAX_BATCH], now)
        source = sources.source_of(sql, first, "sensor", "climate", "Readings", "{}")
        moments = [now - timedelta(seconds=index) for index in range(amounts.readings)]
        values = [
            new_reading(moment, moment, {"readings": {"temperature_c": index % 40, "light_lux": index * 1.5}})
            for index, moment in enumerate(moments)
        ]
        readings.keep(sql, [readings.NewUpload(None, source, (), values, now)])
        camera = sources.source_of(sql, first, "camera", "camera", "GetImages", "{}")
        for index in range(amounts.files):
            new = files.NewFile(f"k{index}", camera, "image", f"{index}.jpeg", ".jpeg", "image/jpeg", now, now)
            subject, _ = files.keep(sql, new, files.Blob(f"b{index}", "0" * 64, 30_000), now)
            files.add_tags(sql, [subject], ["day"])
        for index in range(amounts.revisions):
            document = {"components": [*_components(0), {"name": f"c{index}", "model": "fake"}], "triggers": [TRIGGER]}
            configurations.save(sql, first, document, author, now + timedelta(seconds=index))
        for index in range(amounts.deliveries):
            deliveries.add(sql, _delivery(first, index, cloud))
        return f"d{amounts.deliveries - 1}"

    return first, await store.write(data)


def _components(index: int) -> list[dict[str, Any]]:
    sensor = {"api": "rdk:component:sensor", "model": "fake", "attributes": {"quantities": ["temperature_c"]}}
    return [{"name": f"climate-{index}-{number}", **sensor} for number in range(20)]


def _delivery(part: str, index: int, cloud: MemoryCloud) -> deliveries.Delivery:
    target = "https://example.com/"
    return deliveries.Delivery(
        id=f"d{index}", part=part, trigger="warm", event="conditional_data_ingested", entry="", type="webhook",
        value=target, target=target, about={"component": "climate", "method": "Readings"}, test=False,
        created=cloud.cloud.clock(), method="POST", headers=(("Trigger-Name", "warm"),), body=b'{"count": 1}',
    )  # fmt: skip


def paths(part: str, delivery: str) -> list[str]:
    """Return the paths of the measured pages."""
    base = f"/machines/{part}"
    return [
        "/", "/?sort=problems", "/?q=rover-00002", "/fragments", "/data", "/data?view=readings", "/triggers",
        "/modules", "/locations", "/keys", "/audit", base, f"{base}/config", f"{base}/history",
        f"{base}/logs", f"{base}/logs?text=99", f"{base}/triggers", f"{base}/triggers/deliveries/{delivery}",
    ]  # fmt: skip


async def measure(amounts: Amounts, repeat: int) -> list[Measured]:
    """Measure all pages of a cloud with these amounts of data."""
    async with open_cloud() as cloud:
        part, delivery = await fill(cloud, amounts)
        person = Person(cloud)
        await person.enter()
        return [await person.measured(path, repeat) for path in paths(part, delivery)]


def main(argv: list[str]) -> int:
    """Print the table; return 1 if a page exceeds its budget."""
    parser = argparse.ArgumentParser(prog="python -m bench cloud_pages")
    for field in dataclasses.fields(Amounts):
        parser.add_argument(f"--{field.name}", type=int, default=field.default)
    parser.add_argument("--repeat", type=int, default=5)
    options = vars(parser.parse_args(argv))
    repeat = options.pop("repeat")
    measured_pages = trio.run(measure, Amounts(**options), repeat)
    small = next(page.median for page in measured_pages if page.path == "/keys")
    print(f"{'page':44} {'ms':>8} {'of /keys':>9} {'KB':>7} {'queries':>8}")
    over = 0
    for page in measured_pages:
        path = "/machines/PART" + page.path[46:] if page.path.startswith("/machines/") else page.path
        exceeded = page.median * 1000 > MILLISECONDS or page.size > KILOBYTES * 1000
        over += exceeded
        ratio = f"{page.median / small:.1f}x"
        figures = f"{page.median * 1e3:8.1f} {ratio:>9} {page.size / 1e3:7.1f} {page.queries:8}"
        print(f"{path:44} {figures}{'  OVER' * exceeded}")
    return 1 if over else 0
