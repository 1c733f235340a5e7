"""machine-cloud is killed with SIGKILL at random moments, repeatedly, while it saves, ingests and delivers.

Acknowledged changes exist exactly once; others exist completely or not at all. MACHINE_CLOUD_KILLS is the number of
kills (default 10; on PostgreSQL a third of it), MACHINE_CLOUD_SEED the seed.
"""

from __future__ import annotations

import json
import os
import random
from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import trio

from rpc.api.client import ApiClient
from schema.errors import ErrorKind, MachineError
from tests.e2e.cloud.process import CloudProcess, cloud
from tests.e2e.triggers.receiver import Received, Receiver, receiver
from tests.postgresql import Cluster

KILLS = int(os.environ.get("MACHINE_CLOUD_KILLS", "10"))
SEED = int(os.environ.get("MACHINE_CLOUD_SEED", "5"))
MODULE = "tests.e2e.cloud.brisk"  # takes over the work of a dead process after seconds
APP = "viam.app.v1.AppService"
ROBOT = "viam.app.v1.RobotService"
SYNC = "viam.app.datasync.v1.DataSyncService"
DATA = "viam.app.data.v1.DataService"
START = datetime(2026, 1, 1, tzinfo=UTC)
LIMIT = 150.0  # seconds until everything is delivered, which usually takes a few seconds


@dataclass
class Truth:
    """Changes that the cloud has acknowledged, by part."""

    key: tuple[str, str]
    parts: dict[str, int] = field(default_factory=dict)  # the number in the last saved configuration
    logged: dict[str, int] = field(default_factory=lambda: defaultdict(int))  # number of entries
    readings: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))  # the id of each upload
    files: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))


class Faults:
    """Clients that never give up, and a receiver of webhooks that runs longer than every cloud."""

    def __init__(self, hooks: Receiver) -> None:
        self.hooks = hooks
        self.truth: Truth
        self._acknowledged = trio.Event()

    def document(self, number: int) -> str:
        """Return a configuration that notifies the receiver of every reading."""
        event = {"type": "part_data_ingested", "data_ingested": {"data_types": ["tabular"]}}
        target = {"type": "webhook", "value": self.hooks.url()}
        return json.dumps({"number": number, "triggers": [{"name": "t", "event": event, "notifications": [target]}]})

    async def begin(self, running: CloudProcess, client: ApiClient) -> None:
        self.truth = Truth(running.key)
        for name in "ab":
            robot = await client.call(APP, "", "new_robot", name=name, location=running.facts["location"])
            part = (await client.call(APP, "", "get_robot_parts", robot_id=robot))[0]["id"]
            await client.call(APP, "", "update_robot_part", id=part, name="", robot_config_json=self.document(0))
            self.truth.parts[part] = 0

    async def check(self, client: ApiClient) -> None:
        """Compare the stored data with the acknowledged changes; changes stored without an answer count from now on."""
        for part, number in self.truth.parts.items():
            answer = await client.call(APP, "", "get_robot_part", id=part)
            kept = int(answer["part"]["robot_config"]["number"])
            assert kept in (number, number + 1)
            history = await client.call(APP, "", "get_robot_part_history", id=part, page_limit=1000)
            numbers = [int(entry["old"]["robot_config"].get("number", -1)) for entry in history["history"]]
            assert numbers[: min(kept, len(numbers))] == list(range(kept - 1, -1, -1))[: len(numbers)]
            self.truth.parts[part] = kept

            entries = self.truth.logged[part]
            lines = await _lines(client, part)
            assert lines == list(range(len(lines)))
            assert len(lines) in (entries, entries + 3)
            self.truth.logged[part] = len(lines)

            uploads = self.truth.readings[part]
            numbers = await _readings(client, part)
            assert sorted(numbers) == list(range(len(numbers)))  # each exactly once
            assert len(numbers) in (len(uploads), len(uploads) + 1)

            if files := self.truth.files[part]:
                for place in range(0, len(files), 50):
                    await self._check_files(client, part, place, files[place : place + 50])

    async def _check_files(self, client: ApiClient, part: str, place: int, ids: list[str]) -> None:
        result = await client.call(DATA, "", "binary_data_by_ids", binary_data_ids=ids, include_binary=True)
        content = {item["metadata"]["binary_data_id"]: item["binary"] for item in result["data"]}
        assert content == {left: _content(part, place + number) for number, left in enumerate(ids)}

    async def work(self, client: ApiClient, part: str, nursery: trio.Nursery) -> None:
        for way in (self._save, self._log, self._read, self._send):
            nursery.start_soon(_until_it_is_dead, way, client, part)

    async def acknowledges(self, saves: int) -> None:
        """Wait until `saves` more saves of each part, and more entries of its log, were acknowledged."""
        parts, logged = dict(self.truth.parts), dict(self.truth.logged)
        with trio.fail_after(LIMIT):
            while any(
                self.truth.parts[part] < parts[part] + saves or self.truth.logged[part] < logged[part] + saves
                for part in parts
            ):
                await self._acknowledged.wait()

    def _notice(self) -> None:
        self._acknowledged.set()
        self._acknowledged = trio.Event()

    async def _save(self, client: ApiClient, part: str) -> None:
        number = self.truth.parts[part] + 1
        await client.call(APP, "", "update_robot_part", id=part, name="", robot_config_json=self.document(number))
        self.truth.parts[part] = number
        self._notice()

    async def _log(self, client: ApiClient, part: str) -> None:
        first = self.truth.logged[part]
        entries = [{"message": str(number), "level": "info", "host": "h"} for number in range(first, first + 3)]
        await client.call(ROBOT, "", "log", id=part, logs=entries)
        self.truth.logged[part] = first + 3
        self._notice()

    async def _read(self, client: ApiClient, part: str) -> None:
        """Upload a reading; the caller repeats it until it is acknowledged, as machines do."""
        number = len(self.truth.readings[part])
        moment = START + timedelta(seconds=number)
        sent = await client.call(
            SYNC, "", "data_capture_upload",
            metadata={**_metadata(part), "method_name": "Readings", "type": "TABULAR_SENSOR"},
            sensor_contents=[
                {"metadata": {"time_requested": moment, "time_received": moment}, "struct": {"number": number}}
            ],
        )  # fmt: skip
        self.truth.readings[part].append(sent["file_id"])

    async def _send(self, client: ApiClient, part: str) -> None:
        number = len(self.truth.files[part])
        content = [{"data": _content(part, number)}]
        sent = await client.call(
            SYNC, "", "file_upload", part_id=part, type="FILE", file_name=f"{number}.txt", contents=content
        )
        self.truth.files[part].append(sent["binary_data_id"])

    async def delivered(self) -> None:
        """Wait until every upload was delivered, each under one id."""
        expected = {element for ids in self.truth.readings.values() for element in ids}
        with trio.move_on_after(LIMIT):
            while True:
                if expected <= self._reported().keys():
                    break
                await trio.sleep(0.05)
        reported = self._reported()
        assert not expected - reported.keys()
        assert [ids for ids in reported.values() if len(ids) != 1] == []

    def _reported(self) -> dict[str, set[str]]:
        messages: dict[str, set[str]] = defaultdict(set)
        for request in self.hooks.requests:
            messages[json.loads(request.body)["file_id"]].add(_id(request))
        return messages


def _id(item: Received) -> str:
    return {name.lower(): value for name, value in item.headers.items()}["webhook-id"]


def _metadata(part: str) -> dict[str, Any]:
    return {"part_id": part, "component_type": "rdk:component:sensor", "component_name": "s"}


def _content(part: str, number: int) -> bytes:
    return f"{part} {number} ".encode() * 100


async def _lines(client: ApiClient, part: str) -> list[int]:
    """Return the logged numbers, in the order of arrival."""
    numbers: list[int] = []
    token = ""
    while True:
        page = await client.call(
            APP, "", "get_robot_part_logs", id=part, limit=1000, page_token=token, order="LOG_ORDER_ASCENDING"
        )
        numbers += [int(entry["message"]) for entry in page["logs"] if entry["host"] == "h"]
        token = page["next_page_token"]
        if not token:
            return numbers


async def _readings(client: ApiClient, part: str) -> list[int]:
    rows = client.stream(
        DATA, "", "export_tabular_data",
        part_id=part, resource_name="s", resource_subtype="rdk:component:sensor", method_name="Readings",
    )  # fmt: skip
    try:
        return [int(row["payload"]["number"]) async for row in rows]
    except MachineError as error:
        if error.kind is not ErrorKind.NOT_FOUND:
            raise
        return []


async def _until_it_is_dead(way: Callable[[ApiClient, str], Awaitable[None]], client: ApiClient, part: str) -> None:
    try:
        while True:
            await way(client, part)
    except MachineError as error:
        if error.kind is not ErrorKind.UNAVAILABLE:
            raise


@pytest.mark.limit(300 + 30 * KILLS)
@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
async def test_acknowledged_data_survive_kill_9(tmp_path: Path, database: str, request: pytest.FixtureRequest) -> None:
    options, kills = ["--webhook-allow", "127.0.0.1"], KILLS
    if database == "postgresql":
        kills = (KILLS + 2) // 3
        server: Cluster = request.getfixturevalue("postgresql")
        options += ["--database", server.fresh()]
    chance = random.Random(SEED)
    async with receiver() as hooks:
        faults = Faults(hooks)
        for kill in range(kills):
            async with cloud(tmp_path, *options, module=MODULE) as running:
                async with running.client(faults.truth.key if kill else None) as client:
                    if not kill:
                        await faults.begin(running, client)
                    await faults.check(client)
                    async with trio.open_nursery() as nursery:
                        for part in faults.truth.parts:
                            await faults.work(client, part, nursery)
                        await faults.acknowledges(chance.randrange(2, 8))
                        await trio.sleep(chance.uniform(0, 0.1))  # during one of the next changes
                        running.process.kill()
        last = cloud(tmp_path, *options, module=MODULE)
        async with last as running, running.client(faults.truth.key) as client:
            await faults.check(client)
            for part in faults.truth.parts:
                await faults._read(client, part)
            await faults.delivered()
            truth, uploads = faults.truth, sum(map(len, faults.truth.readings.values()))
            for kept in (truth.parts, truth.logged):
                assert min(kept.values()) > kills
            print(
                f"{database}: {kills} kills; acknowledged {sum(truth.parts.values())} saves, "
                f"{sum(truth.logged.values())} log entries, {uploads} uploads of readings, "
                f"{sum(map(len, truth.files.values()))} files; {len(hooks.requests)} webhooks received"
            )
