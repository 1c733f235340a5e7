"""Release files of small trees: identity, reproducible bytes, unpacking by the agent and by the file itself."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from agent.releases.header import read_identity
from agent.releases.unpack import unpack
from tools.release.elf import Elf, missing, parse
from tools.release.inputs import closure, locked
from tools.release.pack import Packed, file_name, pack
from tools.release.tree import COMMAND, ENTRIES
from uplink.releases import MAX_HEADER, PROGRAMS, SERVER, Header

HEADER = Header(SERVER, "1.2.3", "linux/x86_64")
RUN = '#!/bin/sh\nroot=$(readlink -f -- "$0")\nprintf "%s\\n" "$@"\ncat "${root%/*}/lib/text"\nexit 7\n'


def build(folder: Path, text: str = "content", header: Header = HEADER) -> Packed:
    tree, run = folder / "tree", folder / "run"
    (tree / "lib").mkdir(parents=True, exist_ok=True)
    (tree / "lib/text").write_text(text)
    (tree / "link").unlink(missing_ok=True)
    (tree / "link").symlink_to("lib/text")
    run.write_text(RUN)
    run.chmod(0o755)
    return pack(header, tree, run, folder / "out")


def execute(path: Path, cache: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    values = {"PATH": os.environ["PATH"], "MACHINE_RELEASE_CACHE": str(cache), **environment}
    return subprocess.run([path, *arguments], env=values, capture_output=True, text=True, timeout=30)


def test_the_name_and_the_header_identify_the_release(tmp_path: Path) -> None:
    packed = build(tmp_path)
    assert packed.path.name == file_name(HEADER) == "machine-server-v1.2.3-x86_64"
    assert read_identity(packed.path) == HEADER
    assert packed.path.read_bytes().index(b"__PAYLOAD__") < MAX_HEADER


@pytest.mark.parametrize(
    "header",
    [Header("other", "1.2.3", "linux/x86_64"), Header(SERVER, "1.2", "linux/x86_64"), Header(SERVER, "1.2.3", "x")],
)
def test_no_file_is_written_for_another_identity(tmp_path: Path, header: Header) -> None:
    with pytest.raises(ValueError):
        build(tmp_path, header=header)
    assert not list(tmp_path.glob("out/*"))


def test_the_same_files_give_the_same_bytes(tmp_path: Path) -> None:
    first = build(tmp_path / "a")
    (tmp_path / "b/tree/lib").mkdir(parents=True, mode=0o700)
    second = build(tmp_path / "b")
    os.utime(tmp_path / "b/tree/lib/text", (1, 1))
    assert first.sha256 == second.sha256 == build(tmp_path / "b").sha256
    assert first.sha256 != build(tmp_path / "b", "other").sha256


def test_the_agent_unpacks_it(tmp_path: Path) -> None:
    unpack(build(tmp_path).path, tmp_path / "slot")
    assert (tmp_path / "slot/lib/text").read_text() == "content"
    assert (tmp_path / "slot/link").readlink() == Path("lib/text")
    assert os.access(tmp_path / "slot/run", os.X_OK)


def test_executed_directly_it_unpacks_itself_once(tmp_path: Path) -> None:
    packed = build(tmp_path)
    done = execute(packed.path, tmp_path / "cache", "a b", "*")
    assert (done.returncode, done.stdout, done.stderr) == (7, "a b\n*\ncontent", "")
    (folder,) = (tmp_path / "cache").iterdir()
    (folder / "lib/text").write_text("kept")
    assert execute(packed.path, tmp_path / "cache").stdout == "\nkept"


def test_the_program_learns_which_file_was_executed(tmp_path: Path) -> None:
    tree, run = tmp_path / "tree", tmp_path / "run"
    tree.mkdir()
    run.write_text('#!/bin/sh\necho "$MACHINE_RELEASE_FILE $MACHINE_RELEASE_FOLDER"\n')
    run.chmod(0o755)
    packed = pack(HEADER, tree, run, tmp_path / "out")
    (tmp_path / "link").symlink_to(packed.path)
    for environment in ({}, {"MACHINE_RELEASE_FILE": "/other"}):
        done = execute(tmp_path / "link", tmp_path / "cache", **environment)
        (folder,) = (tmp_path / "cache").iterdir()
        assert done.stdout.split() == [str(packed.path), str(folder)]


@pytest.mark.parametrize("lost", [1, 20])
def test_a_truncated_file_leaves_nothing_behind(tmp_path: Path, lost: int) -> None:
    path = build(tmp_path).path
    path.write_bytes(path.read_bytes()[:-lost])
    done = execute(path, tmp_path / "cache")
    assert done.returncode == 1
    assert "is damaged: download it again" in done.stderr
    assert list((tmp_path / "cache").iterdir()) == []


def test_without_xz_it_names_the_package(tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "id").symlink_to("/usr/bin/id")
    done = execute(build(tmp_path).path, tmp_path / "cache", PATH=str(programs))
    assert done.returncode == 1
    assert "install the package xz-utils" in done.stderr


def test_each_program_of_a_release_has_a_module() -> None:
    for module in ENTRIES.values():
        assert (Path(*module.split(".")).with_suffix(".py")).is_file()
    assert set(ENTRIES) == {*PROGRAMS, COMMAND}


def test_the_oldest_glibc_is_the_highest_version_of_a_symbol() -> None:
    text = """
 0x0000000000000001 (NEEDED)             Shared library: [libffi.so.8]
 0x0000000000000001 (NEEDED)             Shared library: [libc.so.6]
  0x0010:   Name: GLIBC_2.9  Flags: none  Version: 4
  0x0020:   Name: GLIBC_2.17  Flags: none  Version: 3
  0x0030:   Name: GLIBCXX_3.4.30  Flags: none  Version: 2
"""
    assert parse(text) == Elf(("libffi.so.8", "libc.so.6"), (2, 17))


def test_libraries_of_the_system_are_not_missing() -> None:
    files = {
        Path("a.so"): Elf(("libc.so.6", "libpthread.so.0", "ld-linux-x86-64.so.2", "b.so", "libcrypt.so.1"), (2, 5)),
        Path("b.so"): Elf((), (2, 5)),
    }
    assert missing(files) == {"libcrypt.so.1": Path("a.so")}


def test_only_what_the_program_needs_is_selected() -> None:
    requires = {
        "top": ["Client[fast]>=1", "tool; extra == 'dev'", "other; platform_machine == 'aarch64'"],
        "client": ["speed; extra == 'fast'", "slow; extra == 'slow'"],
        "speed": ["client"],
    }
    assert closure("top", lambda name: requires.get(name, ()), "x86_64") == {"top", "client", "speed"}
    assert closure("top", lambda name: requires.get(name, ()), "aarch64") == {"top", "client", "speed", "other"}
    assert closure("top", lambda name: requires.get(name, ()), "x86_64", ["dev"]) == {"top", "client", "speed", "tool"}


def test_the_hashes_of_selected_packages_are_kept() -> None:
    text = "a-b==1 \\\n    --hash=sha256:1\nc==2 \\\n    --hash=sha256:2\nD.e==3 ; x == 'y' \\\n    --hash=sha256:3\n"
    lines = list(locked(text, frozenset({"a-b", "d-e"})))
    assert "".join(lines) == text.replace("c==2 \\\n    --hash=sha256:2\n", "")
    with pytest.raises(LookupError, match="lacks f"):
        list(locked(text, frozenset({"f"})))
