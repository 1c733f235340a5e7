"""The cached configuration is complete or absent, private, and refused when it is damaged."""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from telemetry.logs import loggers
from telemetry.logs.loggers import Logs
from uplink.cached import UNREADABLE, Cached, load, path_of, save

T = TypeVar("T")

DOCUMENT = b'{"components": [ {"name": "left",  "attributes": {"ratio": 1.10, "n": 12345678901234567890123}} ]}'


async def here(function: Callable[[], T]) -> T:
    """Run the function directly, without a worker thread."""
    return function()


@pytest.fixture(autouse=True)
def logs() -> Iterator[Logs]:
    before = logging.getLogger().level
    pipeline = loggers.configure_logs()
    yield pipeline
    pipeline.close()
    logging.getLogger().setLevel(before)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return path_of(tmp_path / "home", "part-1_a")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def read(path: Path) -> bytes:
    return path.read_bytes()


def put(path: Path, content: bytes) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)


def test_where_it_is_kept(tmp_path: Path) -> None:
    assert path_of(tmp_path, "0a1b-2c") == tmp_path / "cached_cloud_config_0a1b-2c.json"
    for odd in ("", "../x", "a/b", "-a", "a\n", "a b"):
        with pytest.raises(ValueError, match="is not a valid id of a machine part"):
            path_of(tmp_path, odd)


async def test_it_comes_back_to_the_byte(path: Path) -> None:
    assert load(path) is None
    await save(path, DOCUMENT, here)
    cached = load(path)
    assert cached is not None
    assert bytes(cached.document) == DOCUMENT
    assert timedelta(0) <= datetime.now(UTC) - cached.saved < timedelta(minutes=1)
    await save(path, b"{}", here)
    cached = load(path)
    assert cached is not None
    assert bytes(cached.document) == b"{}"
    assert [item.name for item in path.parent.iterdir()] == [path.name]


async def test_only_its_owner_may_read_it(path: Path) -> None:
    before = os.umask(0)
    try:
        await save(path, DOCUMENT, here)
    finally:
        os.umask(before)
    assert mode(path) == 0o600
    assert mode(path.parent) == 0o700


async def test_everything_is_on_the_disk_before_and_after_the_rename(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    fsync, replace = os.fsync, Path.replace

    def noted_fsync(fd: int) -> None:
        steps.append(f"sync {Path(os.readlink(f'/proc/self/fd/{fd}')).name}")
        fsync(fd)

    def noted_replace(source: Path, target: Path) -> Path:
        steps.append(f"rename {source.name}")
        return replace(source, target)

    monkeypatch.setattr(os, "fsync", noted_fsync)
    monkeypatch.setattr(Path, "replace", noted_replace)
    await save(path, DOCUMENT, here)
    assert steps == [f"sync {path.name}.part", f"rename {path.name}.part", "sync home"]


async def test_a_failed_write_leaves_the_previous_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await save(path, DOCUMENT, here)

    def full(fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        await save(path, b"{}", here)
    with pytest.raises(ValueError, match="not valid JSON"):
        await save(path, b"{", here)
    with pytest.raises(ValueError, match="not cached"):
        await save(path, b'{"a":' * 5000, here)
    cached = load(path)
    assert cached is not None
    assert bytes(cached.document) == DOCUMENT
    assert [item.name for item in path.parent.iterdir()] == [path.name]


async def test_leftovers_of_an_interrupted_write_are_harmless(path: Path) -> None:
    put(path.with_name(path.name + ".part"), b'{"saved"')
    await save(path, DOCUMENT, here)
    assert load(path) is not None
    assert mode(path) == 0o600


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "truncated"),
        (b"\0" * 4096, "malformed"),
        (DOCUMENT, "missing required field `saved`"),
        (b'{"saved": "2026-01-01T00:00:00Z", "sha256": "00", "document": {}}', "modified or damaged"),
    ],
)
async def test_an_unusable_file_is_moved_away_and_reported(logs: Logs, path: Path, content: bytes, reason: str) -> None:
    put(path, content)
    assert load(path) is None
    (entry,) = logs.ring.entries()
    renamed = path.with_name(path.name + UNREADABLE)
    assert (entry.level_name, entry.logger, entry.fields["path"]) == ("WARN", "rdk.config", str(renamed))
    assert reason in entry.fields["reason"]
    assert read(renamed) == content
    assert load(path) is None  # the second time without a log entry
    await save(path, DOCUMENT, here)
    assert load(path) is not None


def test_an_unreadable_file_is_reported_and_left_alone(logs: Logs, path: Path) -> None:
    path.mkdir(parents=True)
    assert load(path) is None
    assert logs.ring.entries()[0].fields["reason"] == "Is a directory"
    assert path.is_dir()


@given(st.data())
def test_no_damage_is_believed(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """With any one byte changed, loading refuses the document or returns the one that was saved."""
    import trio

    path = path_of(tmp_path_factory.mktemp("home"), "a")
    trio.run(save, path, DOCUMENT, here)
    content = bytearray(path.read_bytes())
    content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    path.write_bytes(content)
    loaded: Cached | None = load(path)
    assert loaded is None or bytes(loaded.document) == DOCUMENT
