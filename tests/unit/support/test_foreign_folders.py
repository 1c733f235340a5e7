"""The remover and the walkers of foreign folders: any depth, any permission, no link followed, nothing raised."""

from __future__ import annotations

import os
import resource
from pathlib import Path

import pytest

from support.foreign import removal_at as module
from support.foreign.removal import erase, remove
from support.foreign.walking import walk
from support.foreign.walking_at import MovedError, flush_tree, folder_entries
from tests.unit.support.hostile import dig


@pytest.fixture
def few_descriptors() -> object:
    """Allow only few more open files than there are."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = max(map(int, os.listdir("/proc/self/fd")))
    resource.setrlimit(resource.RLIMIT_NOFILE, (most + 12, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)


@pytest.mark.parametrize("levels", [0, 1, 2, 50, 5000])
def test_any_depth_is_removed(tmp_path: Path, levels: int, few_descriptors: object) -> None:
    dig(tmp_path / "deep", levels, files=3)
    removal = remove(tmp_path / "deep")
    assert removal.complete
    assert not str(removal)
    assert os.listdir(tmp_path) == []


def test_wide_and_deep_folders_are_removed(tmp_path: Path) -> None:
    for number in range(200):
        dig(tmp_path / "w" / str(number) if number else tmp_path / "w", 20)
    assert remove(tmp_path / "w").complete
    assert os.listdir(tmp_path) == []


def test_links_are_removed_but_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").touch()
    folder = tmp_path / "folder"
    (folder / "inner").mkdir(parents=True)
    (folder / "link").symlink_to(outside)
    (folder / "inner" / "link").symlink_to(outside)
    (folder / "inner" / "broken").symlink_to("nowhere")
    os.mkfifo(folder / "inner" / "pipe")
    (tmp_path / "link").symlink_to(outside)
    assert remove(folder).complete
    assert remove(tmp_path / "link").complete
    assert remove(tmp_path / "absent").complete
    assert remove(tmp_path / "absent" / "more").complete
    assert [path.name for path in sorted(tmp_path.rglob("*"))] == ["outside", "kept"]


def test_folders_without_permissions_are_removed_by_their_owner(tmp_path: Path) -> None:
    """By another user, if this one may do everything."""
    tmp_path.chmod(0o777)
    if not (process := os.fork()):
        try:
            os.chdir(tmp_path)  # the other user may not enter the folders around it
            if os.geteuid() == 0:
                os.setgroups([])
                os.setresgid(65534, 65534, 65534)
                os.setresuid(65534, 65534, 65534)
            dig(Path("x"), 2000, mode=0)
            with pytest.raises(PermissionError):
                list(folder_entries(Path("x")))
            removal = remove(Path("x"))
            os._exit(0 if removal.complete and not os.path.lexists("x") else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0


def test_leftovers_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "folder"
    (folder / "a").mkdir(parents=True)
    for name in ("a/stays", "a/goes", "goes"):
        (folder / name).touch()
    unlink = os.unlink

    def refuse(name: str, *, dir_fd: int) -> None:
        if name == "stays":
            raise PermissionError(1, "Operation not permitted")
        unlink(name, dir_fd=dir_fd)

    monkeypatch.setattr(os, "unlink", refuse)
    removal = remove(folder)
    assert not removal.complete
    assert "a/stays: Operation not permitted" in str(removal)
    assert [str(path.relative_to(folder)) for path in sorted(folder.rglob("*"))] == ["a", "a/stays"]
    with pytest.raises(OSError, match="Operation not permitted"):
        erase(folder)


def test_it_gives_up_if_much_cannot_be_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    for number in range(100):
        (folder / str(number)).touch()
    tried: list[str] = []

    def refuse(name: str, *, dir_fd: int) -> None:
        tried.append(name)
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "unlink", refuse)
    assert len(remove(folder).left) == len(tried) == module.MOST_LEFT


def test_a_removal_with_a_time_limit_continues(tmp_path: Path) -> None:
    dig(tmp_path / "deep", 3000)
    assert remove(tmp_path / "deep", seconds=0).out_of_time
    calls = 1
    while not (removal := remove(tmp_path / "deep", seconds=0.005)).complete:
        assert removal.out_of_time
        calls += 1
    assert calls > 1
    assert os.listdir(tmp_path) == []


def test_the_walk_reaches_everything(tmp_path: Path, few_descriptors: object) -> None:
    dig(tmp_path / "deep", 3000, files=2)
    (tmp_path / "deep" / "link").symlink_to("/")
    listed = list(folder_entries(tmp_path / "deep"))
    assert len(listed) == 3 * 3000 + 1
    assert max(entry.depth for entry in listed) == 3000
    assert 0 < len(list(walk(tmp_path / "deep"))) < 3000, "only as deep as paths can be"
    errors: list[OSError] = []
    list(walk(tmp_path / "deep", errors.append))
    assert len(errors) == 1
    flush_tree(tmp_path / "deep")
    assert remove(tmp_path / "deep").complete


def test_the_walk_notices_that_a_folder_is_moved(tmp_path: Path) -> None:
    (tmp_path / "a" / "b" / "c").mkdir(parents=True)
    (tmp_path / "a" / "b" / "c" / "file").touch()
    walked = folder_entries(tmp_path / "a")
    while next(walked).name != "file":
        pass
    (tmp_path / "a" / "b" / "c").rename(tmp_path / "c")
    with pytest.raises(MovedError):
        list(walked)


def test_walk_is_like_that_of_the_standard_library(tmp_path: Path) -> None:
    for name in ("a/b/c", "a/d", "e"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "file").touch()
    (tmp_path / "a" / "link").symlink_to(tmp_path)
    (tmp_path / "a" / "loop").symlink_to("loop")
    expected = [(Path(folder), sorted(folders), sorted(names)) for folder, folders, names in os.walk(tmp_path)]
    actual = [(folder, sorted(folders), sorted(names)) for folder, folders, names in walk(tmp_path)]
    assert sorted(actual) == sorted(expected)
    kept = []
    for folder, folders, _ in walk(tmp_path):
        folders[:] = [name for name in folders if name != "a"]
        kept.append(folder.name)
    assert kept == [tmp_path.name, "e"]
