"""An unreliable store: what is lost is requested again, and what was acknowledged is complete."""

from __future__ import annotations

import os
import random
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

import pytest
import trio
import trio.testing

from cloud.blobs import ListedBlob, discard, sizes
from cloud.blobs import s3_client as client
from cloud.blobs.folder import FolderBlobs
from cloud.blobs.s3 import FIRST_WINDOW, LONGEST, S3Blobs
from cloud.blobs.s3_location import BucketLocation
from cloud.commands.copying import CopyResult, copy
from schema.errors import ErrorKind, MachineError
from tests.e2e.files.proxy import Proxy, Request, Way, proxy
from tests.helpers.blobs import LIMIT, content_of, pieces, put
from tests.s3 import S3Server

SEED = int(os.environ.get("MACHINE_CLOUD_SEED", "5"))
PART = 64 * 1024  # bytes
BIG = PART + 5


class Weather:
    """A store behind a proxy."""

    def __init__(self, server: S3Server, place: BucketLocation, blobs: S3Blobs, front: Proxy) -> None:
        self.server = server
        self.place = place
        self.blobs = blobs
        self.proxy = front
        self.data = os.urandom(BIG)

    def nothing_is_there(self) -> bool:
        return self.server.there(self.place) == ({}, [])


@pytest.fixture
async def weather(s3: S3Server, _owner: None, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Weather]:
    monkeypatch.setattr(client, "FIRST_WAIT", 0.01)  # short pauses: only their number matters here
    async with proxy(s3.port) as front:
        place = s3.place(endpoint=front.endpoint)
        async with S3Blobs(place, part=PART).opened() as blobs:
            front.asked.clear()
            yield Weather(s3, place, blobs, front)


NOT_DONE = (Way.ERROR, Way.SLOW_DOWN, Way.CUT)
BEGIN, PIECES, END = "POST uploads", "PUT partNumber", "POST uploadId"


@pytest.mark.parametrize("way", [*NOT_DONE, Way.LOST])
async def test_a_small_file_arrives_despite_faults(weather: Weather, way: Way) -> None:
    weather.proxy.faults = [("PUT", way)] * 2
    blob = await put(weather.blobs, weather.data[:1000])
    assert weather.proxy.asked == ["PUT"] * 3
    assert await content_of(weather.blobs, blob.key) == weather.data[:1000]
    assert len(await sizes(weather.blobs)) == 1


@pytest.mark.parametrize("kind", [BEGIN, PIECES, END])
@pytest.mark.parametrize("way", [Way.ERROR, Way.SLOW_DOWN, Way.LOST])
async def test_a_large_file_arrives_despite_faults(weather: Weather, kind: str, way: Way) -> None:
    weather.proxy.faults = [(kind, way)] * 2
    blob = await put(weather.blobs, weather.data)
    assert weather.proxy.faults == []
    assert await content_of(weather.blobs, blob.key) == weather.data
    objects, left = weather.server.there(weather.place)
    assert list(objects.values()) == [BIG]
    assert len(left) == (2 if (kind, way) == (BEGIN, Way.LOST) else 0)  # no client received their ids
    assert await weather.blobs.tidy(0.0) == len(left)
    assert weather.server.there(weather.place) == (objects, [])


async def test_an_upload_completed_by_an_unanswered_attempt_is_kept(weather: Weather) -> None:
    weather.proxy.faults = [(END, Way.LOST), (END, Way.GONE)]
    blob = await put(weather.blobs, weather.data)
    assert weather.proxy.faults == []
    assert await content_of(weather.blobs, blob.key) == weather.data
    weather.proxy.faults = [(END, Way.GONE)]
    with pytest.raises(MachineError, match="NoSuchUpload"):
        await put(weather.blobs, weather.data)
    assert weather.server.there(weather.place)[1] == []
    assert await sizes(weather.blobs) == {blob.key: BIG}


async def test_an_error_with_status_200_is_an_error(weather: Weather) -> None:
    weather.proxy.faults = [(END, Way.ERROR_200)]
    blob = await put(weather.blobs, weather.data)
    assert weather.proxy.asked.count(END) == 2
    assert await sizes(weather.blobs) == {blob.key: BIG}


@pytest.mark.parametrize("kind", ["PUT", BEGIN, PIECES, END])
async def test_a_failing_store_is_unavailable_and_keeps_nothing(weather: Weather, kind: str) -> None:
    weather.proxy.always = {kind: Way.SLOW_DOWN}
    with pytest.raises(MachineError, match="SlowDown") as caught:
        await put(weather.blobs, weather.data if kind != "PUT" else b"small")
    assert caught.value.kind is ErrorKind.UNAVAILABLE
    assert weather.proxy.asked.count(kind) == client.ATTEMPTS
    assert weather.nothing_is_there()


@pytest.mark.parametrize(
    ("way", "most"), [(Way.ERROR, 8), (Way.SLOW_DOWN, 8), (Way.LOST, 8), (Way.HALF, 8), (Way.SHORT, 10)]
)
async def test_an_interrupted_download_is_resumed(weather: Weather, way: Way, most: int) -> None:
    data = os.urandom(2 * FIRST_WINDOW)
    blob = await put(weather.blobs, data)
    weather.proxy.asked.clear()
    expected: list[str] = []
    weather.proxy.before = lambda request: expected.append(_range(request))
    weather.proxy.faults = [("GET", way)] * 3
    assert await content_of(weather.blobs, blob.key, 7) == data[7:]
    assert weather.proxy.faults == []
    assert len(expected) <= most
    firsts = [int(item.partition("=")[2].partition("-")[0]) for item in expected]
    assert firsts == sorted(firsts)
    if way in (Way.HALF, Way.SHORT):
        assert len(set(firsts)) == len(firsts)  # no range is requested twice


def _range(request: Request) -> str:
    return dict(request.headers)[b"range"].decode()


async def test_a_repeatedly_interrupted_download_continues_while_it_progresses(weather: Weather) -> None:
    data = weather.data[:3000]
    blob = await put(weather.blobs, data)
    weather.proxy.always = {"GET": Way.HALF}
    weather.proxy.asked.clear()
    with pytest.raises(MachineError) as caught:
        await content_of(weather.blobs, blob.key)
    assert caught.value.kind is ErrorKind.UNAVAILABLE
    assert len(weather.proxy.asked) == 12 + client.ATTEMPTS - 1  # 1500, 750, ... 1 bytes, and finally none


async def test_content_of_another_range_is_refused(weather: Weather) -> None:
    blob = await put(weather.blobs, weather.data[:5000])
    weather.proxy.faults = [("GET", Way.OTHER)]
    with pytest.raises(MachineError, match="did not send the requested range") as caught:
        await content_of(weather.blobs, blob.key, 10)
    assert caught.value.kind is ErrorKind.UNAVAILABLE


async def test_lists_and_deletions_are_retried(weather: Weather) -> None:
    blob = await put(weather.blobs, b"x")
    weather.proxy.faults = [("GET list-type", Way.SLOW_DOWN), ("GET list-type", Way.HALF), ("DELETE", Way.LOST)]
    assert await sizes(weather.blobs) == {blob.key: 1}
    assert await discard(weather.blobs, [blob.key]) == 1
    assert weather.proxy.faults == []
    assert weather.nothing_is_there()


async def test_an_unreachable_store_is_unavailable(weather: Weather) -> None:
    blob = await put(weather.blobs, b"x")
    away = S3Blobs(replace(weather.place, origin="http://127.0.0.1:1"))
    with pytest.raises(MachineError, match=r"cannot be written to: .*cannot be reached: .*refused") as caught:
        async with away.opened():
            pass
    assert caught.value.kind is ErrorKind.PRECONDITION
    weather.proxy.always = dict.fromkeys(("GET", "DELETE", "GET list-type"), Way.CUT)
    for call in (content_of(weather.blobs, blob.key), weather.blobs.delete(blob.key), sizes(weather.blobs)):
        with pytest.raises(MachineError) as caught:
            await call
        assert caught.value.kind is ErrorKind.UNAVAILABLE
    assert await discard(weather.blobs, [blob.key]) == 0
    weather.proxy.always = {}
    assert await content_of(weather.blobs, blob.key) == b"x"


@pytest.mark.parametrize("kind", ["PUT", BEGIN, PIECES, END])
async def test_a_hanging_upload_can_be_cancelled(weather: Weather, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request that hangs delays the cancellation only for a limited time, and the unfinished upload is removed."""
    monkeypatch.setattr("cloud.blobs.s3.GRACE", 2.0)
    weather.proxy.faults = [(kind, Way.HANG)]
    with trio.fail_after(LIMIT):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(put, weather.blobs, weather.data if kind != "PUT" else b"small")
            await weather.proxy.hanging.wait()
            nursery.cancel_scope.cancel()
    assert weather.nothing_is_there()


@pytest.mark.parametrize("kind", ["PUT", BEGIN, END])
async def test_an_upload_cancelled_during_completion_is_undone(weather: Weather, kind: str) -> None:
    """The answer arrives after the cancellation, and names what must be removed."""
    with trio.fail_after(LIMIT):
        async with trio.open_nursery() as nursery:

            def cancel(request: Request) -> None:
                if request.kind == kind:
                    nursery.cancel_scope.cancel()

            weather.proxy.before = cancel
            nursery.start_soon(put, weather.blobs, weather.data if kind != "PUT" else b"small")
    assert weather.proxy.asked[-1].startswith("DELETE")
    assert weather.nothing_is_there()


async def test_concurrent_requests_are_limited(weather: Weather) -> None:
    weather.proxy.gate = trio.Event()
    async with trio.open_nursery() as nursery:
        for _ in range(client.PARALLEL * 3):
            nursery.start_soon(put, weather.blobs, b"x")
        await trio.testing.wait_all_tasks_blocked(0.3)
        assert weather.proxy.busy == client.PARALLEL
        weather.proxy.gate.set()
    assert len(await sizes(weather.blobs)) == client.PARALLEL * 3


async def test_random_faults(weather: Weather) -> None:
    """Random faults of all kinds while files are stored and deleted: acknowledged files exist and are complete."""
    chance = random.Random(SEED)
    kinds = ("PUT", "GET", "DELETE", PIECES, END)
    ways = (Way.ERROR, Way.SLOW_DOWN, Way.LOST, Way.HALF)

    def trouble(request: Request) -> None:
        if request.kind in kinds and chance.random() < 0.25:
            weather.proxy.faults.append((request.kind, chance.choice(ways)))

    weather.proxy.before = trouble
    kept: dict[str, bytes] = {}
    doubtful: set[str] = set()  # deletions in progress; an error may arrive although the file was deleted
    kinds_seen: set[ErrorKind] = set()

    async def client_(number: int) -> None:
        for _ in range(6):
            size = chance.choice((0, 10, PART, BIG))
            data = weather.data[:size]
            try:
                blob = await put(weather.blobs, data)
                kept[blob.key] = data
                assert await content_of(weather.blobs, blob.key) == data
                if chance.random() < 0.5:
                    doubtful.add(blob.key)
                    await weather.blobs.delete(blob.key)
                    del kept[blob.key]
            except MachineError as error:
                kinds_seen.add(error.kind)

    async with trio.open_nursery() as nursery:
        for number in range(4):
            nursery.start_soon(client_, number)
    weather.proxy.before = lambda request: None
    weather.proxy.faults.clear()
    assert kinds_seen <= {ErrorKind.UNAVAILABLE}
    for key in kept.keys() & await sizes(weather.blobs):
        assert await content_of(weather.blobs, key) == kept[key]
    assert kept.keys() - await sizes(weather.blobs) <= doubtful


async def test_a_too_slow_upload_is_refused(weather: Weather) -> None:
    """Sweeps remove uploads by their start time, so an old upload must not be completed."""
    async with S3Blobs(weather.place, longest=-1.0, part=PART).opened() as hasty:
        with pytest.raises(MachineError, match="took more than") as caught:
            await put(hasty, weather.data)
        assert caught.value.kind is ErrorKind.TIMEOUT
        await put(hasty, b"small")
    assert len(weather.server.there(weather.place)[0]) == 1


async def test_a_multipart_upload_is_old_from_its_completion(weather: Weather) -> None:
    small, large = await put(weather.blobs, b"x"), await put(weather.blobs, weather.data)
    async with aclosing(weather.blobs.listed()) as pages:
        times = {item.key: item.time async for page in pages for item in page}
    assert abs(times[large.key] - times[small.key] - LONGEST) < 60


async def test_a_slow_reader_holds_no_connection(weather: Weather) -> None:
    blob = await put(weather.blobs, bytes(2 * FIRST_WINDOW))
    async with aclosing(weather.blobs.read(blob.key)) as reading:
        result = len(await anext(reading))
        assert weather.proxy.busy == 0
        async for piece in reading:
            result += len(piece)
    assert result == 2 * FIRST_WINDOW


async def test_memory_is_limited_during_transfers(weather: Weather) -> None:
    """No request is larger than a part, whatever the size of the pieces."""
    sizes: list[int] = []
    weather.proxy.before = lambda request: sizes.append(len(request.body))
    async with aclosing(pieces(bytes(3 * PART), b"x")) as result:
        blob = await weather.blobs.put(result)
    assert max(sizes) == PART
    assert blob.size == 3 * PART + 1


async def test_an_interrupted_copy_is_resumed(weather: Weather, tmp_path: Path) -> None:
    """The store refuses everything after some files; incomplete files of the folder are not copied."""
    for number in range(20):
        key = f"{number:02x}".ljust(32, "0")
        (tmp_path / key[:2]).mkdir()
        (tmp_path / key[:2] / key).write_bytes(os.urandom(1000 + number * PART // 4))
    (tmp_path / "00" / f"{'1' * 32}.part").write_bytes(b"never finished")
    done: list[CopyResult] = []

    def watch(now: CopyResult) -> None:
        done.append(now)
        if now.files == 8:
            weather.proxy.always = {"PUT": Way.SLOW_DOWN, BEGIN: Way.SLOW_DOWN}

    async with FolderBlobs(tmp_path).opened() as folder:
        with pytest.raises(MachineError, match="SlowDown"):
            await copy(folder, weather.blobs, watch)
        weather.proxy.always = {}
        assert len(await sizes(weather.blobs)) == 8
        again = await copy(folder, weather.blobs)
        assert (again.files, again.present) == (12, 8)
        assert await sizes(weather.blobs) == await sizes(folder)
        async with FolderBlobs(tmp_path / "back").opened() as back:
            assert (await copy(weather.blobs, back)).files == 20
            for key in await sizes(folder):
                assert await content_of(back, key) == await content_of(folder, key)
    assert len(done) == 8


async def test_a_file_damaged_or_deleted_during_the_copy(weather: Weather, tmp_path: Path) -> None:
    class Odd(FolderBlobs):
        """Lists a file that does not exist, and a wrong size for another."""

        async def listed(self) -> AsyncGenerator[list[ListedBlob], None]:
            yield [ListedBlob("aa" + "0" * 30, 5, 0.0)]
            async with aclosing(super().listed()) as pages:
                async for page in pages:
                    yield [replace(item, size=item.size + larger) for item in page]

    larger = 0
    async with Odd(tmp_path).opened() as folder:
        blob = await put(folder, b"content")
        assert (await copy(folder, weather.blobs)).files == 1
        await weather.blobs.delete(blob.key)
        larger = 1
        with pytest.raises(MachineError, match="has 8 bytes in the source and 7 in the target"):
            await copy(folder, weather.blobs)
        assert await sizes(weather.blobs) == {}
