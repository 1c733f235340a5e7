"""The cloud as training scripts see it: who calls, and how often a script may call."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
from trio.testing import MockClock, memory_stream_pair

from cloud.domain.training import job_keys, jobs
from cloud.domain.training.jobs import NewJob
from cloud.server import training_network
from cloud.server.memory import APP, MemoryCloud
from cloud.store.sql import Sql
from cloud.values.author import KEY, Author
from rpc.api.client import ApiClient
from rpc.client.channel import Channel
from rpc.client.credentials import ApiKey
from schema.errors import ErrorKind, MachineError
from training.engine.port import Connect


@asynccontextmanager
async def script(connect: Connect, credentials: ApiKey | None = None) -> AsyncIterator[ApiClient]:
    """Provide a client whose connection is that of a job."""
    async with trio.open_nursery() as nursery:

        async def opened() -> trio.abc.Stream:
            near, far = memory_stream_pair()
            nursery.start_soon(connect, far)
            return near

        async with Channel("http://cloud", connect=opened, credentials=credentials) as channel:
            yield ApiClient(channel)
        nursery.cancel_scope.cancel()


async def call(client: ApiClient, times: int = 1) -> None:
    for _ in range(times):
        assert await client.call(APP, "", "list_organizations") == []  # the key of a job has no role


async def refused(client: ApiClient) -> None:
    with pytest.raises(MachineError, match="more than 2 calls in a second: call less often") as caught:
        await call(client)
    assert caught.value.kind is ErrorKind.EXHAUSTED


async def key(cloud: MemoryCloud, version: str = "1") -> str:
    """Return the id of the key of a new job."""
    organization, now = cloud.first.organization, cloud.cloud.clock()

    def work(sql: Sql) -> str:
        job = jobs.submit(sql, NewJob(organization, "d", "m", version), Author(KEY, cloud.first.id), now)
        return job_keys.create(sql, job, organization, now)[0]

    return await cloud.cloud.store.write(work)


async def test_calls_of_a_script_are_bounded_on_all_its_connections(
    cloud: MemoryCloud, monkeypatch: pytest.MonkeyPatch, mock_clock: MockClock
) -> None:
    monkeypatch.setattr(training_network, "BURST", 5)
    monkeypatch.setattr(training_network, "RATE", 2)
    of_key = training_network.network(cloud.cloud)
    first, second = of_key(await key(cloud)), of_key(await key(cloud, "2"))
    async with script(first) as client, script(first) as again, script(second) as other:
        await call(client, 3)
        await call(again, 2)
        await refused(client)
        await refused(again)
        await call(other, 5)
        mock_clock.jump(1.0)
        await call(again, 2)
        await refused(client)


async def test_the_key_of_a_person_gives_a_script_no_rights(cloud: MemoryCloud) -> None:
    connect = training_network.network(cloud.cloud)(await key(cloud))
    async with script(connect, ApiKey(cloud.first.id, cloud.first.key)) as client:
        await call(client)
        with pytest.raises(MachineError):
            await client.call(APP, "", "list_locations", organization_id=cloud.first.organization)


def test_a_script_can_read_each_picture_of_the_largest_dataset_at_once() -> None:
    assert training_network.BURST == 20_000
