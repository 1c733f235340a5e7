"""docs/design/where-things-go.md: everything that the page names exists, and no task needs many packages."""

from __future__ import annotations

import configparser
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "design" / "where-things-go.md"
CODE = re.compile(r"`([^`]+)`")
PATH = re.compile(r"[\w.-]+(/[\w.-]+)*(/|\.(?:py|md|json|toml))")
NAME = re.compile(r"[A-Z]\w+(\.\w+)*|_\w+")
REASON = "Three packages: "


def steps() -> Iterator[str]:
    """Return the steps of all rows of the tables."""
    for line in PAGE.read_text().splitlines():
        if line.startswith("| "):
            for cell in line.strip("|").split(" | "):
                yield from cell.split("<br>")


def paths(step: str) -> list[str]:
    """Return the files and folders that a step names, also within a command."""
    words = (word for code in CODE.findall(step) for word in code.split())
    return [word for word in words if PATH.fullmatch(word)]


STEPS = [step for step in steps() if paths(step)]


@pytest.mark.parametrize("step", STEPS)
def test_the_files_exist(step: str) -> None:
    assert not [path for path in paths(step) if not (ROOT / path).exists()]


@pytest.mark.parametrize("step", [step for step in STEPS if any(map(NAME.fullmatch, CODE.findall(step)))])
def test_the_names_are_in_one_of_the_files(step: str) -> None:
    """Check names such as `MODELS`, `_ORDER` or `MachineDocument.agent`."""
    files = [ROOT / path for path in paths(step) if path.endswith(".py")]
    text = "".join(file.read_text() for file in files)
    for name in filter(NAME.fullmatch, CODE.findall(step)):
        if files:
            assert re.search(rf"\b{name.rpartition('.')[2]}\b", text), name


def test_the_page_has_steps() -> None:
    assert len(STEPS) > 60


def tasks() -> Iterator[tuple[str, str]]:
    """Return each task with the cell of its files."""
    for line in PAGE.read_text().partition("## Where it is decided")[0].splitlines():
        if line.startswith("| "):
            task, files = line.removeprefix("| ").split(" | ")[:2]
            yield task, files


def packages(files: str) -> set[str]:
    """Return the packages to which the files belong."""
    config = configparser.ConfigParser()
    config.read(ROOT / ".importlinter")
    return {path.partition("/")[0] for path in paths(files)} & {*config["importlinter"]["root_packages"].split()}


@pytest.mark.parametrize(("task", "files"), list(tasks()))
def test_a_task_needs_at_most_two_packages_or_gives_the_reason(task: str, files: str) -> None:
    assert (len(packages(files)) > 2) == (REASON in files), sorted(packages(files))


def test_packages_are_recognized() -> None:
    assert packages("1. `hal/boards/`<br>2. `runtime/`: `X`<br>3. `tests/hil/`, `tools/check.py`") == {
        "hal",
        "runtime",
    }
    assert len({package for _, files in tasks() for package in packages(files)}) > 7
