"""Release files as the source of an installation: what is staged, kept and refused."""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path

import pytest

from agent.install.install import InstallRequest, install
from agent.install.release_files import FOLDER, ReleaseSource, forget_unpacked, own_file, read_release
from agent.install.source import stage_package
from agent.install.target import InstallTarget
from agent.layout import AGENT, PROGRAMS, SERVER
from agent.releases.unpack import MARK
from agent.update import store
from agent.update.record import UpdateRecord
from schema.errors import ErrorKind, MachineError
from tests.helpers.release_files import write_release
from tests.unit.agent.releases.repository import Repository
from uplink.platforms import platform
from uplink.releases import normal_platform

UNITS = {program: f"# Written by machine-agent.\n[Service]\nExecStart={program}\n" for program in PROGRAMS}
HERE = normal_platform(platform())
ELF_AARCH64 = b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x03\x00\xb7\x00"
ELF_ARM = b"\x7fELF\x01\x01\x01" + bytes(9) + b"\x03\x00\x28\x00"


@pytest.fixture
def target(tmp_path: Path) -> InstallTarget:
    root = tmp_path / "image"
    for name in ("usr/lib/systemd", "etc/systemd/system", "opt", "run"):
        (root / name).mkdir(parents=True)
    (root / "usr/lib/systemd/systemd").write_text("")
    return InstallTarget(root, live=False)


def files(folder: Path, version: str = "1.0.0", on: str | None = None) -> dict[str, Path]:
    """Write a release file of each program that prints its arguments."""
    return {
        program: write_release(
            folder / f"{program}-{version}", version, f'echo {version} "$@"\n', program=program, on=on
        )
        for program in PROGRAMS
    }


def source(target: InstallTarget, named: dict[str, Path], on: str = HERE, root: bytes | None = None) -> ReleaseSource:
    read = {program: read_release(program, path, on) for program, path in named.items()}
    return ReleaseSource(read, on, target.inside("etc/machine.json"), root, target.root)


def put(target: InstallTarget, releases: ReleaseSource) -> list[str]:
    said: list[str] = []
    install(target, InstallRequest(releases.stage, UNITS, fetch=releases.fetch, space=releases.space), said.append)
    return said


def record(target: InstallTarget, program: str) -> UpdateRecord:
    loaded = store.load(target.layout.record(program)).record
    assert loaded is not None
    return loaded


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_release_files_are_staged_under_their_hash(target: InstallTarget, tmp_path: Path) -> None:
    named = files(tmp_path)
    put(target, source(target, named))
    for program, path in named.items():
        slots = record(target, program).slots
        assert (slots.current.version, slots.current.sha256, slots.current.size) == (
            "1.0.0", sha256(path), path.stat().st_size,
        )  # fmt: skip
        assert slots.factory == slots.current
        done = subprocess.run(
            [target.layout.launcher, program, "a b"],
            env={"PATH": os.environ["PATH"], "MACHINE_ROOT": str(target.layout.root)},
            capture_output=True,
            text=True,
        )
        assert done.stdout == "1.0.0 a b\n", done.stderr
    assert list(target.layout.downloads.iterdir()) == []
    for path in target.root.rglob("*"):
        if path.is_symlink() and "wants" not in str(path):
            assert not os.readlink(path).startswith("/"), path


def test_a_repeated_installation_keeps_the_server_that_is_installed(target: InstallTarget, tmp_path: Path) -> None:
    named = files(tmp_path)
    put(target, source(target, named))
    newer = files(tmp_path, "1.1.0")
    put(target, source(target, {AGENT: newer[AGENT]}))
    assert record(target, SERVER).slots.current.sha256 == sha256(named[SERVER])
    slots = record(target, AGENT).slots
    assert slots.previous is not None
    assert (slots.current.version, slots.previous.version) == ("1.1.0", "1.0.0")
    before = record(target, AGENT)
    put(target, source(target, {}))
    assert record(target, AGENT) == before


def test_a_package_is_replaced_by_a_release(target: InstallTarget, tmp_path: Path) -> None:
    install(target, InstallRequest(stage_package, UNITS), lambda line: None)
    named = files(tmp_path)
    with pytest.raises(MachineError, match="no release of machine-server is installed, and there are no credentials"):
        put(target, source(target, {AGENT: named[AGENT]}))
    put(target, source(target, named))
    assert record(target, SERVER).slots.current.version == "1.0.0"


def test_without_a_server_the_error_names_both_ways_to_get_one(target: InstallTarget, tmp_path: Path) -> None:
    with pytest.raises(MachineError, match="no release of machine-server") as raised:
        put(target, source(target, {AGENT: files(tmp_path)[AGENT]}))
    assert "--server" in raised.value.remedy
    assert "--credentials" in raised.value.remedy
    assert not (target.root / "run/machine").exists()


def test_the_file_of_another_program_or_platform_is_refused(tmp_path: Path) -> None:
    named = files(tmp_path, on="linux/armv7l")
    with pytest.raises(MachineError, match="is a release of machine-agent") as raised:
        read_release(SERVER, named[AGENT], "linux/armv7l")
    assert "--server" in raised.value.remedy
    with pytest.raises(MachineError, match=f"is for linux/armv7l, and the system is {HERE}"):
        read_release(SERVER, named[SERVER], HERE)
    (tmp_path / "text").write_text("hello")
    with pytest.raises(MachineError, match="has no header of a release"):
        read_release(SERVER, tmp_path / "text", HERE)


def test_a_damaged_archive_is_refused_and_leaves_no_release(target: InstallTarget, tmp_path: Path) -> None:
    named = files(tmp_path)
    content = named[SERVER].read_bytes()
    named[SERVER].write_bytes(content[: content.index(MARK) + 40])
    with pytest.raises(MachineError, match="cannot be unpacked"):
        put(target, source(target, named))
    assert list(target.layout.releases(SERVER).iterdir()) == []
    assert list(target.layout.downloads.iterdir()) == []


def test_a_file_that_changes_after_it_was_verified_is_refused(target: InstallTarget, tmp_path: Path) -> None:
    named = files(tmp_path)
    releases = source(target, named)
    write_release(named[SERVER], "6.6.6", "echo evil\n")
    with pytest.raises(MachineError, match="has SHA-256"):
        put(target, releases)
    assert list(target.layout.releases(SERVER).iterdir()) == []


def test_a_pinned_root_needs_the_cloud_to_verify_files(target: InstallTarget, tmp_path: Path) -> None:
    root = Repository().files["1.root.json"]
    with pytest.raises(MachineError, match="the signatures of the files are needed"):
        put(target, source(target, files(tmp_path), root=root))
    assert not target.layout.launch(SERVER).joinpath("run").exists()


def test_the_platform_of_an_image_is_that_of_its_systemd(target: InstallTarget, tmp_path: Path) -> None:
    init = target.root / "usr/lib/systemd/systemd"
    assert target.platform() == HERE
    init.write_bytes(ELF_AARCH64)
    assert target.platform() == "linux/aarch64"
    put(target, source(target, files(tmp_path, on="linux/aarch64"), "linux/aarch64"))
    assert record(target, AGENT).slots.current.platform == "linux/aarch64"
    init.write_bytes(ELF_ARM)
    with pytest.raises(MachineError, match=r"another processor \(32-bit\)") as raised:
        target.platform()
    assert raised.value.kind is ErrorKind.INVALID


@pytest.mark.parametrize("name", ["opt", "opt/machine", "etc/systemd/system", "etc/machine.json"])
def test_links_of_an_image_never_lead_to_files_of_this_computer(
    target: InstallTarget, tmp_path: Path, name: str
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    path = target.root / name
    if path.is_dir():
        path.rmdir()
    path.symlink_to(outside)
    with pytest.raises(MachineError, match="is a link that leads out of"):
        put(target, source(target, files(tmp_path)))
    assert list(outside.iterdir()) == []


def test_a_file_names_itself_only_if_it_was_executed(tmp_path: Path) -> None:
    assert own_file({}) is None
    assert own_file({"MACHINE_RELEASE_FILE": "/a/b"}) == Path("/a/b")


def test_the_unpacked_folder_is_deleted_only_by_a_process_that_runs_from_it(tmp_path: Path) -> None:
    folder = tmp_path / "cache" / ("a" * 64)
    (folder / "bin").mkdir(parents=True)
    (folder / "run").touch()
    forget_unpacked({FOLDER: str(folder)}, "/usr/bin/python3")
    forget_unpacked({FOLDER: str(tmp_path)}, str(folder / "bin/python3"))
    forget_unpacked({}, str(folder / "bin/python3"))
    assert folder.exists()
    forget_unpacked({FOLDER: str(folder)}, str(folder / "bin/python3"))
    assert not (tmp_path / "cache").exists()
