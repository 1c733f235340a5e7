"""The folder of environments: only complete ones, none removed while it is used, the oldest uses removed first."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from training.environments.cache import LOCK, PYTHON, Cache

HOLDER = """
import sys
from pathlib import Path
from training.environments.cache import Cache
cache = Cache(Path(sys.argv[1]))
held = cache.use(sys.argv[2]) if sys.argv[2] else cache.unfinished()
print(held, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    result = Cache(tmp_path / "environments")
    result.clean()
    return result


def make(cache: Cache, key: str, size: int = 10) -> int:
    """Make an environment; return the descriptor that holds it."""
    folder, held = cache.unfinished()
    environment = folder / "output" / PYTHON
    environment.mkdir(parents=True)
    (environment / "file").write_text(key)
    descriptor = cache.finish(environment, key, f"lock of {key}", size)
    cache.remove(folder, held)
    return descriptor


def names(cache: Cache) -> list[str]:
    return sorted(os.listdir(cache.folder))


def test_a_complete_environment(cache: Cache) -> None:
    assert cache.use("a") is None
    os.close(make(cache, "a"))
    assert names(cache) == ["a"]
    assert (cache.folder / "a" / PYTHON / "file").read_text() == "a"
    assert (cache.folder / "a" / LOCK).read_text() == "lock of a"
    assert cache.folder.stat().st_mode & 0o777 == 0o700
    held = cache.use("a")
    assert held is not None
    os.close(held)


def test_the_second_of_two_processes_uses_what_the_first_has_made(cache: Cache) -> None:
    first = make(cache, "a")
    second = make(cache, "a")
    assert os.path.samestat(os.fstat(first), os.fstat(second))
    assert names(cache) == ["a"]
    os.close(first)
    os.close(second)


def test_those_used_longest_ago_are_removed_and_none_that_is_used(cache: Cache) -> None:
    for number, key in enumerate("abcd"):
        os.close(make(cache, key, 100))
        os.utime(cache.folder / key / "size", (number, number))
    held = cache.use("a")  # which also makes it the last that was used
    assert held is not None
    os.utime(cache.folder / "a" / "size", (0, 0))
    assert cache.shrink(400) == 400
    assert cache.shrink(250) == 200
    assert names(cache) == ["a", "d"]
    assert cache.shrink(0) == 100
    assert names(cache) == ["a"], "it is in use"
    os.close(held)
    assert cache.shrink(0) == 0
    assert names(cache) == []


def test_a_use_counts(cache: Cache) -> None:
    for key in "ab":
        os.close(make(cache, key, 100))
        os.utime(cache.folder / key / "size", (1, 1))
    held = cache.use("a")
    assert held is not None
    os.close(held)
    cache.shrink(100)
    assert names(cache) == ["a"]


@pytest.mark.parametrize("key", ["a", ""])
def test_locks_of_a_killed_process_are_released(cache: Cache, key: str) -> None:
    os.close(make(cache, "a"))
    command = [sys.executable, "-c", HOLDER, str(cache.folder), key]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().strip() != "None"
        before = names(cache)
        cache.clean()
        if key:
            cache.shrink(0)
        assert names(cache) == before
        process.kill()
    cache.clean()
    cache.shrink(0)
    assert names(cache) == []


def test_leftovers_are_removed(cache: Cache) -> None:
    for name in (".unfinished-1", ".removed-2"):
        (cache.folder / name / "deep").mkdir(parents=True)
    cache.clean()
    assert names(cache) == []
