"""Archives of modules: unpacked content, refusals, and leftover files."""

from __future__ import annotations

import gzip
import io
import json
import os
import tarfile
from pathlib import Path

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.programs import archive
from schema.errors import MachineError
from support.foreign.tar import Bounds
from support.worker import Worker
from tests.unit.runtime.unpacking import prepare
from tests.unit.support.hostile import BAD, dig, header, pack

RUN = b"#!/bin/sh\nexit 0\n"


def member(name: str, data: bytes = b"", **facts: object) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size = len(data)
    info.mode = 0o755
    for key, value in facts.items():
        setattr(info, key, value)
    return info, data


def symlink(name: str, target: str) -> tuple[tarfile.TarInfo, bytes]:
    return member(name, type=tarfile.SYMTYPE, linkname=target)


def hardlink(name: str, target: str) -> tuple[tarfile.TarInfo, bytes]:
    return member(name, type=tarfile.LNKTYPE, linkname=target)


def meta(**keys: object) -> tuple[tarfile.TarInfo, bytes]:
    return member("meta.json", json.dumps({"entrypoint": "run.sh", **keys}).encode())


def write(path: Path, *members: tuple[tarfile.TarInfo, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as tar:
        for info, data in members:
            tar.addfile(info, io.BytesIO(data))
    return path


def prepared(tmp_path: Path, *members: tuple[tarfile.TarInfo, bytes]) -> archive.Program:
    return prepare(write(tmp_path / "module.tgz", *members), tmp_path / "packages")


def test_the_entry_point_of_the_archive_is_run(tmp_path: Path) -> None:
    program = prepared(
        tmp_path,
        meta(entrypoint="./bin/run.sh", first_run="first.sh"),
        member("bin/run.sh", RUN),
        member("first.sh", RUN),
        member("data.txt", b"hello", mode=0o600),
        symlink("bin/again.sh", "run.sh"),
        symlink("up", "bin/../data.txt"),
        hardlink("twin.txt", "data.txt"),
    )
    assert program.executable == program.root / "bin" / "run.sh"
    assert program.first_run == program.root / "first.sh"
    assert (program.root / "bin" / "again.sh").read_bytes() == RUN
    assert (program.root / "up").read_bytes() == b"hello"
    assert (program.root / "twin.txt").read_bytes() == b"hello"
    assert not os.access(program.root / "data.txt", os.X_OK)
    assert [path.name for path in (tmp_path / "packages").iterdir()] == [program.root.name]


def test_it_is_on_the_disk_before_it_is_in_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a power cut could leave a folder that counts as unpacked but has empty files."""
    there: list[list[str]] = []

    def sync() -> None:
        there.append(sorted(str(path.relative_to(tmp_path / "packages")) for path in tmp_path.glob("packages/*/*")))

    monkeypatch.setattr(os, "sync", sync)
    folder = prepared(tmp_path, meta(), member("run.sh", RUN)).root.name
    assert there == [[f"{folder}.unpacking/meta.json", f"{folder}.unpacking/run.sh"]]


def test_the_same_content_is_unpacked_once(tmp_path: Path) -> None:
    program = prepared(tmp_path, meta(), member("run.sh", RUN))
    (program.root / "mark").touch()
    again = prepare(tmp_path / "module.tgz", tmp_path / "packages")
    assert again == program
    assert (again.root / "mark").exists()


HOSTILE = {
    "absolute": [member("/etc/evil", b"x")],
    "up": [member("../evil", b"x")],
    "up-inside": [member("a/../../evil", b"x")],
    "folder-up": [member("../evil", type=tarfile.DIRTYPE)],
    "link-out": [symlink("out", "../../evil")],
    "link-absolute": [symlink("out", "/etc")],
    "write-through-a-link": [symlink("out", ".."), member("out/evil", b"x")],
    "hard-link-out": [hardlink("out", "../../evil")],
    "hard-link-through-a-link": [symlink("out", "../.."), hardlink("got", "out/secret")],
    "link-in-a-linked-folder": [symlink("out", "../.."), symlink("out/evil", "x")],
    "links-that-compose": [symlink("a", "b/.."), symlink("b", "."), symlink("c", "a/..")],
    "device": [member("null", type=tarfile.CHRTYPE, devmajor=1, devminor=3)],
    "pipe": [member("pipe", type=tarfile.FIFOTYPE)],
}


@pytest.mark.parametrize("members", HOSTILE.values(), ids=HOSTILE.keys())
def test_paths_out_of_the_folder_are_refused_and_nothing_is_left(
    tmp_path: Path, members: list[tuple[tarfile.TarInfo, bytes]]
) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    (tmp_path / "secret").write_text("secret")
    with pytest.raises(MachineError) as caught:
        prepared(inner, meta(), member("run.sh", RUN), *members)
    assert "module.tgz" in str(caught.value)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["inner", "module.tgz", "packages", "secret"]
    assert os.stat(tmp_path / "secret").st_nlink == 1


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ([member("run.sh", RUN)], "has no meta.json"),
        ([member("meta.json", b"{")], "cannot be read"),
        ([member("meta.json", b"[" * 5000)], "cannot be read"),
        ([member("meta.json", b"[]")], "without entrypoint"),
        ([meta(entrypoint=5)], "without entrypoint"),
        ([meta()], "does not contain its entrypoint 'run.sh'"),
        ([meta(), member("run.sh", RUN, mode=0o644)], "chmod"),
        ([meta(entrypoint="../run.sh"), member("run.sh", RUN)], "leads out"),
        ([meta(first_run="absent.sh"), member("run.sh", RUN)], "first_run 'absent.sh'"),
    ],
)
def test_an_archive_that_says_nothing_to_run(
    tmp_path: Path, members: list[tuple[tarfile.TarInfo, bytes]], words: str
) -> None:
    with pytest.raises(MachineError, match=words):
        prepared(tmp_path, *members)
    assert not list((tmp_path / "packages").iterdir())


@settings(max_examples=20)
@given(data=st.binary(max_size=600), packed=st.booleans(), keep=st.integers(0, 400))
def test_garbage_and_halves_are_refused_with_the_name(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, packed: bool, keep: int
) -> None:
    folder = tmp_path_factory.mktemp("garbage")
    path = folder / "module.tgz"
    if packed:
        whole = write(folder / "whole.tgz", meta(), member("run.sh", RUN), member("more", data)).read_bytes()
        path.write_bytes(whole[: min(keep, len(whole) - 12)])
    else:
        path.write_bytes(gzip.compress(data) if keep % 2 else data)
    with pytest.raises(MachineError, match=r"module\.tgz"):
        prepare(path, folder / "packages")
    assert not list((folder / "packages").iterdir())


async def test_cancelled_it_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = write(tmp_path / "module.tgz", meta(), member("run.sh", RUN))
    scope, worker = trio.CancelScope(), Worker("archives")

    async def unpack(archive: Path, folder: Path, bounds: object) -> None:
        os.mkdir(folder)
        scope.cancel()
        await trio.sleep_forever()

    monkeypatch.setattr(archive, "unpack_apart", unpack)
    with scope:
        async with worker.opened():
            await archive.prepare(source, tmp_path / "packages", "demo", worker)
    assert scope.cancelled_caught
    assert not list((tmp_path / "packages").iterdir())


def test_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "BOUNDS", Bounds(entries=10, size=1000))
    with pytest.raises(MachineError, match=r"module\.tgz is not unpacked: its files have more than"):
        prepared(tmp_path, meta(), member("run.sh", RUN), member("big", b"x" * 1001))
    monkeypatch.setattr(archive, "BOUNDS", Bounds(entries=2, size=1000))
    with pytest.raises(MachineError, match="more than 2 files"):
        prepared(tmp_path, meta(), member("run.sh", RUN), member("third", b""))


@pytest.mark.parametrize("case", BAD)
def test_bad_archives_are_refused_and_do_not_block_their_correction(tmp_path: Path, case: str) -> None:
    packages = tmp_path / "packages"
    with pytest.raises(MachineError, match=r"bad\.tgz"):
        prepare(pack(tmp_path / "bad.tgz", BAD[case]()), packages)
    assert list(packages.iterdir()) == []
    program = prepared(tmp_path, meta(), member("run.sh", RUN))
    assert [path.name for path in packages.iterdir()] == [program.root.name]


def test_a_large_meta_json_is_not_read(tmp_path: Path) -> None:
    source = pack(tmp_path / "module.tgz", [header(b"meta.json", size=200 << 20), *[b" " * (1 << 20)] * 200])
    with pytest.raises(MachineError, match="more than 1024 KiB"):
        prepare(source, tmp_path / "packages")
    assert list((tmp_path / "packages").iterdir()) == []


def test_folders_of_any_depth_that_an_earlier_version_unpacked_are_removed(tmp_path: Path) -> None:
    packages = tmp_path / "packages"
    packages.mkdir()
    dig(packages / f"demo-{'b' * 16}", 1900)
    dig(packages / f"demo-{'c' * 16}.unpacking", 1900)
    archive.remove_others(packages, "demo", None)
    assert list(packages.iterdir()) == []
    dig(tmp_path / "data", 1900)
    archive.rename_for_removal(tmp_path / "data")
    archive.remove_renamed(tmp_path / "data")
    assert [path.name for path in tmp_path.iterdir()] == ["packages"]


def test_an_entry_point_that_leads_to_itself(tmp_path: Path) -> None:
    with pytest.raises(MachineError, match=r"does not contain its entrypoint 'run\.sh'"):
        prepared(tmp_path, meta(), symlink("run.sh", "run.sh"))


def test_only_older_contents_of_the_same_module_are_removed(tmp_path: Path) -> None:
    packages = tmp_path / "packages"
    keep, old = "demo-" + "a" * 16, "demo-" + "b" * 16
    others = ["demo-two-" + "c" * 16, "demo-" + "d" * 15, "other-" + "e" * 16, "demo", "demo-" + "A" * 16]
    for name in (keep, old, old + ".unpacking", *others):
        (packages / name / "inside").mkdir(parents=True)
    for name in (keep, old):
        archive.marker_of(packages / name).touch()
    archive.remove_others(packages, "demo", packages / keep)
    assert sorted(path.name for path in packages.iterdir()) == sorted([keep, keep + archive.MARKER, *others])
    archive.remove_others(packages, "demo", None)
    assert sorted(path.name for path in packages.iterdir()) == sorted(others)
    archive.remove_others(tmp_path / "absent", "demo", None)
