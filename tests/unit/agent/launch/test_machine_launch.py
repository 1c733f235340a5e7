"""The launcher for Windows, on every system: what it starts, and how it counts."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.launch import machine_launch
from agent.launch.links import Launch, point, read
from agent.layout import AGENT, SERVER, Layout
from support.files.durable import replace_link

A, B, C = "a" * 64, "b" * 64, "c" * 64
SAY = (
    "import os, sys; print(os.environ['MACHINE_RELEASE'][0], os.environ.get('MACHINE_LAUNCH_FELL_BACK'), *sys.argv[1:])"
)


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    layout = Layout(tmp_path / "opt with space", tmp_path / "run")
    for sha256 in (A, B, C):
        stage(layout, sha256, [sys.executable, "-c", SAY])
    return layout


def stage(layout: Layout, sha256: str, words: object, program: str = SERVER) -> None:
    folder = layout.release(program, sha256)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "run").write_text(json.dumps(words))
    (folder / "run").chmod(0o755)


def launch(layout: Layout, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "MACHINE_ROOT": str(layout.root), **variables}
    command = [sys.executable, machine_launch.__file__, *arguments]
    return subprocess.run(command, env=environment, input="", capture_output=True, text=True, timeout=60)


def next_start(layout: Layout) -> str:
    """Count a start; return the first letter of the release, and `1` if it is started instead of `run`."""
    start = next(machine_launch.starts(layout.root, SERVER))
    return start.folder.name[0] + ("1" if start.fell_back else "")


def test_the_program_gets_its_arguments_and_its_status_is_returned(layout: Layout) -> None:
    point(layout, SERVER, run=A, back=None, trial=False)
    done = launch(layout, SERVER, "-config", "a b", "*", "", MACHINE_LAUNCH_FELL_BACK="1")
    assert done.stdout.split() == ["a", "None", "-config", "a", "b", "*"], done.stderr
    stage(layout, A, [sys.executable, "-c", "raise SystemExit(7)"])
    assert launch(layout, SERVER).returncode == 7


def test_a_trial_has_three_starts_before_the_rollback(layout: Layout) -> None:
    point(layout, SERVER, run=B, back=A, trial=True)
    assert [next_start(layout) for _ in range(5)] == ["b", "b", "b", "a1", "a1"]
    assert read(layout, SERVER) == Launch(B, A, True, 4)


def test_without_a_trial_nothing_is_counted(layout: Layout) -> None:
    point(layout, SERVER, run=B, back=A, trial=False)
    assert [next_start(layout) for _ in range(5)] == ["b"] * 5
    assert not (layout.launch(SERVER) / "trial").exists()


@pytest.mark.parametrize("text", ["", "x", "10", "-1", "08", "3", "4"])
def test_a_count_of_three_or_more_rolls_back(layout: Layout, text: str) -> None:
    point(layout, SERVER, run=B, back=A, trial=True)
    (layout.launch(SERVER) / "trial").write_text(text)
    assert next_start(layout) == "a1"


def test_a_start_that_cannot_be_counted_rolls_back(layout: Layout) -> None:
    point(layout, SERVER, run=B, back=A, trial=True)
    (layout.launch(SERVER) / "trial.part").mkdir()
    assert next_start(layout) == "a1"


BREAK: dict[str, Callable[[Layout], object]] = {
    "no link": lambda layout: (layout.launch(SERVER) / "run").unlink(),
    "dangling link": lambda layout: shutil.rmtree(layout.release(SERVER, B)),
    "no program": lambda layout: (layout.release(SERVER, B) / "run").unlink(),
    "a folder as program": lambda layout: (
        (layout.release(SERVER, B) / "run").unlink(), (layout.release(SERVER, B) / "run").mkdir()),
    "empty": lambda layout: (layout.release(SERVER, B) / "run").write_text(""),
    "no words": lambda layout: stage(layout, B, []),
    "a number": lambda layout: stage(layout, B, [1]),
    "nested": lambda layout: (layout.release(SERVER, B) / "run").write_text("[" * 4000),
    "interpreter is missing": lambda layout: stage(layout, B, ["python/python.exe"]),
    "a folder as interpreter": lambda layout: (
        stage(layout, B, ["folder"]), (layout.release(SERVER, B) / "folder" / "x").mkdir(parents=True)),
    "not an interpreter": lambda layout: (
        stage(layout, B, ["text"]), (layout.release(SERVER, B) / "text").write_text("text")),
}  # fmt: skip


@pytest.mark.parametrize("damage", BREAK)
def test_a_release_that_cannot_be_started_rolls_back(layout: Layout, damage: str) -> None:
    point(layout, SERVER, run=B, back=A, trial=False)
    BREAK[damage](layout)
    done = launch(layout, SERVER, "x", "y z")
    assert done.stdout.strip() == "a 1 x y z", done.stderr


def test_the_factory_release_is_the_last_resort(layout: Layout) -> None:
    point(layout, SERVER, run=B, back=A, trial=False)
    replace_link(layout.releases(SERVER) / "factory", C)
    for sha256 in (A, B):
        shutil.rmtree(layout.release(SERVER, sha256))
    assert next_start(layout) == "c1"
    shutil.rmtree(layout.release(SERVER, C))
    done = launch(layout, SERVER)
    assert (done.returncode, "nothing to start" in done.stderr) == (machine_launch.NOTHING_TO_START, True)


@pytest.mark.parametrize("name", ["", "..", "../x", "a/b", "a\\b", "-x", ".hidden"])
def test_names_of_programs_cannot_lead_elsewhere(layout: Layout, name: str) -> None:
    assert launch(layout, name).returncode == machine_launch.WRONG_USAGE


def test_only_a_trial_that_still_runs_is_ended(layout: Layout) -> None:
    for sha256 in (A, B):
        stage(layout, sha256, [sys.executable], AGENT)
    point(layout, AGENT, run=B, back=A, trial=True)
    first = next(machine_launch.starts(layout.root, AGENT))
    assert machine_launch.end_trial(layout.root, AGENT, first)
    second = next(machine_launch.starts(layout.root, AGENT))
    assert (second.folder.name, second.fell_back) == (A, True)
    assert not machine_launch.end_trial(layout.root, AGENT, second)
    point(layout, AGENT, run=B, back=A, trial=False)
    assert not machine_launch.end_trial(layout.root, AGENT, next(machine_launch.starts(layout.root, AGENT)))


def test_the_last_resort_is_not_ended_although_it_is_the_release_on_trial(layout: Layout) -> None:
    point(layout, SERVER, run=B, back=None, trial=True)
    replace_link(layout.releases(SERVER) / "factory", B)
    (layout.launch(SERVER) / "trial").write_text("3")
    start = next(machine_launch.starts(layout.root, SERVER))
    assert (start.folder.name, start.fell_back) == (B, True)
    assert not machine_launch.end_trial(layout.root, SERVER, start)


@pytest.mark.parametrize("kind", ["folder", "empty"])
def test_a_command_needs_a_file_with_content(layout: Layout, kind: str) -> None:
    folder = layout.release(SERVER, B)
    stage(layout, B, ["program"])
    if kind == "folder":
        (folder / "program" / "x").mkdir(parents=True)
    else:
        (folder / "program").touch()
    assert machine_launch.command_of(folder) is None
