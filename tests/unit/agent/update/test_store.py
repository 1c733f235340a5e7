"""The file of a record: whatever happens to it, the record or its copy is read, or the error says what to do."""

from __future__ import annotations

import stat
import sys
from pathlib import Path

import pytest

from agent.update.events import Failed, Offered, RollBackRequested
from agent.update.record import InvalidRecord, Release, UpdateRecord, UpdateStep, decode, encode
from agent.update.steps import advance
from agent.update.store import COPY, Loaded, load, save
from schema.errors import MachineError
from tests.unit.agent.update.make import IDLE, NEWER, NOW, TARGET, at, offer

WINDOWS = sys.platform == "win32"
A_FOLDER = "Permission denied" if WINDOWS else "Is a directory"
BUSY = at(
    UpdateStep.TRIAL, attempts=2, explicit=True, error="a reason", offline_before="no-link", following=offer(NEWER)
)
RICH = advance(advance(BUSY, RollBackRequested(), NOW).record, Offered(None), NOW).record


@pytest.mark.parametrize("record", [IDLE, BUSY, RICH])
def test_a_record_is_read_as_it_was_saved(record: UpdateRecord, tmp_path: Path) -> None:
    path = tmp_path / "folder" / "update.json"
    assert load(path) == Loaded(None)
    save(path, record)
    assert load(path) == Loaded(record)
    assert WINDOWS or stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [entry.name for entry in path.parent.iterdir()] == ["update.json"]


def test_steps_are_stored_by_name() -> None:
    assert b'"step":"trial"' in encode(BUSY)
    assert b'"result":"rolled_back"' in encode(RICH)


def test_every_cut_and_every_changed_byte_is_detected() -> None:
    data = encode(RICH)
    for position in range(len(data)):
        changed = bytearray(data)
        changed[position] ^= 1
        for damaged in (data[:position], bytes(changed)):
            with pytest.raises(InvalidRecord):
                decode(damaged)


def test_a_damaged_file_leads_to_the_copy_with_a_report(tmp_path: Path) -> None:
    path = tmp_path / "update.json"
    save(path, IDLE)
    save(path, BUSY)
    data = path.read_bytes()
    for damaged in (b"", data[:-1], data[: len(data) // 2], data.replace(b"trial", b"track"), b"[" * 100_000, b"\xff"):
        path.write_bytes(damaged)
        loaded = load(path)
        assert loaded.record == IDLE
        assert loaded.report.startswith(f"{path}: the record is damaged: ")


def test_a_file_that_cannot_be_read_leads_to_the_copy(tmp_path: Path) -> None:
    path = tmp_path / "update.json"
    save(path, IDLE)
    save(path, BUSY)
    path.unlink()
    path.mkdir()
    assert load(path) == Loaded(IDLE, f"{path} cannot be read: {A_FOLDER}")


def test_a_damaged_file_does_not_replace_the_copy(tmp_path: Path) -> None:
    path = tmp_path / "update.json"
    save(path, IDLE)
    save(path, BUSY)
    path.write_bytes(b"{}")
    save(path, RICH)
    assert load(path) == Loaded(RICH)
    path.unlink()
    assert load(path) == Loaded(IDLE, f"{path} does not exist")
    assert WINDOWS or stat.S_IMODE(path.with_name(path.name + COPY).stat().st_mode) == 0o600


def test_two_damaged_files_are_an_error(tmp_path: Path) -> None:
    path = tmp_path / "update.json"
    path.write_bytes(b"{}")
    with pytest.raises(MachineError, match="install the program again"):
        load(path)


def test_the_format_of_a_newer_version_is_named() -> None:
    with pytest.raises(InvalidRecord, match="format 2, but this version reads format 1"):
        decode(b'{"format":2,"pages":[]}')


@pytest.mark.parametrize(
    ("sha256", "size"), [("ab", 1), ("g" * 64, 1), ("A" * 64, 1), ("a" * 64 + "\n", 1), ("a" * 64, -1)]
)
def test_a_release_is_checked(sha256: str, size: int) -> None:
    with pytest.raises(ValueError, match=r"of release 1\.0\.0 is"):
        Release("1.0.0", sha256, size, "", "")


def test_a_record_keeps_the_last_outcomes() -> None:
    record = IDLE
    for number in range(30):
        record = advance(record, Offered(offer(TARGET, explicit=True)), NOW).record
        record = advance(record, Failed(UpdateStep.RESOLVE, TARGET.sha256, f"reason {number}", True), NOW).record
    assert [outcome.reason for outcome in record.history] == [f"reason {number}" for number in range(10, 30)]
    assert [entry.reason for entry in record.quarantine] == ["reason 29"]
