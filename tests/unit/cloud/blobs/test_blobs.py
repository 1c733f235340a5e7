"""Blobs: stored completely or not at all, readable from any offset, swept once nothing refers to them."""

from __future__ import annotations

import hashlib
import os
import resource
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, contextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from cloud.blobs import PIECE, discard, sizes
from cloud.blobs.folder import FolderBlobs
from cloud.domain.upkeep.identity import bind
from cloud.store.events import Events
from cloud.store.sql import Store
from cloud.store.sqlite import SqliteStore
from schema.errors import ErrorKind, MachineError
from support.worker import Worker


@pytest.fixture
async def blobs(tmp_path: Path) -> AsyncIterator[FolderBlobs]:
    async with FolderBlobs(tmp_path / "files").opened() as opened:
        yield opened


async def pieces(*content: bytes) -> AsyncIterator[bytes]:
    for piece in content:
        yield piece


async def content_of(blobs: FolderBlobs, key: str, start: int = 0) -> bytes:
    data = b""
    async with aclosing(blobs.read(key, start)) as reading:
        async for piece in reading:
            data += piece
    return data


def files(tmp_path: Path) -> list[Path]:
    return [path for path in (tmp_path / "files").glob("??/*") if path.is_file()]


async def test_a_stored_blob_is_read_from_any_byte(blobs: FolderBlobs) -> None:
    data = os.urandom(PIECE + 5000)
    blob = await blobs.put(pieces(data[:10], b"", data[10:]))
    assert (blob.size, blob.digest) == (len(data), hashlib.sha256(data).hexdigest())
    for start in (0, 9, 10, PIECE, len(data) - 1, len(data), len(data) + 1):
        assert await content_of(blobs, blob.key, start) == data[start:]


@pytest.mark.parametrize(("size", "expected"), [(0, 1), (1, 1), (PIECE - 1, 1), (PIECE, 2), (PIECE + 1, 2)])
async def test_a_blob_takes_few_calls_of_the_thread(
    blobs: FolderBlobs, monkeypatch: pytest.MonkeyPatch, size: int, expected: int
) -> None:
    data = os.urandom(size)
    blob = await blobs.put(pieces(data))
    calls, run = 0, Worker.run

    async def counted(self: Worker, function: Any) -> Any:
        nonlocal calls
        calls += 1
        return await run(self, function)

    monkeypatch.setattr(Worker, "run", counted)
    assert await content_of(blobs, blob.key) == data
    assert calls == expected


async def test_a_deleted_blob_is_gone_and_can_be_deleted_again(blobs: FolderBlobs) -> None:
    blob = await blobs.put(pieces(b"x"))
    await blobs.delete(blob.key)
    await blobs.delete(blob.key)
    with pytest.raises(MachineError) as caught:
        await content_of(blobs, blob.key)
    assert caught.value.kind is ErrorKind.NOT_FOUND


@pytest.mark.parametrize("key", ["", "../../etc/passwd", "a/b", "a.part"])
async def test_a_key_is_not_a_path(blobs: FolderBlobs, key: str) -> None:
    with pytest.raises(ValueError, match="is not a valid blob key"):
        await blobs.delete(key)


async def test_an_incomplete_upload_leaves_nothing(blobs: FolderBlobs, tmp_path: Path) -> None:
    async def failing() -> AsyncIterator[bytes]:
        yield b"begun"
        raise MachineError("too large", kind=ErrorKind.EXHAUSTED)

    async def endless() -> AsyncIterator[bytes]:
        yield b"begun"
        await trio.sleep_forever()

    with pytest.raises(MachineError):
        await blobs.put(failing())
    with trio.move_on_after(0.05):
        async with aclosing(endless()) as content:  # type: ignore[type-var]
            await blobs.put(content)
    assert await sizes(blobs) == {}  # also waits for the work that was queued on the thread
    assert files(tmp_path) == []


async def test_a_large_file_is_written_while_it_arrives(
    blobs: FolderBlobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Write data back as it arrives: one long fdatasync at the end would block the thread that all requests share."""
    sizes_then: list[int] = []
    monkeypatch.setattr("cloud.blobs.folder.WRITE_BACK", 2 * PIECE)
    monkeypatch.setattr(os, "fdatasync", lambda descriptor: sizes_then.append(os.fstat(descriptor).st_size))
    data = os.urandom(5 * PIECE + 7)
    blob = await blobs.put(pieces(*(data[start : start + PIECE] for start in range(0, len(data), PIECE))))
    assert sizes_then == [2 * PIECE, 4 * PIECE]
    assert await content_of(blobs, blob.key) == data


LARGEST = 8 * 1024 * 1024  # size limit in bytes that simulates a full disk; larger than anything written meanwhile


@contextmanager
def full_disk() -> Iterator[None]:
    """Limit the size of files to LARGEST: the kernel refuses longer writes as it does on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (LARGEST, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("beyond", [[PIECE], [1000, 1000]], ids=["at once", "with what is still to be written"])
async def test_a_full_disk_is_a_temporary_error_and_leaves_nothing(
    blobs: FolderBlobs, tmp_path: Path, beyond: list[int]
) -> None:
    sizes_of = [*[PIECE] * (LARGEST // PIECE), *beyond]
    with full_disk(), pytest.raises(MachineError, match="cannot be used") as caught:
        await blobs.put(pieces(*(bytes(size) for size in sizes_of)))
    assert caught.value.kind is ErrorKind.UNAVAILABLE
    assert await sizes(blobs) == {}  # also waits for the work that was queued on the thread
    assert files(tmp_path) == []
    assert (await blobs.put(pieces(b"x"))).size == 1  # works once there is room again


async def test_an_unwritable_folder_is_unavailable(blobs: FolderBlobs, tmp_path: Path) -> None:
    key = "ab" * 16
    (tmp_path / "files" / "ab").write_bytes(b"in the way")
    with pytest.raises(MachineError) as caught:
        await blobs.put(pieces(b"x"), key)
    assert caught.value.kind is ErrorKind.UNAVAILABLE


async def test_only_old_blobs_are_listed_and_incomplete_ones_deleted(blobs: FolderBlobs, tmp_path: Path) -> None:
    old, new = await blobs.put(pieces(b"old")), await blobs.put(pieces(b"newer"))
    folder = tmp_path / "files"
    half = [folder / old.key[:2] / f"{'0' * 32}.part", folder / new.key[:2] / f"{'1' * 32}.part"]
    for path in half:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"half")
    hour_ago = time.time() - 3700
    for path in (folder / old.key[:2] / old.key, half[0]):
        os.utime(path, (hour_ago, hour_ago))
    async with aclosing(blobs.listed()) as pages:
        assert {item.key async for page in pages for item in page if item.time < hour_ago + 60} == {old.key}
    assert await blobs.tidy(3600.0) == 1
    assert {path.name for path in files(tmp_path)} == {old.key, new.key, half[1].name}
    assert await sizes(blobs) == {old.key: 3, new.key: 5}


async def test_a_blob_replaces_an_earlier_one_with_its_key(blobs: FolderBlobs, tmp_path: Path) -> None:
    blob = await blobs.put(pieces(b"damaged"))
    again = await blobs.put(pieces(b"whole"), blob.key)
    assert (again.key, await content_of(blobs, blob.key)) == (blob.key, b"whole")
    assert len(files(tmp_path)) == 1


class Away(FolderBlobs):
    """Become unavailable after `after` deletions."""

    def __init__(self, folder: Path, after: int) -> None:
        super().__init__(folder)
        self.left = after

    async def delete(self, key: str) -> None:
        self.left -= 1
        if self.left < 0:
            raise MachineError("away", kind=ErrorKind.UNAVAILABLE)
        await super().delete(key)


async def test_blobs_that_cannot_be_deleted_are_left_to_the_sweep(tmp_path: Path) -> None:
    async with Away(tmp_path / "files", after=3).opened() as blobs:
        keys = [(await blobs.put(pieces(b"x"))).key for _ in range(20)]
        assert await discard(blobs, keys[:2]) == 2
        assert await discard(blobs, keys[2:]) == 1
        assert len(await sizes(blobs)) == 17


async def test_a_starting_replica_does_not_delete_blobs_being_written(blobs: FolderBlobs, tmp_path: Path) -> None:
    begun, go_on = trio.Event(), trio.Event()

    async def slow() -> AsyncIterator[bytes]:
        yield b"one"
        begun.set()
        await go_on.wait()
        yield b"two"

    async def put() -> None:
        blob = await blobs.put(slow())
        assert await content_of(blobs, blob.key) == b"onetwo"

    async with trio.open_nursery() as nursery:
        nursery.start_soon(put)
        await begun.wait()
        async with FolderBlobs(tmp_path / "files").opened():
            go_on.set()


class Overtaken(FolderBlobs):
    """Let another replica bind the store, once, right after its stamp was read as absent."""

    store: Store

    async def stamp(self) -> bytes:
        result = await super().stamp()
        if not result:
            async with FolderBlobs(Path(self.where)).opened() as other:
                await bind(self.store, other)
        return result


async def test_two_replicas_start_on_an_empty_database_and_an_empty_store(tmp_path: Path) -> None:
    async with SqliteStore(":memory:", Events()).opened() as store, Overtaken(tmp_path / "files").opened() as blobs:
        blobs.store = store
        assert await bind(store, blobs) == []
        assert await bind(store, blobs) == []
