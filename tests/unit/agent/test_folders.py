"""The agent's folders are created and repaired, and only one agent holds the lock."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from agent.folders import locked, prepare
from agent.layout import Layout
from schema.errors import MachineError


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return Layout(tmp_path / "opt", tmp_path / "run")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_all_folders_are_created(layout: Layout) -> None:
    assert prepare(layout) == ()
    assert all(folder.is_dir() for folder in layout.folders)
    assert [mode(folder) for folder in (layout.root, layout.state, layout.trust)] == [0o755, 0o700, 0o700]


def test_permissions_are_repaired_and_files_are_kept(layout: Layout) -> None:
    prepare(layout)
    (layout.state / "file").write_text("kept")
    layout.state.chmod(0o777)
    (layout.root / "bin").chmod(0)
    assert prepare(layout) == ()
    assert (mode(layout.state), mode(layout.root / "bin")) == (0o700, 0o755)
    assert (layout.state / "file").read_text() == "kept"


def test_a_mode_that_cannot_be_changed_is_reported_without_an_error(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare(layout)
    layout.queue.chmod(0o755)

    def refuse(path: Path, mode: int) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(Path, "chmod", refuse)
    (problem,) = prepare(layout)
    assert problem == f"{layout.queue} has mode 755, and changing that fails: Operation not permitted"


def test_a_file_in_the_place_of_a_folder_is_named(layout: Layout) -> None:
    layout.root.mkdir(parents=True)
    layout.state.write_text("")
    with pytest.raises(MachineError, match=f"{layout.state} is not a folder"):
        prepare(layout)


def test_a_folder_that_cannot_be_created_is_named() -> None:
    with pytest.raises(MachineError, match="cannot be created") as raised:
        prepare(Layout(Path("/proc/machine"), Path("/proc/machine")))
    assert "--root" in raised.value.remedy


def test_only_one_process_holds_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with locked(path):
        assert path.read_text() == f"{os.getpid()}\n"
        with pytest.raises(MachineError, match=f"process {os.getpid()}"), locked(path):
            pass
    with locked(path):
        pass


def test_the_lock_of_a_killed_process_is_free(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    program = (
        f"from agent.folders import locked; import os, pathlib\nwith locked(pathlib.Path({str(path)!r})): os._exit(9)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 9
    assert path.exists()
    with locked(path):
        pass


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "lock").symlink_to(tmp_path / "other")
    with pytest.raises(OSError, match="symbolic"), locked(tmp_path / "lock"):
        pass
    assert not (tmp_path / "other").exists()
