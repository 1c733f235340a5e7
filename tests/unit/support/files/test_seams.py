"""What every operating system must do with files: locks, replacement, open files, changes in folders. Real files."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio
import trio.testing

from support.files.durable import (
    allocate,
    create_file,
    forget_cached,
    is_link,
    open_file,
    read_at,
    read_link,
    replace_file,
    replace_link,
    sync_data,
    sync_file,
    sync_folder,
    write_at,
)
from support.files.inotify import Inotify
from support.files.locks import lock_file, try_lock_file
from support.files.private import close, is_open, is_own, make_folder
from support.foreign.removal import remove
from support.foreign.walking import walk

FLAGS = os.O_RDWR | os.O_CREAT
CHANGE = 10.0  # seconds within which a change must be reported


@pytest.fixture
async def watcher() -> AsyncIterator[Inotify]:
    watcher = Inotify()
    yield watcher
    watcher.close()


def test_a_lock_excludes_other_descriptors_until_it_is_closed(tmp_path: Path) -> None:
    first, second = (open_file(tmp_path / "lock", FLAGS) for _ in range(2))
    lock_file(first)
    assert not try_lock_file(second)
    assert not try_lock_file(second, shared=True)
    os.close(first)
    assert try_lock_file(second)
    os.close(second)


def test_shared_locks_exclude_only_exclusive_ones(tmp_path: Path) -> None:
    first, second, third = (open_file(tmp_path / "lock", FLAGS) for _ in range(3))
    lock_file(first, shared=True)
    assert try_lock_file(second, shared=True)
    assert not try_lock_file(third)
    for descriptor in (first, second, third):
        os.close(descriptor)


def test_a_second_lock_of_a_descriptor_replaces_the_first(tmp_path: Path) -> None:
    first, second = (open_file(tmp_path / "lock", FLAGS) for _ in range(2))
    lock_file(first)
    lock_file(first, shared=True)
    assert try_lock_file(second, shared=True)
    os.close(first)
    os.close(second)


def test_locked_content_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"content")
    descriptor = open_file(path, os.O_RDWR)
    lock_file(descriptor)
    assert path.read_bytes() == b"content"
    os.close(descriptor)


def test_the_end_of_a_process_ends_its_locks(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    program = (
        "import os, sys; from pathlib import Path; from support.files.durable import open_file; "
        "from support.files.locks import lock_file; "
        "lock_file(open_file(Path(sys.argv[1]), os.O_RDWR | os.O_CREAT)); print('locked', flush=True); sys.stdin.read()"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", program, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=os.getcwd()
    )
    assert child.stdout is not None
    assert child.stdout.readline().strip() == b"locked"
    own = open_file(path, FLAGS)
    assert not try_lock_file(own)
    child.kill()
    child.communicate()
    lock_file(own)
    os.close(own)


def test_bytes_are_written_as_they_are(tmp_path: Path) -> None:
    content = b"a\nb\r\nc\x1ad"
    descriptor = open_file(tmp_path / "file", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND)
    os.write(descriptor, content)
    sync_data(descriptor)
    os.close(descriptor)
    assert (tmp_path / "file").read_bytes() == content
    descriptor = open_file(tmp_path / "file", os.O_RDONLY)
    assert os.read(descriptor, 100) == content
    os.close(descriptor)
    with pytest.raises(FileExistsError):
        open_file(tmp_path / "file", os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    with pytest.raises(FileNotFoundError):
        open_file(tmp_path / "missing", os.O_RDONLY)


def test_reading_and_writing_at_a_position_keep_that_of_the_descriptor(tmp_path: Path) -> None:
    descriptor = open_file(tmp_path / "file", FLAGS)
    os.write(descriptor, b"0123456789")
    os.lseek(descriptor, 2, os.SEEK_SET)
    assert write_at(descriptor, b"ab", 4) == 2
    assert read_at(descriptor, 4, 3) == b"3ab6"
    assert os.read(descriptor, 3) == b"23a"
    os.close(descriptor)


def test_an_open_file_can_be_renamed_and_deleted(tmp_path: Path) -> None:
    descriptor = open_file(tmp_path / "open", FLAGS)
    os.write(descriptor, b"one")
    os.rename(tmp_path / "open", tmp_path / "renamed")
    os.write(descriptor, b"two")
    assert (tmp_path / "renamed").read_bytes() == b"onetwo"
    (tmp_path / "renamed").unlink()
    os.close(descriptor)
    assert list(tmp_path.iterdir()) == []


def test_files_are_replaced_and_synchronized(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "file"
    replace_file(path, b"first")
    replace_file(path, b"second", 0o644)
    assert path.read_bytes() == b"second"
    sync_file(path)
    sync_folder(path.parent)
    with pytest.raises(FileExistsError):
        create_file(path, b"third")
    with pytest.raises(FileNotFoundError):
        sync_folder(tmp_path / "missing")
    assert [entry.name for entry in path.parent.iterdir()] == ["file"]


def test_a_file_with_a_reader_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    reader = open_file(path, os.O_RDONLY)
    closing = threading.Timer(0.1, os.close, [reader])  # on Windows, the replacement waits for this
    closing.start()
    replace_file(path, b"new")
    closing.join()
    assert path.read_bytes() == b"new"


def test_folders_for_secrets_are_this_users(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    make_folder(folder)
    assert is_own(folder)
    assert not is_open(folder)
    assert not close(folder)


def test_folders_are_walked_and_removed_with_everything_in_them(tmp_path: Path) -> None:
    folder = tmp_path / "top"
    deep = folder.joinpath(*(["inner"] * 30))
    deep.mkdir(parents=True)
    (deep / "file").touch()
    protected = folder / "protected"
    protected.touch()
    protected.chmod(0o400)
    assert sum(len(others) for _, _, others in walk(folder)) == 2
    removal = remove(folder)
    assert removal.complete, removal
    assert not folder.exists()
    assert remove(folder).complete


async def test_new_changed_renamed_and_deleted_files_wake(watcher: Inotify, tmp_path: Path) -> None:
    path = tmp_path / "file"
    assert watcher.watch({tmp_path}) == []
    for change in (
        lambda: path.write_text("1"),
        lambda: path.write_text("22"),
        lambda: path.replace(tmp_path / "other"),
        lambda: (tmp_path / "other").replace(path),
        path.unlink,
    ):
        watcher.drain()
        change()
        with trio.fail_after(CHANGE):
            await watcher.wait({path})


async def test_other_names_do_not_wake(watcher: Inotify, tmp_path: Path) -> None:
    watcher.watch({tmp_path})
    (tmp_path / "other").touch()
    with trio.move_on_after(0.3) as scope:
        await watcher.wait({tmp_path / "file"})
    assert scope.cancelled_caught


async def test_an_event_stays_until_it_is_drained(watcher: Inotify, tmp_path: Path) -> None:
    watcher.watch({tmp_path})
    (tmp_path / "file").touch()
    with trio.fail_after(CHANGE):
        await watcher.wait_any()
        await watcher.wait_any()
    watcher.drain()


async def test_missing_folders_are_ignored_and_watched_later(watcher: Inotify, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    assert watcher.watch({folder, tmp_path}) == []
    folder.mkdir()
    with trio.fail_after(CHANGE):
        await watcher.wait({folder})
    assert watcher.watch({folder}) == []
    (folder / "file").touch()
    with trio.fail_after(CHANGE):
        await watcher.wait({folder / "file"})


async def test_closing_ends_a_wait(watcher: Inotify, tmp_path: Path) -> None:
    async def wait() -> None:
        with pytest.raises(trio.ClosedResourceError):
            await watcher.wait({tmp_path / "file"})

    watcher.watch({tmp_path})
    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await trio.testing.wait_all_tasks_blocked()
        watcher.close()


async def test_many_watchers_come_and_go(tmp_path: Path) -> None:
    for number in range(30):
        watcher = Inotify()
        watcher.watch({tmp_path})
        (tmp_path / str(number)).touch()
        with trio.fail_after(CHANGE):
            await watcher.wait({tmp_path / str(number)})
        watcher.close()
        watcher.close()


def test_a_link_is_replaced_and_read(tmp_path: Path) -> None:
    link = tmp_path / "link"
    with pytest.raises(FileNotFoundError):
        read_link(link)
    for target in ("first", "../second/ä"):
        replace_link(link, target)
        assert read_link(link) == target
        assert is_link(link)
    assert [path.name for path in tmp_path.iterdir()] == ["link"]


def test_other_files_and_folders_are_not_links(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("first")
    (tmp_path / "folder").mkdir()
    for name in ("file", "folder", "nothing"):
        assert not is_link(tmp_path / name)
        with pytest.raises(OSError):
            read_link(tmp_path / name)


def test_space_is_allocated_and_read(tmp_path: Path) -> None:
    descriptor = open_file(tmp_path / "file", FLAGS)
    allocate(descriptor, 100_000)
    forget_cached(descriptor)
    os.close(descriptor)
    assert (tmp_path / "file").read_bytes() == bytes(100_000)
