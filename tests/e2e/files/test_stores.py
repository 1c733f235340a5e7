"""The contract of both file stores: a folder, and a bucket of an independent S3 server."""

from __future__ import annotations

import hashlib
import os
import random
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from pathlib import Path

import pytest
import trio

from cloud.blobs import PIECE, Blobs, sizes
from cloud.blobs.choice import store_of
from cloud.blobs.s3 import PART
from cloud.blobs.s3_location import BucketLocation
from schema.errors import ErrorKind, MachineError
from tests.helpers.blobs import content_of, pieces, put
from tests.s3 import S3Server

SEED = int(os.environ.get("MACHINE_CLOUD_SEED", "5"))


class Stored:
    """A store, with access to its actual content."""

    def __init__(self, blobs: Blobs, files: Path | BucketLocation, server: S3Server | None) -> None:
        self.blobs = blobs
        self.files = files
        self.server = server

    def there(self) -> dict[str, int]:
        """Return the names and sizes of everything, including incomplete files."""
        if self.server is None:
            assert isinstance(self.files, Path)
            results = [path for path in self.files.glob("*/*") if path.is_file()]
            return {str(path.relative_to(self.files)): path.stat().st_size for path in results}
        assert isinstance(self.files, BucketLocation)
        objects, uploads = self.server.there(self.files)
        assert uploads == []
        return {name.removeprefix(self.files.prefix): size for name, size in objects.items()}


@pytest.fixture(params=["folder", "s3"])
async def stored(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Stored]:
    server: S3Server | None = None
    files: Path | BucketLocation = tmp_path / "files"
    if request.param == "s3":
        server = request.getfixturevalue("s3")
        request.getfixturevalue("_owner")
        files = server.place()
    async with store_of(files) as blobs:
        yield Stored(blobs, files, server)


async def test_a_stored_blob_is_read_from_any_byte(stored: Stored) -> None:
    data = os.urandom(PIECE + 5000)
    blob = await put(stored.blobs, data[:10], b"", data[10:])
    assert (blob.size, blob.digest) == (len(data), hashlib.sha256(data).hexdigest())
    for start in (0, 9, PIECE, len(data) - 1, len(data), len(data) + 1):
        assert await content_of(stored.blobs, blob.key, start) == data[start:]
    assert stored.there() == {f"{blob.key[:2]}/{blob.key}": len(data)}


@pytest.mark.parametrize("sizes", [(), (0,), (1,), (PART,), (PART, 1), (3, PART - 3, PART, 5)])
async def test_sizes_near_the_size_of_a_part(stored: Stored, sizes: tuple[int, ...]) -> None:
    data = [os.urandom(size) for size in sizes]
    whole = b"".join(data)
    blob = await put(stored.blobs, *data)
    assert (blob.size, blob.digest) == (len(whole), hashlib.sha256(whole).hexdigest())
    assert await content_of(stored.blobs, blob.key) == whole
    assert await content_of(stored.blobs, blob.key, max(0, len(whole) - 1)) == whole[-1:]
    assert stored.there() == {f"{blob.key[:2]}/{blob.key}": len(whole)}


async def test_a_deleted_blob_is_gone_and_can_be_deleted_again(stored: Stored) -> None:
    blob = await put(stored.blobs, b"x")
    await stored.blobs.delete(blob.key)
    await stored.blobs.delete(blob.key)
    with pytest.raises(MachineError) as caught:
        await content_of(stored.blobs, blob.key)
    assert caught.value.kind is ErrorKind.NOT_FOUND
    assert stored.there() == {}


@pytest.mark.parametrize("key", ["../../etc/passwd", "a/b", "a.part"])
async def test_a_key_is_not_a_path(stored: Stored, key: str) -> None:
    with pytest.raises(ValueError, match="is not a valid blob key"):
        await stored.blobs.delete(key)
    with pytest.raises(ValueError, match="is not a valid blob key"):
        await put(stored.blobs, b"x", key=key)
    with pytest.raises(ValueError, match="is not a valid blob key"):
        await content_of(stored.blobs, key)


async def test_lists_of_several_pages_and_old_blobs(stored: Stored) -> None:
    begin = time.time()
    for number in range(20):  # a page of the server has 7
        await put(stored.blobs, b"x" * number, key=f"ab{number:030x}")
    other = await put(stored.blobs, b"other", key="cd" + "0" * 30)
    expected = {f"ab{number:030x}": number for number in range(20)}
    assert await sizes(stored.blobs) == {**expected, other.key: 5}
    async with aclosing(stored.blobs.listed()) as pages:
        listed = [page async for page in pages]
    assert len(listed) == (2 if stored.server is None else 3)
    assert all(begin - 60 < item.time < time.time() + 60 for page in listed for item in page)
    assert await stored.blobs.tidy(-60.0) == 0
    assert len(stored.there()) == 21


async def test_a_blob_replaces_an_earlier_one_with_its_key(stored: Stored) -> None:
    blob = await put(stored.blobs, b"damaged")
    again = await put(stored.blobs, b"whole", key=blob.key)
    assert (again.key, await content_of(stored.blobs, blob.key)) == (blob.key, b"whole")


async def test_an_incomplete_upload_leaves_nothing(stored: Stored) -> None:
    async def failing(count: int) -> AsyncGenerator[bytes, None]:
        for _ in range(count):
            yield bytes(PIECE)
        raise MachineError("too large", kind=ErrorKind.EXHAUSTED)

    for count in (0, 1, 9):
        with pytest.raises(MachineError, match="too large"):
            async with aclosing(failing(count)) as content:
                await stored.blobs.put(content)
    assert await sizes(stored.blobs) == {}  # also waits for the work that was queued on the thread
    assert stored.there() == {}


async def test_an_upload_cancelled_at_any_moment_leaves_nothing(stored: Stored) -> None:
    chance = random.Random(SEED)
    data = [bytes(PIECE)] * 9
    kept = 0
    for number in range(16):
        content = data if number % 2 else data[:1]
        with trio.move_on_after(chance.uniform(0.0, 0.6 if number % 2 else 0.04)):
            async with aclosing(pieces(*content)) as result:
                await stored.blobs.put(result, f"{number:032x}")
            kept += 1
    assert len(await sizes(stored.blobs)) == kept
    assert len(stored.there()) == kept


async def test_an_abandoned_reader_leaves_nothing_open(stored: Stored) -> None:
    blob = await put(stored.blobs, *([bytes(PIECE)] * 6))
    for _ in range(40):  # more than the number of connections
        async with aclosing(stored.blobs.read(blob.key)) as reading:
            assert await anext(reading)
    assert len(await content_of(stored.blobs, blob.key)) == 6 * PIECE


async def test_many_concurrent_uploads(stored: Stored) -> None:
    async def store_file(number: int) -> None:
        data = bytes([number]) * (100 + number)
        blob = await put(stored.blobs, data)
        assert await content_of(stored.blobs, blob.key) == data
        if number % 2:
            await stored.blobs.delete(blob.key)

    async with trio.open_nursery() as nursery:
        for number in range(60):
            nursery.start_soon(store_file, number)
    assert len(stored.there()) == 30
