"""machine-cloud as a process: its first start and its stop."""

from __future__ import annotations

import signal
import stat
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
import trio

from cloud.domain.queries.query_process import Bounds
from cloud.server.app import STOP_LIMIT
from rpc.api.client import ApiClient
from rpc.client.channel import Channel
from rpc.client.credentials import ApiKey
from schema.errors import ErrorKind, MachineError
from tests.e2e.cloud.process import cloud
from tests.e2e.harness import START_LIMIT_S

APP = "viam.app.v1.AppService"
DATA = "viam.app.data.v1.DataService"


async def test_the_first_start_prints_a_key_once(tmp_path: Path) -> None:
    async with cloud(tmp_path, "--organization", "Acme") as first:
        key = first.key
        async with first.client() as client:
            assert [item["name"] for item in await client.call(APP, "", "list_organizations")] == ["Acme"]
        assert await first.stop() == 0
    async with cloud(tmp_path) as second:
        assert second.facts == {}
        async with second.client(key) as client:
            assert len(await client.call(APP, "", "list_organizations")) == 1
        assert await second.stop(signal.SIGINT) == 0
    mode = stat.S_IMODE((tmp_path / "data" / "cloud.db").stat().st_mode)
    assert mode == 0o600
    files = [path for path in (tmp_path / "data").rglob("*") if path.is_file()]
    assert files
    for path in files:
        assert key[1].encode() not in path.read_bytes()


async def test_a_token_survives_a_restart(tmp_path: Path) -> None:
    async with cloud(tmp_path) as first:
        key = first.key
        credentials = ApiKey(*key)
        async with Channel(first.address, credentials=credentials) as channel:
            await ApiClient(channel).call(APP, "", "list_organizations")
            headers = await credentials.headers(channel)
        await first.stop()
    async with cloud(tmp_path) as second, Channel(second.address) as channel:
        client = ApiClient(channel, metadata=dict(headers))
        assert len(await client.call(APP, "", "list_organizations")) == 1


async def test_a_used_port_is_reported_and_ends_the_cloud(tmp_path: Path) -> None:
    async with cloud(tmp_path / "a") as running:
        with pytest.raises(AssertionError, match="in use"):
            async with cloud(tmp_path / "b", "--listen", running.address):
                pass


SLOW = "SELECT COUNT(*) FROM range(1000000000) a, range(1000000000) b WHERE a.range + b.range < 0"


async def test_the_cloud_ends_with_its_children_during_a_query(tmp_path: Path) -> None:
    ended: list[MachineError] = []
    computed = 0.0

    async def ask(client: ApiClient, organization: str) -> None:
        with pytest.raises(MachineError) as caught:
            await client.call(DATA, "", "tabular_data_by_sql", organization_id=organization, sql_query=SLOW)
        ended.append(caught.value)

    async def watch(child: psutil.Process) -> None:
        nonlocal computed
        with suppress(psutil.NoSuchProcess):
            while child.is_running():
                computed = _computed(child)
                await trio.sleep(0.05)  # there is no event from another process

    async with cloud(tmp_path) as running, running.client() as client, trio.open_nursery() as nursery:
        nursery.start_soon(ask, client, running.facts["organization"])
        with trio.fail_after(START_LIMIT_S):
            while not (
                children := [item for item in psutil.Process(running.process.pid).children() if _computed(item) > 1]
            ):
                assert not ended, ended
                await trio.sleep(0.05)
        assert left(tmp_path)
        nursery.start_soon(watch, children[0])
        with trio.fail_after(STOP_LIMIT):
            assert await running.stop() == 0
    assert not children[0].is_running()
    assert not left(tmp_path)
    assert 1 < computed < Bounds().cpu - 5  # killed by the stop, which gives calls 10 s, not by its own limit
    assert ended[0].kind is ErrorKind.UNAVAILABLE


def left(folder: Path) -> list[Path]:
    """Return the folders of queries."""
    return list((folder / "data" / "queries").glob("*/*"))


def _computed(child: psutil.Process) -> float:
    """Return the CPU seconds of a process; its start takes less than one."""
    times = child.cpu_times()
    return float(times.user + times.system)
