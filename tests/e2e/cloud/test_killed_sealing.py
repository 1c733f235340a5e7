"""machine-cloud is killed with SIGKILL at random moments while it ingests, seals and deletes readings.

Each acknowledged reading exists exactly once, what a deletion was acknowledged for is gone, and after a sweep each file
has a segment. On PostgreSQL a second cloud seals and merges the same readings all the time. MACHINE_CLOUD_KILLS is the
number of kills (default 10; on PostgreSQL a third of it), MACHINE_CLOUD_SEED the seed.
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import trio

from cloud.blobs import sizes
from cloud.blobs.folder import FolderBlobs
from cloud.domain.data.segments import listed
from cloud.domain.upkeep.sweep import sweep
from cloud.store.events import Events
from cloud.store.postgres import PostgresStore
from cloud.store.sql import Store
from cloud.store.sqlite import SqliteStore
from cloud.values.times import now
from rpc.api.client import ApiClient
from schema.errors import ErrorKind, MachineError
from tests.e2e.cloud.process import cloud
from tests.e2e.cloud.test_faults import APP, DATA, KILLS, SEED, SYNC
from tests.postgresql import Cluster

MODULE = "tests.e2e.cloud.sealing"
EACH = 3  # readings of an upload
A_DAY = 50  # readings, a second after each other: 126,000 fit between OLD and today
OLD = datetime(2020, 1, 1, tzinfo=UTC)


class Truth:
    """What the cloud has acknowledged."""

    def __init__(self, key: tuple[str, str], organization: str, part: str) -> None:
        self.key, self.organization, self.part = key, organization, part
        self.kept = 0  # readings of the component `kept`, which are not deleted
        self.brief = 0  # readings of the component `brief`
        self.deleted = 0  # of these, those that are deleted: all with lower numbers
        self.attempted = 0  # those that may be deleted
        self.acknowledged = 0

    async def check(self, client: ApiClient) -> None:
        """Compare what is stored with what was acknowledged; what is stored without an answer counts from now on."""
        kept = await self._numbers(client, "kept")
        assert kept == list(range(len(kept)))
        assert len(kept) in (self.kept, self.kept + EACH)
        self.kept = len(kept)
        brief = await self._numbers(client, "brief")
        assert brief == sorted(set(brief))
        assert not [number for number in brief if number < self.deleted]
        assert set(range(self.attempted, self.brief)) <= set(brief)
        self.brief = max([self.brief, *(number + 1 for number in brief)])
        count = await client.call(DATA, "", "tabular_data_by_filter", data_request={}, count_only=True)
        assert count["count"] == len(kept) + len(brief)

    async def _numbers(self, client: ApiClient, component: str) -> list[int]:
        rows = client.stream(
            DATA, "", "export_tabular_data",
            part_id=self.part, resource_name=component, resource_subtype="sensor", method_name="Readings",
        )  # fmt: skip
        try:
            return [int(row["payload"]["number"]) async for row in rows]
        except MachineError as error:
            if error.kind is not ErrorKind.NOT_FOUND:
                raise
            return []

    async def keep(self, client: ApiClient) -> None:
        await self._upload(client, "kept", self.kept)
        self.kept += EACH
        self.acknowledged += 1

    async def add_and_delete(self, client: ApiClient) -> None:
        for _ in range(8):
            await self._upload(client, "brief", self.brief)
            self.brief += EACH
        # Delete the days before the last one, of which the time of day decides what is deleted.
        last, self.attempted = (self.brief - 1) // A_DAY, self.brief
        days = (now() - (OLD + timedelta(days=last, seconds=-1))).days
        arguments: dict[str, Any] = {"delete_older_than_days": days, "filter": {"component_name": "brief"}}
        await client.call(DATA, "", "delete_tabular_data", organization_id=self.organization, **arguments)
        self.deleted = last * A_DAY

    async def _upload(self, client: ApiClient, component: str, first: int) -> None:
        contents = []
        for number in range(first, first + EACH):
            day, second = divmod(number, A_DAY)
            moment = OLD + timedelta(days=day, seconds=second)
            times = {"time_requested": moment, "time_received": moment}
            contents.append({"metadata": times, "struct": {"number": number}})
        metadata = {"part_id": self.part, "component_type": "sensor", "component_name": component}
        metadata |= {"method_name": "Readings", "type": "TABULAR_SENSOR"}
        await client.call(SYNC, "", "data_capture_upload", metadata=metadata, sensor_contents=contents)


async def _until_it_is_dead(way: Callable[[ApiClient], Awaitable[None]], client: ApiClient) -> None:
    try:
        while True:
            await way(client)
    except MachineError as error:
        if error.kind is not ErrorKind.UNAVAILABLE:
            raise


@asynccontextmanager
async def _opened(folder: Path, url: str) -> AsyncIterator[Store]:
    database: Any = PostgresStore(url, Events()) if url else SqliteStore(folder / "data" / "cloud.db", Events())
    async with database.opened() as store:
        yield store


@pytest.mark.limit(300 + 30 * KILLS)
@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
async def test_sealed_readings_survive_kill_9(tmp_path: Path, database: str, request: pytest.FixtureRequest) -> None:
    pytest.importorskip("pyarrow", reason="segments need the extra `data`")
    files = tmp_path / "files"
    options, kills, url = ["--seal-after", "1", "--files", str(files)], KILLS, ""
    if database == "postgresql":
        kills = (KILLS + 2) // 3
        server: Cluster = request.getfixturevalue("postgresql")
        url = server.fresh()
        options += ["--database", url]
    chance, truth = random.Random(SEED), None
    for _ in range(kills):
        async with AsyncExitStack() as stack:
            running = await stack.enter_async_context(cloud(tmp_path, *options, module=MODULE))
            if url:
                await stack.enter_async_context(cloud(tmp_path / "other", *options, module=MODULE))
            async with running.client(truth.key if truth else None) as client:
                if truth is None:
                    robot = await client.call(APP, "", "new_robot", name="r", location=running.facts["location"])
                    (part,) = await client.call(APP, "", "get_robot_parts", robot_id=robot)
                    truth = Truth(running.key, running.facts["organization"], part["id"])
                await truth.check(client)
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(_until_it_is_dead, truth.keep, client)
                    nursery.start_soon(_until_it_is_dead, truth.add_and_delete, client)
                    await trio.sleep(chance.uniform(0.3, 2))  # at any moment
                    running.process.kill()
    assert truth is not None
    async with cloud(tmp_path, *options, module=MODULE) as running, running.client(truth.key) as client:
        await truth.check(client)
    async with _opened(tmp_path, url) as store, FolderBlobs(files).opened() as blobs:
        figures = await store.read(listed.figures)
        await sweep(store, blobs, now() + timedelta(days=30), age=-1)
        assert set(await sizes(blobs)) == set(await store.read(lambda sql: listed.blobs_from(sql, "", "~")))
    assert figures.segments > 0
    assert truth.acknowledged > kills
    print(f"{database}: {kills} kills; {truth.kept} readings kept, {truth.deleted} deleted; {figures}")
