"""Folders that a hostile program wrote: nothing outside of them is read, and counting ends."""

from __future__ import annotations

import os
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from schema.errors import ErrorKind, MachineError
from tests.unit.support.hostile import dig
from training.engine.usage import UnmeasuredError, pack_folder, usage


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    result = tmp_path / "output"
    (result / "deep" / "er").mkdir(parents=True)
    (result / "model.onnx").write_bytes(b"x" * 10_000)
    (result / "deep" / "er" / "labels.txt").write_text("a\n")
    (result / "tmp").mkdir()
    (result / "tmp" / "scratch").write_text("left out")
    return result


AsOrdinaryUser = Callable[[Path, Callable[[], object]], str]


@pytest.fixture
def as_ordinary_user() -> AsOrdinaryUser:
    """Provide a call of a function as a user who is not root, in a folder of that user; the result is a text."""

    def run(folder: Path, function: Callable[[], object]) -> str:
        for path in (folder, *folder.rglob("*")) if os.geteuid() == 0 else ():
            os.chown(path, 65534, 65534, follow_symlinks=False)
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            try:
                os.chdir(folder)
                if os.geteuid() == 0:
                    os.setresuid(65534, 65534, 65534)
                os.write(writing, _error(function).encode())
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        os.close(writing)
        with open(reading) as result:
            return result.read()

    return run


def _error(function: Callable[[], object]) -> str:
    try:
        return f"nothing: {function()}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def test_the_archive(folder: Path, tmp_path: Path) -> None:
    assert pack_folder(folder, tmp_path / "a.tar.gz", 10**6) == 2
    with tarfile.open(tmp_path / "a.tar.gz") as tar:
        assert tar.getnames() == ["deep/er/labels.txt", "model.onnx"]
        assert {(info.uid, info.mode, info.uname) for info in tar} == {(0, 0o644, "")}


@pytest.mark.parametrize("kind", ["link", "folder link", "hard link", "fifo", "socket"])
def test_only_regular_files_are_published(folder: Path, tmp_path: Path, kind: str) -> None:
    secret = tmp_path / "secret"
    secret.write_text("key")
    at = folder / "evil"
    if kind == "link":
        at.symlink_to(secret)
    elif kind == "folder link":
        at.symlink_to(tmp_path)
    elif kind == "hard link":
        at.hardlink_to(secret)
    elif kind == "fifo":
        os.mkfifo(at)
    else:
        os.mknod(at, 0o140644)
    with pytest.raises(MachineError, match="'evil', which is not a regular file") as caught:
        pack_folder(folder, tmp_path / "a.tar.gz", 10**6)
    assert caught.value.kind is ErrorKind.PRECONDITION
    assert usage([folder], 100)[0] < 100_000


def test_a_large_output(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(MachineError, match="larger than") as caught:
        pack_folder(folder, tmp_path / "a.tar.gz", 9_999)
    assert caught.value.kind is ErrorKind.EXHAUSTED


def test_usage(folder: Path) -> None:
    size, entries = usage([folder, folder / "none"], 100)
    assert entries == 6
    assert 10_000 < size < 60_000


def test_folders_of_any_depth_count(folder: Path) -> None:
    dig(folder / "chain", 1900)
    assert usage([folder], 10_000)[1] > 1900


def test_a_folder_that_cannot_be_read_is_an_error(folder: Path, as_ordinary_user: AsOrdinaryUser) -> None:
    (folder / "deep").chmod(0)
    denied = "UnmeasuredError: Permission denied"
    assert as_ordinary_user(folder.parent, lambda: usage([Path("output")], 100)) == denied
    assert as_ordinary_user(folder.parent, lambda: usage([Path("output", "deep", "er")], 100)) == denied
    assert "cannot be read" in as_ordinary_user(
        folder.parent, lambda: pack_folder(Path("output"), Path("a.tar.gz"), 10**6)
    )


def test_a_link_in_the_place_of_a_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "output").symlink_to("/")
    with pytest.raises(UnmeasuredError):
        usage([tmp_path / "output"], 100)


def test_counting_ends(folder: Path) -> None:
    for number in range(200):
        (folder / str(number)).touch()
    assert usage([folder], 50)[1] == 51


def test_sparse_files_do_not_count(folder: Path) -> None:
    os.truncate(folder / "model.onnx", 10**9)
    assert usage([folder], 100)[0] < 10**6


def test_a_file_with_several_names_counts_once(folder: Path) -> None:
    (folder / "large").write_bytes(b"x" * 10**6)
    for number in range(10):
        (folder / f"other{number}").hardlink_to(folder / "large")
    assert 10**6 < usage([folder], 100)[0] < 1.2 * 10**6


def test_added_files_belong_to_a_model(folder: Path, tmp_path: Path) -> None:
    """They replace those with the same name, and do not make a model of nothing."""
    (folder / "requirements.lock").mkdir()
    (folder / "requirements.lock" / "evil").symlink_to("/etc/passwd")
    assert pack_folder(folder, tmp_path / "a.tar.gz", 10**6, {"requirements.lock": b"a==1"}) == 2
    with tarfile.open(tmp_path / "a.tar.gz") as tar:
        assert tar.getnames() == ["deep/er/labels.txt", "model.onnx", "requirements.lock"]
        content = tar.extractfile("requirements.lock")
        assert content is not None
        assert content.read() == b"a==1"
    (tmp_path / "empty").mkdir()
    assert pack_folder(tmp_path / "empty", tmp_path / "b.tar.gz", 10**6, {"requirements.lock": b"a==1"}) == 0
    with tarfile.open(tmp_path / "b.tar.gz") as tar:
        assert tar.getnames() == []
