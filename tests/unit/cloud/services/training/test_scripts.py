"""Archives of training scripts: what is unpacked, and what is refused."""

from __future__ import annotations

import io
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest
import trio

from cloud.services.training import scripts
from schema.errors import ErrorKind, MachineError
from support.worker import Worker
from tests.unit.support.hostile import BAD, pack, wide


def archive_of(path: Path, *members: tarfile.TarInfo, content: bytes = b"") -> Path:
    with tarfile.open(path, "w:gz") as tar:
        for member in members:
            member.size = len(content) if member.isreg() else 0
            tar.addfile(member, io.BytesIO(content) if member.isreg() else None)
    return path


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        ([member("../evil")], "leads out"),
        ([member("/etc/evil")], "leads out"),
        ([member("a/../../evil")], "leads out"),
        ([member("model", tarfile.SYMTYPE, "/etc"), member("model/training.py")], "neither a file nor a folder"),
        ([member("a", tarfile.LNKTYPE, "/etc/passwd")], "neither a file nor a folder"),
        ([member("a", tarfile.CHRTYPE)], "neither a file nor a folder"),
        ([member("a"), member("a/b")], "cannot be used"),
        ([member("setup.py")], "no model/training.py"),
        ([], "no model/training.py"),
    ],
)
def test_hostile_archives(tmp_path: Path, members: list[tarfile.TarInfo], reason: str) -> None:
    archive = archive_of(tmp_path / "a.tar.gz", *members, content=b"x")
    with pytest.raises(MachineError, match=reason):
        unpacked(archive, tmp_path / "program")
    assert {path.name for path in tmp_path.iterdir()} <= {"a.tar.gz", "program"}


def test_folders_count_like_files(tmp_path: Path) -> None:
    with pytest.raises(MachineError, match="more than 10000 folders"):
        unpacked(pack(tmp_path / "a.tar.gz", wide()), tmp_path / "program")


@pytest.mark.parametrize("case", BAD)
def test_bad_archives_are_refused_for_a_reason(tmp_path: Path, case: str) -> None:
    with pytest.raises(MachineError, match="the archive of the training script cannot be used") as caught:
        unpacked(pack(tmp_path / "a.tar.gz", BAD[case]()), tmp_path / "program")
    assert caught.value.kind is ErrorKind.PRECONDITION


def unpacked(archive: Path, folder: Path) -> Path:
    """Unpack a script, in a child process, so by the real clock."""

    async def main() -> Path:
        worker = Worker("scripts")
        async with worker.opened():
            return await scripts.unpack(archive, folder, worker)

    return trio.run(main)


def test_large_archives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scripts, "BOUNDS", replace(scripts.BOUNDS, size=1000))
    with pytest.raises(MachineError, match="more than"):
        unpacked(archive_of(tmp_path / "a", member("x"), content=bytes(1001)), tmp_path / "b")
    monkeypatch.setattr(scripts, "BOUNDS", replace(scripts.BOUNDS, entries=2))
    with pytest.raises(MachineError, match="more than 2 files"):
        unpacked(archive_of(tmp_path / "c", *(member(str(number)) for number in range(3))), tmp_path / "d")
    (tmp_path / "text").write_text("no archive")
    with pytest.raises(MachineError, match="cannot be used"):
        unpacked(tmp_path / "text", tmp_path / "e")
