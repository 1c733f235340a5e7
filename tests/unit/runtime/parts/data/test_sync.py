"""Captured data goes to the cloud once and in order, whatever the cloud and the network do."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
import trio
from grpclib.const import Status
from grpclib.exceptions import GRPCError
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from runtime.parts.data.files.messages import CaptureSource
from runtime.parts.data.files.retention import Limits, make_room
from runtime.parts.data.files.store import Store
from runtime.parts.data.sync import pieces, waiting
from runtime.parts.data.sync.sync import SyncSettings
from runtime.parts.data.sync.upload import PIECE, UNARY
from schema.errors import ErrorKind, MachineError
from tests.unit.runtime.parts.data.clouds import (
    LOG,
    FakeCloud,
    InlineDisk,
    Upload,
    camera,
    counted,
    failing,
    left,
    number,
    picture,
    reading,
    sensor,
    syncing,
    write,
)

# ---- what goes


async def test_readings_go_with_what_their_file_says_of_them(autojump_clock: MockClock, tmp_path: Path) -> None:
    source = CaptureSource("rdk:component:board", "pi", "Analogs", {"reader_name": "a"}, ("trial", "roof"))
    path = write(tmp_path, source, reading(1) + reading(2))
    cloud = FakeCloud()
    async with syncing(tmp_path, cloud) as syncer:
        await trio.sleep(1)
    (upload,) = cloud.kept
    metadata = upload.metadata
    assert upload.method == "DataCaptureUpload"
    assert (metadata.part_id, metadata.component_type, metadata.component_name, metadata.method_name) == (
        "part-1",
        "rdk:component:board",
        "pi",
        "Analogs",
    )
    assert list(metadata.tags) == ["trial", "roof"]
    assert metadata.type == 2
    assert list(metadata.method_parameters) == ["reader_name"]
    assert metadata.file_name == path.name
    assert [number(content) for content in upload.contents] == [1, 2]
    assert upload.contents[0].metadata.HasField("time_received")
    assert left(tmp_path) == []
    assert (syncer.sent.files, syncer.sent.readings) == (1, 2)
    assert syncer.status()["waiting_files"] == 0


@pytest.mark.parametrize(("ids", "added"), [(["d1", "d2"], ["d1", "d2"]), ("d1", []), ([1, "d2"], ["d2"])])
async def test_a_picture_is_added_to_the_datasets_of_its_method(
    autojump_clock: MockClock, tmp_path: Path, ids: Any, added: list[str]
) -> None:
    cloud = FakeCloud()
    source = CaptureSource("rdk:service:vision", "v", "CaptureAllFromCamera", {"dataset_ids": ids}, binary=True)
    write(tmp_path, source, picture(b"jpeg"), mime_type="image/jpeg")
    async with syncing(tmp_path, cloud):
        await trio.sleep(1)
    assert list(cloud.kept[0].metadata.dataset_ids) == added


async def test_a_picture_goes_as_one_message_or_in_pieces(autojump_clock: MockClock, tmp_path: Path) -> None:
    small, large = bytes(1000), random.Random(7).randbytes(3 * UNARY + 17)
    write(tmp_path, camera(), picture(small, label="cat"), 0, "image/jpeg")
    write(tmp_path, camera(), picture(large, label="dog"), 1, "image/png")
    cloud = FakeCloud()
    async with syncing(tmp_path, cloud) as syncer:
        await trio.sleep(1)
    first, second = cloud.kept
    assert (first.method, first.contents[0].binary) == ("DataCaptureUpload", small)
    assert (first.metadata.mime_type, first.metadata.file_extension, first.name[-5:]) == ("image/jpeg",) + (
        ".jpeg",
    ) * 2
    assert second.method == "StreamingDataCaptureUpload"
    assert second.data == large
    assert second.pieces == -(-len(large) // PIECE)
    assert second.contents[0].metadata.annotations.classifications[0].label == "dog"
    assert left(tmp_path) == []
    assert syncer.sent.readings == 2


async def test_a_large_picture_is_never_read_as_a_whole(
    autojump_clock: MockClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, camera(), picture(bytes(4 * UNARY)), 0, "image/png")
    sizes: list[int] = []
    read = pieces.CaptureReader.read

    def noted(self: Any, offset: int, size: int) -> bytes:
        result = read(self, offset, size)
        sizes.append(len(result))
        return result

    monkeypatch.setattr(pieces.CaptureReader, "read", noted)
    cloud = FakeCloud()
    async with syncing(tmp_path, cloud):
        await trio.sleep(1)
    assert len(cloud.kept[0].data) == 4 * UNARY
    assert max(sizes) <= PIECE


async def test_the_oldest_goes_first_across_methods(autojump_clock: MockClock, tmp_path: Path) -> None:
    for index in range(10):
        write(tmp_path, sensor("ab"[index % 2]), reading(index), index)
    cloud = FakeCloud()
    async with syncing(tmp_path, cloud):
        await trio.sleep(1)
    assert cloud.numbers() == list(range(10))


async def test_so_many_at_one_time_but_one_of_a_method(autojump_clock: MockClock, tmp_path: Path) -> None:
    for name in "abcd":
        counted(tmp_path, 5, name=name)
    cloud = FakeCloud()
    now: list[str] = []

    async def slowly(upload: Upload) -> None:
        name = upload.metadata.component_name
        assert name not in now
        now.append(name)
        await trio.sleep(random.random())
        now.remove(name)

    cloud.before = slowly
    async with syncing(tmp_path, cloud, settings=SyncSettings(6.0, simultaneous=3)):
        await trio.sleep(30)
    assert cloud.most_at_once == 3
    assert len(cloud.kept) == 20
    for name in "abcd":
        of_one = [upload.name for upload in cloud.kept if upload.metadata.component_name == name]
        assert of_one == sorted(of_one)


# ---- large files


async def test_a_large_file_goes_in_several_messages_and_is_resumed(autojump_clock: MockClock, tmp_path: Path) -> None:
    (path,) = counted(tmp_path, 1, each=3000, padding=1000)
    cloud = FakeCloud()
    cloud.before = failing(Status.UNAVAILABLE, when=lambda upload: len(cloud.calls) == 4)
    async with syncing(tmp_path, cloud):
        await trio.sleep(0.2)
        assert len(cloud.kept) == 3
        assert left(tmp_path) == sorted(str(item.relative_to(tmp_path)) for item in (path, Path(f"{path}.progress")))
    async with syncing(tmp_path, cloud) as again:
        await trio.sleep(1)
    assert cloud.numbers() == list(range(3000))
    assert len(cloud.calls) == len(cloud.kept) + 1, "only what was not acknowledged is sent once more"
    assert len({upload.name for upload in cloud.kept}) == len(cloud.kept), "each piece is a file of its own"
    assert all(
        upload.metadata.ByteSize() + sum(content.ByteSize() for content in upload.contents) < UNARY
        for upload in cloud.calls
    )
    assert left(tmp_path) == []
    assert again.sent.readings == 3000 - sum(map(len, cloud.chunks()[:3]))


async def test_progress_that_is_lost_costs_time_and_nothing_else(autojump_clock: MockClock, tmp_path: Path) -> None:
    (path,) = counted(tmp_path, 1, each=3000, padding=1000)
    cloud = FakeCloud()
    cloud.before = failing(Status.UNAVAILABLE, when=lambda upload: len(cloud.calls) == 4)
    async with syncing(tmp_path, cloud):
        await trio.sleep(0.2)
    for garbage in (b"", b"[]", b'{"acknowledged": 7, "size": 1}', b"\0\0\0"):
        path.with_name(f"{path.name}.progress").write_bytes(garbage)
        assert waiting.progress_of(path) == 0
    async with syncing(tmp_path, cloud):
        await trio.sleep(1)
    assert cloud.numbers() == list(range(3000))
    assert cloud.chunks()[4:7] == cloud.chunks()[:3], "what is repeated is the very same, so that the cloud knows it"


async def test_progress_of_a_file_that_is_gone_is_removed(autojump_clock: MockClock, tmp_path: Path) -> None:
    (path,) = counted(tmp_path, 1)
    orphan = path.with_name("2020-01-01T00_00_00.000000Z.capture.progress")
    orphan.write_text("{}")
    async with syncing(tmp_path, FakeCloud()):
        await trio.sleep(1)
    assert left(tmp_path) == []


# ---- room on the disk


async def test_a_file_in_transfer_is_not_deleted_to_make_room(autojump_clock: MockClock, tmp_path: Path) -> None:
    paths = counted(tmp_path, 4)
    store = Store(tmp_path, InlineDisk(), LOG, largest=2**18)
    async with store.held(paths[0]):
        deleted = make_room(tmp_path, Limits(0, 0, 1), lambda folder: (100, 100), store._held)
        assert deleted.files == 3
        assert [path for path in paths if path.exists()] == [paths[0]]
    assert make_room(tmp_path, Limits(0, 0, 1), lambda folder: (100, 100), store._held).files == 1
    with pytest.raises(FileNotFoundError):
        async with store.held(paths[0]):
            pass
    assert store._held == set()


# ---- on demand


async def test_sync_on_demand_goes_when_nothing_may_leave(autojump_clock: MockClock, tmp_path: Path) -> None:
    counted(tmp_path, 2)
    cloud = FakeCloud()
    async with syncing(
        tmp_path, cloud, settings=SyncSettings(6.0, automatic=False), may_upload=lambda: False
    ) as syncer:
        await trio.sleep(100)
        assert cloud.calls == []
        await syncer.sync()
        assert cloud.numbers() == [0, 1]


async def test_sync_on_demand_says_what_waits(autojump_clock: MockClock, tmp_path: Path) -> None:
    counted(tmp_path, 2)
    cloud = FakeCloud()
    cloud.before = failing(Status.UNAVAILABLE, message="offline")
    async with syncing(tmp_path, cloud) as syncer:
        with pytest.raises(MachineError, match="2 files wait for the cloud: offline") as caught:
            await syncer.sync()
        assert caught.value.kind is ErrorKind.UNAVAILABLE
        cloud.before = failing(Status.INVALID_ARGUMENT, when=lambda item: len(cloud.kept) == 1, message="odd")
        with pytest.raises(MachineError, match="folder `failed`: odd"):
            await syncer.sync()
        cloud.before = failing(Status.INTERNAL, message="broken")
        counted(tmp_path, 1)
        with pytest.raises(MachineError, match="1 files could not be uploaded: broken"):
            await syncer.sync()


async def test_a_waiting_call_ends_with_the_data_manager(autojump_clock: MockClock, tmp_path: Path) -> None:
    counted(tmp_path, 1)
    cloud = FakeCloud()

    async def never(upload: Upload) -> None:
        await trio.sleep_forever()

    cloud.before = never
    said: list[str] = []

    async def ask(syncer: Any) -> None:
        try:
            await syncer.sync()
        except MachineError as error:
            said.append(str(error))

    async with trio.open_nursery() as nursery:
        async with syncing(tmp_path, cloud) as syncer:
            nursery.start_soon(ask, syncer)
            await trio.sleep(1)
            nursery.start_soon(ask, syncer)
            await trio.sleep(1)
    assert len(said) == 2
    assert all("the data manager ended" in text for text in said)


# ---- whatever happens


@given(seed=st.integers(0, 2**32), files=st.integers(1, 12), simultaneous=st.integers(1, 4))
@settings(max_examples=25, deadline=None)
def test_nothing_is_lost_and_nothing_is_there_twice(
    tmp_path_factory: pytest.TempPathFactory, seed: int, files: int, simultaneous: int
) -> None:
    """With lost answers, refused calls, silence and killed processes, each reading arrives once and in order."""
    chance = random.Random(seed)
    folder, cloud = tmp_path_factory.mktemp("sync"), FakeCloud()

    async def hazard(upload: Upload) -> None:
        await trio.sleep(chance.random())
        what = chance.random()
        if what < 0.2:
            raise GRPCError(Status.UNAVAILABLE, "offline")
        if what < 0.25:
            await trio.sleep_forever()

    async def work() -> None:
        for name in "abc":
            counted(folder, files, each=chance.choice([1, 3, 40]), padding=90, name=name)
        cloud.before = cloud.after = hazard
        while left(folder):
            with trio.move_on_after(chance.uniform(0.1, 100)):
                async with syncing(folder, cloud, settings=SyncSettings(1.0, simultaneous=simultaneous)):
                    await trio.sleep_forever()
            cloud.before = cloud.after = hazard

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pieces, "BATCH", 2000)
        trio.run(work, clock=MockClock(autojump_threshold=0))
    for name in "abc":
        got = [number(content) for up in cloud.kept if up.metadata.component_name == name for content in up.contents]
        assert got == list(range(len(got)))
        assert len(got) % files == 0
        assert got
