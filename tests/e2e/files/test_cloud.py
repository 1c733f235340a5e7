"""machine-cloud with its files in a bucket, as processes: the official SDK, links, kills, replicas, moving."""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
import urllib.request
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path

import pytest
import trio
from viam.app.data_client import DataClient
from viam.app.viam_client import ViamClient
from viam.rpc.dial import DialOptions

from cloud.blobs import STAMP
from cloud.blobs.s3 import PART, S3Blobs
from cloud.blobs.s3_location import BucketLocation
from cloud.domain.upkeep.sweep import sweep
from cloud.store.commands import opened_for_command
from cloud.values.times import now
from rpc.api.client import ApiClient
from schema.errors import ErrorKind, MachineError
from tests.e2e.cloud.process import CloudProcess, cloud
from tests.e2e.cloud.test_data import picture, times
from tests.helpers.blobs import LIMIT
from tests.postgresql import Cluster
from tests.s3 import S3Server

SEED = int(os.environ.get("MACHINE_CLOUD_SEED", "5"))
KILLS = 2
APP = "viam.app.v1.AppService"
SYNC = "viam.app.datasync.v1.DataSyncService"
DATA = "viam.app.data.v1.DataService"

pytestmark = pytest.mark.usefixtures("_owner")


class Bucket:
    """A place in the server's bucket, and the options for it."""

    def __init__(self, server: S3Server) -> None:
        self.server = server
        self.files = server.fresh()
        self.endpoint = server.endpoint
        self.options = ("--files", self.files, "--s3-endpoint", self.endpoint)

    @property
    def place(self) -> BucketLocation:
        return self.server.place(self.files)

    def there(self) -> tuple[int, int]:
        """Return the number of files and of unfinished uploads."""
        objects, uploads = self.server.there(self.place)
        assert objects.pop(f"{self.place.prefix}{STAMP}") > 0
        return len(objects), len(uploads)

    async def a_week_later(self, folder: Path, postgres: str = "") -> None:
        """Sweep as if a week had passed, which removes deleted files."""
        async with (
            S3Blobs(self.place).opened() as blobs,
            opened_for_command(folder / "data/cloud.db", postgres) as store,
        ):
            await sweep(store, blobs, now() + timedelta(days=7.1))


@pytest.fixture
def bucket(s3: S3Server) -> Bucket:
    return Bucket(s3)


async def new_part(client: ApiClient, place: str) -> str:
    robot = await client.call(APP, "", "new_robot", name="rover", location=place)
    return str((await client.call(APP, "", "get_robot_parts", robot_id=robot))[0]["id"])


async def upload(client: ApiClient, part: str, *contents: bytes) -> str:
    sent = await client.call(
        SYNC, "", "file_upload", part_id=part, type="FILE", file_name="a.txt", contents=[{"data": o} for o in contents]
    )
    return str(sent["binary_data_id"])


async def content(client: ApiClient, subject: str) -> bytes:
    answer = await client.call(DATA, "", "binary_data_by_ids", binary_data_ids=[subject], include_binary=True)
    return bytes(answer["data"][0]["binary"])


async def sdk(process: CloudProcess, work: Callable[[DataClient], Awaitable[None]]) -> None:
    async def main() -> None:
        options = DialOptions.with_api_key(process.key[1], process.key[0])
        options.insecure = True
        async with asyncio.timeout(LIMIT):
            client = await ViamClient.create_from_dial_options(options, app_url=f"http://{process.address}")
            try:
                await work(client.data_client)
            finally:
                client.close()

    await trio.to_thread.run_sync(lambda: asyncio.run(main()))


async def get(url: str, **headers: str) -> tuple[int, bytes]:
    def fetch() -> tuple[int, bytes]:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=LIMIT) as answer:
            return answer.status, answer.read()

    return await trio.to_thread.run_sync(fetch)


def command(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "cloud.server.cli", *words], capture_output=True, text=True, timeout=LIMIT, check=False
    )


async def test_the_official_sdk_uploads_and_reads_back(tmp_path: Path, bucket: Bucket, s3: S3Server) -> None:
    large, links = os.urandom(PART + 1000), []
    path = tmp_path / "notes.txt"
    path.write_bytes(b"notes")
    async with cloud(tmp_path, *bucket.options) as process:
        async with process.client() as client:
            part = await new_part(client, process.facts["location"])

        async def work(data: DataClient) -> None:
            eye = {"part_id": part, "component_type": "camera", "component_name": "eye", "method_name": "GetImages"}
            image = await data.binary_data_capture_upload(
                binary_data=picture("red"), file_extension="png", data_request_times=times(0), **eye
            )
            notes = await data.file_upload_from_path(part_id=part, filepath=str(path))
            whole = await data.file_upload(part_id=part, data=large, file_name="large.bin")
            for subject, expected in ((image, picture("red")), (notes, b"notes"), (whole, large)):
                (item,) = await data.binary_data_by_ids([subject])
                assert item.binary == expected
                links.append((await data.create_binary_data_signed_url(subject))[0])
            assert await data.delete_binary_data_by_ids([notes]) == 1

        await sdk(process, work)
        assert await get(links[0]) == (200, picture("red"))
        assert await get(links[2]) == (200, large)
        assert await get(links[2], Range=f"bytes={PART - 5}-{PART + 4}") == (206, large[PART - 5 : PART + 5])
        assert await get(links[2], Range="bytes=-7") == (206, large[-7:])
        assert await process.stop() == 0
    assert bucket.there() == (3, 0)
    await bucket.a_week_later(tmp_path)
    assert bucket.there() == (2, 0)
    assert not (tmp_path / "data" / "files").exists()
    said = (tmp_path / "cloud.log").read_text()
    assert s3.secret not in said
    assert s3.key not in said


async def test_without_the_bucket_the_cloud_does_not_start(tmp_path: Path, bucket: Bucket) -> None:
    options = ("--files", "s3://no-such-bucket", "--s3-endpoint", bucket.endpoint)
    done = command("--data", str(tmp_path), "--listen", "localhost:0", *options)
    assert done.returncode == 1
    assert "create the bucket" in done.stderr


async def test_acknowledged_data_survive_kill_9(tmp_path: Path, bucket: Bucket) -> None:
    chance = random.Random(SEED)
    kept: dict[str, bytes] = {}
    key, part = ("", ""), ""
    acknowledged = trio.Event()

    async def send(client: ApiClient, number: int) -> None:
        try:
            while True:
                data = os.urandom(chance.choice((10, 1000)) if number else PART + 1)
                half = len(data) // 2
                kept[await upload(client, part, data[:half], data[half:])] = data
                acknowledged.set()
        except MachineError as error:
            if error.kind is not ErrorKind.UNAVAILABLE:
                raise

    for kill in range(KILLS):
        async with cloud(tmp_path, *bucket.options) as process:
            key = key if kill else process.key
            async with process.client(key) as client:
                part = part or await new_part(client, process.facts["location"])
                acknowledged = trio.Event()
                async with trio.open_nursery() as nursery:
                    for number in range(3):
                        nursery.start_soon(send, client, number)
                    with trio.fail_after(LIMIT):
                        await acknowledged.wait()
                    await trio.sleep(chance.uniform(0.0, 0.3))
                    process.process.kill()
    async with cloud(tmp_path, *bucket.options) as process, process.client(key) as client:
        for subject, data in kept.items():
            assert await content(client, subject) == data
    objects, _ = bucket.there()
    assert objects >= len(kept) >= KILLS
    async with S3Blobs(bucket.place, longest=0.0).opened() as blobs:
        await blobs.tidy(-60.0)
    assert bucket.there() == (objects, 0)


async def test_two_replicas_share_only_database_and_bucket(tmp_path: Path, bucket: Bucket, postgresql: Cluster) -> None:
    url = postgresql.fresh()
    options = ("--database", url, *bucket.options)
    async with cloud(tmp_path / "a", *options) as first, cloud(tmp_path / "b", *options) as two:
        async with first.client() as here, two.client(first.key) as there:
            part = await new_part(here, first.facts["location"])
            subject = await upload(here, part, b"shared")
            assert await content(there, subject) == b"shared"
            first.process.kill()
            assert await content(there, await upload(there, part, b"later")) == b"later"
            assert await there.call(DATA, "", "delete_binary_data_by_ids", binary_data_ids=[subject])
    assert bucket.there() == (2, 0)
    await bucket.a_week_later(tmp_path, url)
    assert bucket.there() == (1, 0)


async def test_files_move_from_a_folder_into_a_bucket(tmp_path: Path, bucket: Bucket) -> None:
    contents = [os.urandom(size) for size in (0, 1, PART + 1)]
    async with cloud(tmp_path) as process:
        key = process.key
        async with process.client() as client:
            part = await new_part(client, process.facts["location"])
            subjects = [await upload(client, part, item) for item in contents]
            first = await copied(tmp_path, bucket)
            assert "copied 3 files" in first
            assert "0 were there already" in first
            subjects.append(await upload(client, part, b"meanwhile"))
    assert "; 3 were there already" in await copied(tmp_path, bucket)
    (tmp_path / "data" / "files").rename(tmp_path / "gone")
    async with cloud(tmp_path, *bucket.options) as process, process.client(key) as client:
        assert [await content(client, subject) for subject in subjects] == [*contents, b"meanwhile"]


async def copied(folder: Path, bucket: Bucket) -> str:
    words = ("--data", str(folder / "data"), "--s3-endpoint", bucket.endpoint, "files", "copy", "--to", bucket.files)
    done = await trio.to_thread.run_sync(lambda: command(*words))
    assert done.returncode == 0, done.stderr
    return done.stdout
