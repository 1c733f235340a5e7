"""The file format, writing, and recovery after a killed process; on the real disk, without a server."""

from __future__ import annotations

import errno
import os
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpc.api import messages
from runtime.parts.data.counters import Counters
from runtime.parts.data.files import files
from runtime.parts.data.files.encode import CaptureRecord
from runtime.parts.data.files.files import CaptureFile, probe
from runtime.parts.data.files.frames import Damaged, framed, frames
from runtime.parts.data.files.messages import CaptureSource, parameters_of
from runtime.parts.data.files.names import folder_of, safe_part, stem_of
from runtime.parts.data.files.read import capture_files, is_being_written, read_capture_file
from runtime.parts.data.files.recover import Recovered, recover
from runtime.parts.data.files.retention import DiskUsage, Limits, chosen, make_room
from runtime.parts.data.files.writer import UNCOMMITTED_FILES, FileLayout, Files

SOURCE = CaptureSource("rdk:component:sensor", "s", "Readings", {"unit": "K", "depth": 2}, ("a", "b"))


def reading(number: int, size: int = 0) -> bytes:
    sync = messages.load("app.datasync.v1.data_sync_pb2")
    message = sync.SensorData()
    message.metadata.time_requested.FromNanoseconds(number + 1)
    message.metadata.time_received.FromNanoseconds(number + 2)
    message.struct.fields["readings"].struct_value.fields["number"].number_value = number
    if size:
        message.struct.fields["padding"].string_value = "x" * size
    return framed(message.SerializeToString())


def number_of(message: Any) -> int:
    return int(message.struct.fields["readings"].struct_value.fields["number"].number_value)


def all_numbers(folder: Path) -> list[int]:
    return [number_of(item) for path in capture_files(folder) for item in read_capture_file(path).readings]


# ---- frames


@given(st.lists(st.binary(min_size=1, max_size=400)))
def test_frames_come_back(parts: list[bytes]) -> None:
    assert [message for _, message in frames(b"".join(map(framed, parts)))] == parts


@given(st.lists(st.binary(min_size=1, max_size=300), min_size=1), st.data())
def test_a_cut_keeps_every_whole_message(parts: list[bytes], data: st.DataObject) -> None:
    whole = b"".join(map(framed, parts))
    at = data.draw(st.integers(0, len(whole)))
    result, damage = as_far_as_possible(whole[:at])
    end = sum(len(framed(part)) for part in result)
    if damage is None:
        assert end == at
    else:
        assert damage.cut
        assert damage.offset == end
    assert result == parts[: len(result)]
    assert len(result) == sum(sum(len(framed(part)) for part in parts[: i + 1]) <= at for i in range(len(parts)))


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_damaged(data: bytes) -> None:
    result, damage = as_far_as_possible(data)
    assert sum(1 + len(message) for message in result) <= len(data)
    assert damage is None or 0 <= damage.offset < len(data)


def as_far_as_possible(data: bytes) -> tuple[list[bytes], Damaged | None]:
    results: list[bytes] = []
    try:
        results.extend(message for _, message in frames(data))
    except Damaged as damage:
        return results, damage
    return results, None


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\0\1a", "a message is empty"),
        (b"\1a\0\0", "2 zero bytes"),
        (b"\xff" * 10 + b"\1", "the length of a message is not valid"),
        (b"\x80", "cut off"),
        (b"\2a", "1 bytes"),
    ],
)
def test_damage_says_where_and_why(data: bytes, reason: str) -> None:
    with pytest.raises(Damaged, match=reason):
        list(frames(data))


def test_our_frames_are_protobufs_own(tmp_path: Path) -> None:
    """Frames written here are readable by protobuf's reader of delimited messages."""
    from google.protobuf.proto import parse_length_prefixed

    sync = messages.load("app.datasync.v1.data_sync_pb2")
    path = tmp_path / "f"
    path.write_bytes(SOURCE.header() + reading(7) + reading(8, 300))
    with path.open("rb") as file:
        header = parse_length_prefixed(sync.DataCaptureMetadata, file)
        results = [parse_length_prefixed(sync.SensorData, file) for _ in range(2)]
        assert parse_length_prefixed(sync.SensorData, file) is None
    assert header.method_name == "Readings"
    assert [number_of(item) for item in results] == [7, 8]


# ---- names


def test_names_are_those_of_the_published_layout() -> None:
    assert str(folder_of("rdk:component:sensor", "pi:s", "Readings")) == "rdk_component_sensor/pi_s/Readings"
    assert stem_of(1_795_254_335_123_456) == "2026-11-21T09_45_35.123456Z"


@given(st.text(min_size=1))
def test_a_name_never_leaves_its_folder(text: str) -> None:
    name = safe_part(text)
    assert name
    assert name not in (".", "..")
    assert "/" not in name
    assert "\0" not in name


def test_files_of_the_same_time_have_their_own_names(tmp_path: Path) -> None:
    """The clock stands still."""
    paths = set()
    for _ in range(3):
        file = CaptureFile(tmp_path, SOURCE.header(), lambda: 5_000)
        paths.add(file.path.stem)
        file.append(reading(1), 1)
        file.finish()
        other = CaptureFile(tmp_path, SOURCE.header(), lambda: 5_000)
        paths.add(other.path.stem)
        other.abandon()
    assert len(paths) == 6
    assert len(list(tmp_path.iterdir())) == 6


# ---- header


def test_a_header_says_what_was_captured(tmp_path: Path) -> None:
    (tmp_path / "f.capture").write_bytes(SOURCE.header())
    header = read_capture_file(tmp_path / "f.capture").header
    assert header.component_type == "rdk:component:sensor"
    assert list(header.tags) == ["a", "b"]
    assert parameters_of(header) == {"unit": "K", "depth": 2.0}
    assert header.file_extension == ".dat"
    assert header.mime_type == ""


def test_a_header_of_a_picture_names_its_kind() -> None:
    sync = messages.load("app.datasync.v1.data_sync_pb2")
    source = CaptureSource("rdk:component:camera", "c", "GetImages", binary=True)
    ((_, message),) = frames(source.header("image/png"))
    header = sync.DataCaptureMetadata.FromString(message)
    assert header.type == sync.DATA_TYPE_BINARY_SENSOR
    assert (header.mime_type, header.file_extension) == ("image/png", ".png")


# ---- one method's files


def place(folder: Path, *, binary: bool = False, largest: int = 10_000) -> FileLayout:
    return FileLayout(folder, SOURCE.header, binary, largest)


def records(*numbers: int, size: int = 0) -> list[CaptureRecord]:
    return [CaptureRecord(reading(number, size)) for number in numbers]


def test_a_file_never_grows_beyond_its_limit(tmp_path: Path) -> None:
    counters = Counters()
    some = Files(place(tmp_path, largest=1000), counters)
    some.write(records(*range(50)))
    some.finish()
    sizes = [path.stat().st_size for path in tmp_path.iterdir()]
    assert max(sizes) <= 1000
    assert min(sorted(sizes)[1:]) > 900, "it is used, too"
    assert all_numbers(tmp_path) == list(range(50))
    assert counters.files == len(sizes)
    assert counters.bytes == sum(sizes)
    assert counters.written == counters.committed == 50


def test_a_reading_beyond_the_limit_has_a_file_of_its_own(tmp_path: Path) -> None:
    some = Files(place(tmp_path, largest=500), Counters())
    todo = records(0) + records(1, size=2000) + records(2)
    some.write(todo)
    some.finish()
    assert todo == []
    assert [len(read_capture_file(path).readings) for path in capture_files(tmp_path)] == [1, 1, 1]


def test_each_binary_reading_is_a_file_and_few_wait_for_the_disk(tmp_path: Path) -> None:
    counters = Counters()
    some = Files(place(tmp_path, binary=True), counters)
    some.write(records(*range(UNCOMMITTED_FILES + 3)))
    assert counters.files == UNCOMMITTED_FILES
    assert sorted(path.suffix for path in tmp_path.iterdir())[-3:] == [".prog"] * 3
    some.commit()
    assert counters.files == counters.committed == UNCOMMITTED_FILES + 3
    assert all(path.suffix == ".capture" for path in tmp_path.iterdir())


class Refusing:
    """Fail at the n-th system call, after writing the given number of bytes."""

    def __init__(self, at: int, after: int, error: int) -> None:
        self.calls, self.at, self.after, self.error = 0, at, after, error

    def write(self, fd: int, data: Any) -> int:
        self.calls += 1
        if self.calls == self.at:
            return self.real(fd, data[: self.after]) if self.after else self.fail()
        return self.fail() if self.calls == self.at + 1 and self.after else self.real(fd, data)

    def fail(self) -> int:
        raise OSError(self.error, os.strerror(self.error))

    real = staticmethod(os.write)


@pytest.mark.parametrize("at", [1, 2, 3, 5])
@pytest.mark.parametrize("after", [0, 1, 7])
def test_a_full_disk_leaves_only_whole_readings_and_nothing_is_written_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int, after: int
) -> None:
    counters = Counters()
    some = Files(place(tmp_path, largest=300), counters)
    todo = records(*range(12))
    monkeypatch.setattr(files.os, "write", Refusing(at, after, errno.ENOSPC).write)
    with pytest.raises(OSError, match="No space"):
        some.write(todo)
    assert len(todo) == 12 - counters.written
    for path in capture_files(tmp_path):
        assert read_capture_file(path).damage is None
    monkeypatch.setattr(files.os, "write", os.write)
    some.write(todo)
    some.finish()
    assert all_numbers(tmp_path) == list(range(12))
    assert counters.bytes == sum(path.stat().st_size for path in tmp_path.iterdir())


@pytest.mark.parametrize("after", [1, 60])
def test_a_write_that_fails_in_the_middle_leaves_the_file_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    some = Files(place(tmp_path), Counters())
    some.write(records(0, 1))
    (path,) = tmp_path.iterdir()
    before = path.read_bytes()
    monkeypatch.setattr(files.os, "write", Refusing(1, after, errno.ENOSPC).write)
    todo = records(2, 3)
    with pytest.raises(OSError, match="No space"):
        some.write(todo)
    assert path.read_bytes() == before
    monkeypatch.undo()
    some.write(todo)
    some.finish()
    assert all_numbers(tmp_path) == [0, 1, 2, 3]


def test_bytes_of_a_failed_commit_are_not_reported_as_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counters = Counters()
    some = Files(place(tmp_path), counters)
    some.write(records(0, 1))

    def fail(fd: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(files, "sync_data", fail)
    with pytest.raises(OSError, match="Input/output"):
        some.commit()
    monkeypatch.undo()
    some.write(records(2))
    some.finish()
    assert (counters.written, counters.committed) == (3, 1), "a second fdatasync would prove nothing"
    assert recover(tmp_path) == Recovered(files=1, readings=2)
    assert sorted(all_numbers(tmp_path)) == [0, 1, 2]


def test_a_file_that_cannot_begin_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files.os, "write", Refusing(1, 3, errno.ENOSPC).write)
    with pytest.raises(OSError, match="No space"):
        CaptureFile(tmp_path, SOURCE.header())
    assert list(tmp_path.iterdir()) == []


def test_probe_finds_out_and_cleans_up(tmp_path: Path) -> None:
    probe(tmp_path / "a" / "b")
    assert list((tmp_path / "a" / "b").iterdir()) == []
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError):
        probe(tmp_path / "file")


# ---- recovery


@given(st.integers(0, 5), st.randoms(use_true_random=False))
def test_a_cut_file_keeps_exactly_its_whole_readings(
    tmp_path_factory: pytest.TempPathFactory, count: int, source: random.Random
) -> None:
    folder = tmp_path_factory.mktemp("cut")
    parts = [SOURCE.header(), *(reading(number, source.randrange(200)) for number in range(count))]
    data = b"".join(parts)
    at = source.randrange(len(data) + 1)
    (folder / "2026-11-21T09_45_35.123456Z.prog").write_bytes(data[:at])
    whole = max(0, sum(len(b"".join(parts[: i + 1])) <= at for i in range(len(parts))) - 1)
    result = recover(folder)
    assert result.readings == whole
    assert (result.files, result.empty) == ((1, 0) if whole else (0, 1))
    assert all_numbers(folder) == list(range(whole))
    assert all(path.suffix == ".capture" for path in folder.iterdir())
    assert recover(folder) == Recovered(), "once is enough"


def test_zeros_after_a_power_cut_are_not_readings(tmp_path: Path) -> None:
    """Observed on ext4: a power cut lost the appended data, but the file kept its new length."""
    (tmp_path / "a.prog").write_bytes(SOURCE.header() + reading(0) + bytes(100))
    assert read_capture_file(tmp_path / "a.prog").cut
    assert recover(tmp_path) == Recovered(files=1, readings=1, cut_bytes=100)
    assert all_numbers(tmp_path) == [0]


def test_a_file_of_nothing_but_zeros_is_empty(tmp_path: Path) -> None:
    (tmp_path / "a.prog").write_bytes(bytes(4096))
    assert recover(tmp_path) == Recovered(empty=1)


def test_a_file_damaged_before_its_end_is_moved_away(tmp_path: Path) -> None:
    (tmp_path / "a.prog").write_bytes(SOURCE.header() + reading(0) + bytes(100) + reading(1))
    result = recover(tmp_path)
    assert (result.files, result.readings, result.damaged) == (1, 1, 1)
    assert all_numbers(tmp_path) == [0]
    assert (tmp_path / "failed" / "a.prog").stat().st_size > 100, "as it was found"
    assert [path.name for path in capture_files(tmp_path)] == ["a.capture"], "renamed files do not count"


def test_damage_within_keeps_what_is_before_it(tmp_path: Path) -> None:
    data = bytearray(SOURCE.header() + reading(0) + reading(1) + reading(2))
    data[len(SOURCE.header()) + len(reading(0)) + 1] = 0xFF
    (tmp_path / "a.prog").write_bytes(data)
    assert recover(tmp_path).damaged == 1
    assert all_numbers(tmp_path) == [0]


def test_a_file_that_is_being_written_is_left_alone(tmp_path: Path) -> None:
    file = CaptureFile(tmp_path, SOURCE.header())
    file.append(reading(0), 1)
    assert is_being_written(file.path)
    assert recover(tmp_path) == Recovered(in_use=1)
    file.abandon()
    assert not is_being_written(file.path)
    assert recover(tmp_path) == Recovered(files=1, readings=1)


def test_recovery_never_replaces_a_file(tmp_path: Path) -> None:
    (tmp_path / "a.capture").write_bytes(SOURCE.header() + reading(0))
    (tmp_path / "a.prog").write_bytes(SOURCE.header() + reading(1))
    recover(tmp_path)
    assert sorted(all_numbers(tmp_path)) == [0, 1]


def test_a_foreign_file_is_not_a_capture(tmp_path: Path) -> None:
    (tmp_path / "a.prog").write_bytes(b"\x05hello")
    assert read_capture_file(tmp_path / "a.prog").damage is not None
    result = recover(tmp_path)
    assert (result.empty, result.damaged) == (1, 1)
    assert (tmp_path / "failed" / "a.prog").read_bytes() == b"\x05hello"


def test_a_folder_that_is_not_there_has_nothing_to_recover(tmp_path: Path) -> None:
    assert recover(tmp_path / "none") == Recovered()


# ---- room


def captured(folder: Path, count: int, size: int = 100) -> None:
    for number in range(count):
        where = folder / f"rdk_component_sensor/s{number % 2}/Readings"
        where.mkdir(parents=True, exist_ok=True)
        (where / f"{stem_of(number * 1_000_000)}.capture").write_bytes(b"x" * size)


def test_every_nth_file_goes_oldest_first(tmp_path: Path) -> None:
    captured(tmp_path, 20)
    prog = tmp_path / "rdk_component_sensor/s0/Readings/0.prog"
    prog.write_bytes(b"x")
    deleted = make_room(tmp_path, Limits(0.9, 0.5, 5), lambda folder: (2000, 1900))
    assert (deleted.files, deleted.bytes, deleted.warn) == (4, 400, False)
    left = {path.stem for path in capture_files(tmp_path)}
    assert {stem_of(number * 1_000_000) for number in range(20)} - left == {
        stem_of(number * 1_000_000) for number in (0, 5, 10, 15)
    }
    assert prog.exists()


@pytest.mark.parametrize(("total", "used", "warn"), [(10_000, 8_999, False), (10_000, 9_000, True)])
def test_nothing_goes_below_a_threshold(tmp_path: Path, total: int, used: int, warn: bool) -> None:
    captured(tmp_path, 20)  # a fifth of the disk
    deleted = make_room(tmp_path, Limits(0.9, 0.5, 5), lambda folder: (total, used))
    assert (deleted.files, deleted.warn) == (0, warn)
    assert len(list(capture_files(tmp_path))) == 20


def test_all_may_go() -> None:
    some = [(Path("a"), 1), (Path("b"), 1)]
    assert chosen(some, 1) == some
    assert chosen([], 5) == []
    assert DiskUsage(0, 0).ratio == 0.0


def test_the_disk_is_measured_as_df_does(tmp_path: Path) -> None:
    deleted = make_room(tmp_path, Limits(1.0, 0.5, 5))
    assert 0 < deleted.usage.used < deleted.usage.total


def test_captured_files_are_readable_only_by_their_user(tmp_path: Path) -> None:
    """This includes folders of earlier versions; the capture folder itself may hold files for other users."""
    before = os.umask(0)
    try:
        file = CaptureFile(tmp_path / "new" / "rdk_component_sensor" / "s", b"")
        file.abandon()
        old, other = tmp_path / "old" / "rdk_component_camera", tmp_path / "old" / "photos"
        for folder in (old, other):
            folder.mkdir(parents=True)
        probe(tmp_path / "old")
    finally:
        os.umask(before)
    paths = (file.path, *list(file.path.parents)[:3], old, other, old.parent)
    assert [path.stat().st_mode & 0o777 for path in paths] == [0o600, 0o700, 0o700, 0o700, 0o700, 0o777, 0o777]
