"""inotify: events that wake, events that do not, and errors of the kernel. Real descriptors, real time."""

# ruff: noqa: ASYNC240 - files are the subject of the test

from __future__ import annotations

import ctypes
import errno
import os
import resource
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from support.files import inotify
from support.files.inotify import Inotify


@pytest.fixture
async def watcher() -> AsyncIterator[Inotify]:
    watcher = Inotify()
    yield watcher
    watcher.close()


async def woken(watcher: Inotify, *names: Path) -> bool:
    """Return whether an event of one of `names` is pending."""
    with trio.move_on_after(0.05):
        await watcher.wait(set(names))
        return True
    return False


async def test_a_name_wakes_and_its_neighbours_do_not(watcher: Inotify, tmp_path: Path) -> None:
    assert watcher.watch({tmp_path}) == []
    (tmp_path / "other").write_text("x")
    assert not await woken(watcher, tmp_path / "mine")
    (tmp_path / "mine").write_text("x")
    assert await woken(watcher, tmp_path / "mine")
    assert not await woken(watcher, tmp_path / "mine")  # all pending events were read


async def test_a_directory_that_vanishes_and_returns(watcher: Inotify, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    watcher.watch({home})
    home.rmdir()
    assert await woken(watcher, home / "mine")
    assert watcher.watch({home}) == []  # missing: omitted
    home.mkdir()
    (home / "mine").touch()
    assert not await woken(watcher, home / "mine")
    watcher.watch({home})
    (home / "mine").write_text("x")
    assert await woken(watcher, home / "mine")


async def test_on_the_way_only_moving_is_noticed(watcher: Inotify, tmp_path: Path) -> None:
    way = tmp_path / "way"
    way.mkdir()
    watcher.watch(set(), {way})
    (way / "mine").write_text("x")
    assert not await woken(watcher, way / "mine")
    way.rename(tmp_path / "elsewhere")
    assert await woken(watcher, way / "mine")


async def test_paths_without_watchers_are_not_watched(watcher: Inotify, tmp_path: Path) -> None:
    watcher.watch({tmp_path})
    watcher.watch(set())
    (tmp_path / "mine").write_text("x")
    assert not await woken(watcher, tmp_path / "mine")


async def test_an_overflow_may_mean_anything(watcher: Inotify, tmp_path: Path) -> None:
    watcher.watch({tmp_path})
    limit = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    if limit > 100_000:
        pytest.skip("the queue is too long to fill here")
    for number in range(limit // 2 + 1):  # two different events each, so that the kernel does not merge them
        os.mkdir(tmp_path / "d") if number % 2 == 0 else os.rmdir(tmp_path / "d")
        os.utime(tmp_path)
    assert await woken(watcher, tmp_path / "mine")


class Refusing:
    """A C library whose calls fail at a limit of the kernel."""

    def __init__(self, number: int) -> None:
        self.number = number

    def inotify_add_watch(self, fd: int, path: bytes, mask: int) -> int:
        ctypes.set_errno(self.number)
        return -1

    def inotify_rm_watch(self, fd: int, watch: int) -> int:
        return 0


@pytest.mark.parametrize(
    ("number", "remedy"), [(errno.ENOSPC, "raise fs.inotify.max_user_watches"), (errno.EACCES, "Permission denied")]
)
async def test_a_refused_watch_is_named_with_its_reason(
    watcher: Inotify, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, remedy: str
) -> None:
    monkeypatch.setattr(inotify, "_libc", Refusing(number))
    ((path, failure),) = watcher.watch({tmp_path})
    assert path == tmp_path
    assert remedy in str(failure)


def test_no_descriptor_left_is_an_error_with_a_remedy() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = os.open("/", os.O_RDONLY)
    os.close(lowest)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, hard))
    try:
        with pytest.raises(OSError, match="max_user_instances"):
            Inotify()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def test_closing_wakes_waiters_and_may_be_repeated(tmp_path: Path) -> None:
    watcher = Inotify()
    async with trio.open_nursery() as nursery:

        @nursery.start_soon
        async def _() -> None:
            with pytest.raises(trio.ClosedResourceError):
                await watcher.wait(set())

        await wait_all_tasks_blocked()
        watcher.close()
    watcher.close()
