"""The disk of a cloud is full while it ingests, seals and deletes readings, and has space again later.

Uploads are refused then, readings are still answered, and after that everything goes on without a restart: each
acknowledged reading exists exactly once, and no file is left that nothing names.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
import trio

from cloud.blobs.folder import FolderBlobs
from rpc.api.client import ApiClient
from tests.e2e.cloud.process import cloud
from tests.e2e.cloud.test_killed_sealing import MODULE, begun, check_files, opened, until_it_is_dead

SIZE = 24 * 1024 * 1024  # bytes of the disk
LEFT = 64 * 1024  # of which these are free when it is nearly full
REFUSALS = 20
LIMIT = 60.0


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    if os.geteuid() != 0:
        pytest.skip("only root may mount the small file system that becomes full")
    folder = tmp_path / "disk"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "none", str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


async def _until_refused_often(way: Callable[[ApiClient], Awaitable[None]], client: ApiClient) -> None:
    for _ in range(REFUSALS):
        await until_it_is_dead(way, client)  # or refuses as long as its disk is full


async def test_a_full_disk_loses_nothing_and_leaves_nothing(disk: Path) -> None:
    pytest.importorskip("pyarrow", reason="segments need the extra `data`")
    blobs, rest = FolderBlobs(disk / "files"), disk / "rest"
    options = ["--files", str(disk / "files"), "--seal-after", "1"]
    async with cloud(disk, *options, module=MODULE) as running, running.client() as client:
        truth = await begun(running, client)
        for _ in range(5):
            await truth.keep(client)
        with rest.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, shutil.disk_usage(disk).free - LEFT)
        with trio.fail_after(LIMIT):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_until_refused_often, truth.keep, client)
                nursery.start_soon(_until_refused_often, truth.add_and_delete, client)
        assert running.process.poll() is None
        await truth.check(client)
        rest.unlink()
        full = truth.acknowledged
        for _ in range(20):
            await truth.keep(client)
        await truth.add_and_delete(client)
        await truth.check(client)
        await running.stop()
    async with cloud(disk, *options, module=MODULE) as running, running.client(truth.key) as client:
        await truth.check(client)
    async with opened(disk, "") as store, blobs.opened() as files:
        figures = await check_files(store, files)
    assert figures.segments
    print(f"{full} uploads before the disk was full; {truth.kept} readings kept; {figures}")
