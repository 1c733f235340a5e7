"""Folders and files of programs: group and others have no permissions, whatever the umask."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from support.files import private
from support.files.file_ring import FileRing
from telemetry.outbox.queue import Outbox


@pytest.fixture(autouse=True)
def no_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def opened_below(folder: Path) -> list[str]:
    """Return what group or others have permissions for."""
    return [str(path.relative_to(folder)) for path in folder.rglob("*") if private.is_open(path)]


def test_missing_parents_are_private_and_existing_folders_stay(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir(mode=0o755)
    private.make_folder(tmp_path / "home" / "a" / "b")
    private.make_folder(tmp_path / "home" / "a" / "b")
    assert opened_below(tmp_path) == ["home"]


def test_files_of_a_ring_are_private(tmp_path: Path) -> None:
    ring = FileRing(tmp_path / "ftdc" / "part", "rec-", ".ftdc", limit=1000, keep=3)
    ring.open(datetime.now(UTC))
    assert len(list(tmp_path.rglob("rec-*"))) == 1
    assert opened_below(tmp_path) == []
    ring.close()


def test_the_queue_of_logs_is_private(tmp_path: Path) -> None:
    async def run(function: object) -> None:
        raise AssertionError

    Outbox(tmp_path / "logs-outbox" / "part", run)  # type: ignore[arg-type]
    assert (tmp_path / "logs-outbox" / "part").is_dir()
    assert opened_below(tmp_path) == []
