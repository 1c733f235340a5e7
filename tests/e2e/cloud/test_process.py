"""machine-cloud as a process: its first start, its end, and what survives kill -9."""

from __future__ import annotations

import random
import signal
import stat
from pathlib import Path

import pytest
import trio

from rpc.api.client import ApiClient
from rpc.client import Channel
from rpc.credentials import ApiKey
from schema.errors import MachineError
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
    for path in (tmp_path / "data").iterdir():
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


async def test_what_was_acknowledged_survives_kill_9(tmp_path: Path) -> None:
    """Ten starts; each is killed at a random moment while four clients save configurations."""
    chance = random.Random(5)
    key: tuple[str, str] | None = None
    acknowledged: dict[str, int] = {}
    for round_ in range(10):
        async with cloud(tmp_path) as running:
            key = key or running.key
            async with running.client(key) as client:
                if not acknowledged:
                    (location,) = await client.call(
                        APP, "", "list_locations",
                        organization_id=(await client.call(APP, "", "list_organizations"))[0]["id"],
                    )  # fmt: skip
                    for name in "abcd":
                        robot = await client.call(APP, "", "new_robot", name=name, location=location["id"])
                        acknowledged[(await client.call(APP, "", "get_robot_parts", robot_id=robot))[0]["id"]] = 0
                for part, number in acknowledged.items():
                    found = await client.call(APP, "", "get_robot_part", id=part)
                    kept = found["part"]["robot_config"].get("number", 0)
                    assert kept in (number, number + 1), (round_, part)  # one may have been kept but not answered
                    history = await client.call(APP, "", "get_robot_part_history", id=part, page_limit=1000)
                    numbers = [one["old"]["robot_config"].get("number", 0) for one in history["history"]]
                    assert numbers == list(range(int(kept) - 1, -1, -1))
                    acknowledged[part] = int(kept)

                async def save(part: str, client: ApiClient = client) -> None:
                    while True:
                        number = acknowledged[part] + 1
                        config = {"number": number}
                        try:
                            await client.call(APP, "", "update_robot_part", id=part, name="", robot_config=config)
                        except MachineError:
                            return
                        acknowledged[part] = number

                async with trio.open_nursery() as nursery:
                    for part in acknowledged:
                        nursery.start_soon(save, part)
                    await trio.sleep(chance.uniform(0.05, 0.4))
                    running.process.kill()
    assert min(acknowledged.values()) > 10


async def test_a_port_that_is_taken_is_said_and_ends_it(tmp_path: Path) -> None:
    async with cloud(tmp_path / "a") as running:
        with pytest.raises(AssertionError, match="in use"):
            async with cloud(tmp_path / "b", "--listen", running.address):
                pass
