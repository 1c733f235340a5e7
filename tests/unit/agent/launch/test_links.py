"""What the launcher starts, as links in a folder."""

from __future__ import annotations

import json
import stat
import sys
from pathlib import Path

import pytest

from agent.launch.links import MAX_STARTS, SCRIPT, Launch, install_launcher, point, read
from agent.layout import SERVER, Layout
from schema.errors import MachineError
from support.files.durable import read_link

PROGRAM = "#!/bin/sh\n" if sys.platform != "win32" else json.dumps([sys.executable, "-c", "pass"])
A, B, C = "a" * 64, "b" * 64, "c" * 64


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    layout = Layout(tmp_path / "opt", tmp_path / "run")
    for sha256 in (A, B, C):
        stage(layout, sha256)
    return layout


def stage(layout: Layout, sha256: str) -> None:
    folder = layout.release(SERVER, sha256)
    folder.mkdir(parents=True)
    (folder / "run").write_text(PROGRAM)
    (folder / "run").chmod(0o755)


def test_a_new_installation_starts_nothing(layout: Layout) -> None:
    assert read(layout, SERVER) == Launch(None, None, False, 0)


def test_links_are_relative_so_that_an_image_can_be_prepared_elsewhere(layout: Layout) -> None:
    point(layout, SERVER, run=A, back=B, trial=False)
    assert read_link(layout.launch(SERVER) / "run") == f"../../releases/{SERVER}/{A}"
    assert read(layout, SERVER) == Launch(A, B, False, 0)


def test_a_trial_begins_with_no_start_and_ends_when_it_is_confirmed(layout: Layout) -> None:
    point(layout, SERVER, run=A, back=None, trial=False)
    point(layout, SERVER, run=B, back=A, trial=True)
    assert read(layout, SERVER) == Launch(B, A, True, 0)
    point(layout, SERVER, run=B, back=A, trial=False)
    assert read(layout, SERVER) == Launch(B, A, False, 0)
    assert sorted(path.name for path in layout.launch(SERVER).iterdir()) == ["back", "run"]


def test_a_repeated_switch_keeps_the_count_so_that_a_release_that_stops_the_machine_ends(layout: Layout) -> None:
    point(layout, SERVER, run=B, back=A, trial=True)
    (layout.launch(SERVER) / "trial").write_text("2\n")
    point(layout, SERVER, run=B, back=A, trial=True)
    assert read(layout, SERVER).starts == 2
    point(layout, SERVER, run=C, back=A, trial=True)
    assert read(layout, SERVER) == Launch(C, A, True, 0)


@pytest.mark.parametrize(("text", "starts"), [("3\n", 3), ("4\n", 4), ("", 3), ("-1", 3), ("12", 3), ("\xff", 3)])
def test_the_count_of_the_launcher(layout: Layout, text: str, starts: int) -> None:
    point(layout, SERVER, run=B, back=A, trial=True)
    (layout.launch(SERVER) / "trial").write_text(text, "latin-1")
    launch = read(layout, SERVER)
    assert (launch.starts, launch.fell_back) == (starts, starts > MAX_STARTS)


def test_a_release_that_cannot_be_executed_is_not_linked(layout: Layout) -> None:
    point(layout, SERVER, run=A, back=None, trial=False)
    if sys.platform == "win32":
        (layout.release(SERVER, B) / "run").write_text('["nothing.exe"]')
    else:
        (layout.release(SERVER, B) / "run").chmod(0o644)
    with pytest.raises(MachineError, match="not an executable file"):
        point(layout, SERVER, run=B, back=A, trial=True)
    assert read(layout, SERVER) == Launch(A, None, False, 0)
    point(layout, SERVER, run=A, back=B, trial=False)
    assert read(layout, SERVER).back is None


def test_a_hash_that_leads_out_of_the_folder_is_refused(layout: Layout) -> None:
    with pytest.raises(ValueError, match="not a SHA-256"):
        point(layout, SERVER, run="../" + A, back=None, trial=False)


def test_a_link_to_a_deleted_release_is_not_a_release(layout: Layout) -> None:
    point(layout, SERVER, run=A, back=B, trial=False)
    (layout.release(SERVER, A) / "run").unlink()
    assert read(layout, SERVER) == Launch(None, B, False, 0)


def test_the_launcher_is_written_only_if_it_differs(layout: Layout) -> None:
    assert install_launcher(layout)
    assert not install_launcher(layout)
    assert layout.launcher.read_bytes() == SCRIPT.read_bytes()
    assert sys.platform == "win32" or stat.S_IMODE(layout.launcher.stat().st_mode) == 0o755
    layout.launcher.write_text("#!/bin/sh\n")
    assert install_launcher(layout)
    assert layout.launcher.read_bytes() == SCRIPT.read_bytes()
