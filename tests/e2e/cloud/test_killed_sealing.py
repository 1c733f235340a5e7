"""machine-cloud is killed with SIGKILL at random moments while it ingests, seals and deletes readings.

Each acknowledged reading exists exactly once, unless its retention period is over; what a deletion was acknowledged for
is gone, and after a sweep each file has a segment. On PostgreSQL a second cloud seals and merges the same readings all
the time. MACHINE_CLOUD_KILLS is the number of kills for each case; MACHINE_CLOUD_SEED is the seed.
"""

from __future__ import annotations

import os
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio

from cloud.blobs import Blobs, sizes
from cloud.blobs.folder import FolderBlobs
from cloud.blobs.s3 import S3Blobs
from cloud.domain.data import retention
from cloud.domain.data.segments import listed
from cloud.domain.upkeep.sweep import sweep
from cloud.store.events import Events
from cloud.store.postgres import PostgresStore
from cloud.store.sql import Store
from cloud.store.sqlite import SqliteStore
from cloud.values.times import now
from rpc.api.client import ApiClient
from schema.errors import ErrorKind, MachineError
from tests.e2e.cloud.process import CloudProcess, cloud
from tests.e2e.cloud.sealing import SHORT
from tests.e2e.cloud.test_faults import APP, DATA, SEED, SYNC
from tests.postgresql import Cluster
from tests.s3 import S3Server, s3

__all__ = ["s3"]  # a fixture

MODULE = "tests.e2e.cloud.sealing"
KILLS = int(os.environ.get("MACHINE_CLOUD_KILLS", "0"))  # 0 means a few, as CASES says
LIMIT = 120.0  # seconds until the readings of a short retention period are gone
EACH = 3  # readings of an upload
A_DAY = 50  # readings, a second after each other: 126,000 fit between OLD and today
OLD = datetime(2020, 1, 1, tzinfo=UTC)


class Truth:
    """What the cloud has acknowledged. With `period`, readings may be gone after so many seconds."""

    def __init__(self, key: tuple[str, str], organization: str, part: str, period: float) -> None:
        self.key, self.organization, self.part, self.period = key, organization, part, period
        self.kept = 0  # readings of the component `kept`, which no call deletes
        self.sent: list[tuple[float, int]] = []  # of these: when an upload began, and its first number
        self.brief = 0  # readings of the component `brief`
        self.deleted = 0  # of these, those that are deleted: all with lower numbers
        self.attempted = 0  # those that may be deleted
        self.acknowledged = 0

    async def check(self, client: ApiClient) -> None:
        """Compare what is stored with what was acknowledged; what is stored without an answer counts from now on."""
        kept = await self._numbers(client, "kept")
        brief = await self._numbers(client, "brief")
        count = (await client.call(DATA, "", "tabular_data_by_filter", data_request={}, count_only=True))["count"]
        assert kept == sorted(set(kept))
        assert brief == sorted(set(brief))
        assert set(range(self._young(), self.kept)) <= set(kept)
        assert set(kept) <= set(range(self.kept + EACH))
        assert len([number for number in kept if number >= self.kept]) in (0, EACH)
        assert not [number for number in brief if number < self.deleted]
        assert self.period or set(range(self.attempted, self.brief)) <= set(brief)
        assert self.period or count == len(kept) + len(brief)
        self.kept = max([self.kept, *(number + 1 for number in kept)])
        self.brief = max([self.brief, *(number + 1 for number in brief)])

    def _young(self) -> int:
        """Return the lowest number of `kept` that may not be gone yet."""
        if not self.period:
            return 0
        since = trio.current_time() - self.period
        return next((number for moment, number in self.sent if moment > since), self.kept)

    async def until_all_are_gone(self, client: ApiClient) -> None:
        """Return when the period of all readings is over and they are gone."""
        with trio.fail_after(LIMIT):
            while await self._numbers(client, "kept") or await self._numbers(client, "brief"):
                pass

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
        self.sent.append((trio.current_time(), self.kept))
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


async def until_it_is_dead(way: Callable[[ApiClient], Awaitable[None]], client: ApiClient) -> None:
    try:
        while True:
            await way(client)
    except MachineError as error:
        if error.kind is not ErrorKind.UNAVAILABLE:
            raise


async def kill_at_work(running: CloudProcess, client: ApiClient, truth: Truth, chance: random.Random) -> None:
    """Kill a cloud at a random moment while it stores and deletes readings."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(until_it_is_dead, truth.keep, client)
        nursery.start_soon(until_it_is_dead, truth.add_and_delete, client)
        await trio.sleep(chance.uniform(0.3, 2))  # at any moment
        running.process.kill()


async def begun(running: CloudProcess, client: ApiClient, period: float = 0.0) -> Truth:
    """Create a machine whose readings are compared."""
    robot = await client.call(APP, "", "new_robot", name="r", location=running.facts["location"])
    (part,) = await client.call(APP, "", "get_robot_parts", robot_id=robot)
    return Truth(running.key, running.facts["organization"], part["id"], period)


async def check_files(store: Store, files: Blobs) -> listed.SegmentTotals:
    """Check that no file is left that nothing names, and none is missing; return the figures of the segments."""
    figures = await store.read(listed.figures)
    await sweep(store, files, now() + timedelta(days=30), age=-1)
    assert set(await sizes(files)) == set(await store.read(lambda sql: listed.blobs_from(sql, "", "~")))
    return figures


@asynccontextmanager
async def opened(folder: Path, url: str) -> AsyncIterator[Store]:
    database: Any = PostgresStore(url, Events()) if url else SqliteStore(folder / "data" / "cloud.db", Events())
    async with database.opened() as store:
        yield store


CASES = {  # database, place of the files, retention period in seconds, kills
    "sqlite": ("sqlite", "folder", 0.0, 5),
    "postgresql": ("postgresql", "folder", 0.0, 3),
    "bucket": ("sqlite", "bucket", 0.0, 3),
    "retention": ("sqlite", "folder", SHORT, 3),
}


@pytest.mark.limit(300 + 30 * (KILLS or 10))
@pytest.mark.parametrize("case", CASES)
async def test_sealed_readings_survive_kill_9(
    tmp_path: Path, case: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyarrow", reason="segments need the extra `data`")
    database, place, period, kills = CASES[case]
    kills, url = KILLS or kills, ""
    store_of_files: FolderBlobs | S3Blobs = FolderBlobs(tmp_path / "files")
    options = ["--seal-after", "1", "--files", str(tmp_path / "files")]
    if place == "bucket":
        bucket: S3Server = request.getfixturevalue("s3")
        for name, value in bucket.environ().items():
            monkeypatch.setenv(name, value)
        address = bucket.fresh()
        options[-1:] = [address, "--s3-endpoint", bucket.endpoint]
        store_of_files = S3Blobs(bucket.place(address))
    if database == "postgresql":
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
                    truth = await begun(running, client, period)
                await truth.check(client)
                await kill_at_work(running, client, truth, chance)
        if period:
            async with opened(tmp_path, url) as store:
                await store.write(partial(retention.set_days, owner=truth.organization, number=1))
    assert truth is not None
    async with cloud(tmp_path, *options, module=MODULE) as running, running.client(truth.key) as client:
        await truth.check(client)
        if period:
            await truth.until_all_are_gone(client)
    async with opened(tmp_path, url) as store, store_of_files.opened() as files:
        figures = await check_files(store, files)
    assert bool(figures.segments) is not bool(period)
    assert truth.acknowledged > kills
    print(f"{case}: {kills} kills; {truth.kept} readings kept, {truth.deleted} deleted; {figures}")
