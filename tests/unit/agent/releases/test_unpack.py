"""Release files, and files that only look like them."""

from __future__ import annotations

import io
import lzma
import os
import stat
import sys
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from agent.releases import unpack as module
from agent.releases.unpack import MARK, unpack
from schema.errors import ErrorKind, MachineError
from support.foreign.unpacking import unpack as unpack_here
from tests.unit.support.hostile import BAD, squeezed

SCRIPT = b"#!/bin/sh\n# machine-release {}\nexit 1"


def archive(fill: Callable[[tarfile.TarFile], None]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:xz") as tar:
        fill(tar)
    return buffer.getvalue()


def add(tar: tarfile.TarFile, name: str, content: bytes = b"", **fields: object) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(content)
    for field, value in fields.items():
        setattr(member, field, value)
    tar.addfile(member, io.BytesIO(content))


def links(tar: tarfile.TarFile, *, file: str = "", same: str = "", **targets: str) -> None:
    """Add symbolic links in this order, then an empty file, or a hard link to `same`."""
    for name, target in targets.items():
        add(tar, name, type=tarfile.SYMTYPE, linkname=target)
    if same:
        add(tar, "same", type=tarfile.LNKTYPE, linkname=same)
    else:
        add(tar, file)


def files(tar: tarfile.TarFile, *names: str) -> None:
    for name in names:
        add(tar, name)


def program(tar: tarfile.TarFile) -> None:
    add(tar, "lib", type=tarfile.DIRTYPE, mode=0o755)
    add(tar, "lib/code.py", b"print()\n", mode=0o644)
    add(tar, "run", b"#!/bin/sh\n", mode=0o4777)
    add(tar, "start", type=tarfile.SYMTYPE, linkname="run")
    add(tar, "lib/deep/link", type=tarfile.SYMTYPE, linkname="../../run")
    add(tar, "lib/same", type=tarfile.LNKTYPE, linkname="lib/code.py")


def write(folder: Path, payload: bytes, script: bytes = SCRIPT) -> Path:
    file = folder / "release"
    file.write_bytes(script + MARK + payload)
    return file


def test_a_release_is_unpacked(tmp_path: Path) -> None:
    (tmp_path / "out.part").mkdir()
    (tmp_path / "out.part" / "left").touch()  # by an interrupted call
    unpack(write(tmp_path, archive(program)), tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["lib", "run", "start"]
    assert (tmp_path / "out" / "lib" / "code.py").read_bytes() == b"print()\n"
    assert stat.S_IMODE((tmp_path / "out" / "run").stat().st_mode) == 0o755
    assert os.readlink(tmp_path / "out" / "start") == "run"
    assert (tmp_path / "out/lib/deep/link").read_bytes() == b"#!/bin/sh\n"
    assert (tmp_path / "out/lib/same").samefile(tmp_path / "out/lib/code.py")
    assert not (tmp_path / "out.part").exists()
    with pytest.raises(FileExistsError):
        unpack(write(tmp_path, archive(program)), tmp_path / "out")


HOSTILE: dict[str, Callable[[tarfile.TarFile], None]] = {
    "parent": lambda tar: add(tar, "../escaped", b"x"),
    "absolute": lambda tar: add(tar, "/../../escaped", b"x"),
    "link to the outside": lambda tar: add(tar, "link", type=tarfile.SYMTYPE, linkname="../../etc/passwd"),
    "absolute link": lambda tar: add(tar, "link", type=tarfile.SYMTYPE, linkname="/etc/passwd"),
    "hard link to the outside": lambda tar: add(tar, "link", type=tarfile.LNKTYPE, linkname="../release"),
    "hard link through a link": lambda tar: links(tar, a=".", same="a/../release"),
    "file through links": lambda tar: links(tar, b="c", a="b/../escaped", c=".", file="a/x"),
    "folder through links": lambda tar: links(tar, b="c", a="b/../escaped", c=".", file="a/x/y"),
    "file over a link": lambda tar: links(tar, a="b", file="a"),
    "the folder itself": lambda tar: add(tar, ".", b"x"),
    "file instead of a folder": lambda tar: files(tar, "a/b", "a"),
    "folder instead of a file": lambda tar: files(tar, "a", "a/b/c"),
    "zero byte in a name": lambda tar: add(tar, "x", b"x", pax_headers={"path": "a\0b"}),
    "device": lambda tar: add(tar, "null", type=tarfile.CHRTYPE, devmajor=1, devminor=3),
    "named pipe": lambda tar: add(tar, "pipe", type=tarfile.FIFOTYPE),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_members_outside_the_folder_are_refused(case: str, tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    with pytest.raises(MachineError) as caught:
        unpack(write(inner, archive(HOSTILE[case])), inner / "out")
    assert caught.value.kind is ErrorKind.INVALID
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["inner", "release"]


DAMAGED: dict[str, tuple[bytes, bytes]] = {
    "no payload": (b"", SCRIPT),
    "not compressed": (b"x" * 1000, SCRIPT),
    "truncated": (archive(program)[:-40], SCRIPT),
    "truncated in the middle": (archive(program)[:100], SCRIPT),
    "with something after it": (archive(program) + b"x", SCRIPT),
    "not an archive": (lzma.compress(b"x" * 10000), SCRIPT),
    "no script": (archive(program), b"\x7fELF"),
    "mark too late": (archive(program), SCRIPT + b"#" * module.MAX_SCRIPT),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_a_damaged_file_leaves_nothing(case: str, tmp_path: Path) -> None:
    payload, script = DAMAGED[case]
    with pytest.raises(MachineError) as caught:
        unpack(write(tmp_path, payload, script), tmp_path / "out")
    assert caught.value.kind is ErrorKind.INVALID
    assert [path.name for path in tmp_path.iterdir()] == ["release"]


def test_the_interpreter_of_debian_12_can_unpack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its tarfile has no filters, and releases contain it: `tarfile` is not used."""
    monkeypatch.setitem(sys.modules, "tarfile", None)
    unpack_here(io.BytesIO(archive(program)), tmp_path / "out", module.BOUNDS)
    assert (tmp_path / "out" / "lib" / "code.py").is_file()


def test_too_many_files_and_too_many_bytes_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BOUNDS", replace(module.BOUNDS, entries=3))
    with pytest.raises(MachineError, match="more than 3 files"):
        unpack(write(tmp_path, archive(program)), tmp_path / "out")
    monkeypatch.setattr(module, "BOUNDS", replace(module.BOUNDS, size=1 << 20))
    with pytest.raises(MachineError, match="1 MiB"):
        unpack(write(tmp_path, archive(lambda tar: add(tar, "bomb", bytes(2 << 20)))), tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["release"]


@pytest.mark.parametrize("case", BAD)
def test_bad_archives_are_refused_and_leave_nothing(tmp_path: Path, case: str) -> None:
    with pytest.raises(MachineError) as caught:
        unpack(write(tmp_path, squeezed(BAD[case]())), tmp_path / "out")
    assert caught.value.kind is ErrorKind.INVALID
    assert [path.name for path in tmp_path.iterdir()] == ["release"]


def test_a_full_disk_is_reported_before_it_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BOUNDS", replace(module.BOUNDS, reserve=1 << 60))
    with pytest.raises(MachineError) as caught:
        unpack(write(tmp_path, archive(program)), tmp_path / "out")
    assert caught.value.kind is ErrorKind.EXHAUSTED
