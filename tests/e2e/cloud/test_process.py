"""machine-cloud as a process: its first start and its end."""

from __future__ import annotations

import signal
import stat
from pathlib import Path

import pytest

from rpc.api.client import ApiClient
from rpc.client import Channel
from rpc.credentials import ApiKey
from tests.e2e.cloud.process import cloud

APP = "viam.app.v1.AppService"


async def test_the_first_start_prints_a_key_once(tmp_path: Path) -> None:
    async with cloud(tmp_path, "--organization", "Acme") as first:
        key = first.key
        async with first.client() as client:
            assert [one["name"] for one in await client.call(APP, "", "list_organizations")] == ["Acme"]
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


async def test_a_token_outlives_the_process(tmp_path: Path) -> None:
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


async def test_a_port_that_is_taken_is_said_and_ends_it(tmp_path: Path) -> None:
    async with cloud(tmp_path / "a") as running:
        with pytest.raises(AssertionError, match="in use"):
            async with cloud(tmp_path / "b", "--listen", running.address):
                pass
