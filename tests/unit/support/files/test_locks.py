"""Locks of open files."""

from __future__ import annotations

import os
from pathlib import Path

from support.files.locks import lock_file, try_lock_file


def test_a_lock_excludes_others_until_its_descriptor_is_closed(tmp_path: Path) -> None:
    first, second = (os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT) for _ in range(2))
    lock_file(first)
    assert not try_lock_file(second)
    assert not try_lock_file(second, shared=True)
    os.close(first)
    assert try_lock_file(second)
    os.close(second)


def test_shared_locks_exclude_only_those_that_are_not_shared(tmp_path: Path) -> None:
    first, second, third = (os.open(tmp_path, os.O_RDONLY) for _ in range(3))
    lock_file(first, shared=True)
    assert try_lock_file(second, shared=True)
    assert not try_lock_file(third)
    for descriptor in (first, second, third):
        os.close(descriptor)
