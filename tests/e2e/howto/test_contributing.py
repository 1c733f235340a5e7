"""The pages that show how to extend the project: their steps, applied to a copy, pass the commands at their end."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGES = sorted(path for path in (ROOT / "docs" / "howto").glob("add-a*.md"))
STEP = re.compile(
    r"^(?:In `(?P<path>[^`]+)`, (?P<how>after|instead of) `+(?P<anchor>.+?)`+|`(?P<new>[^`]+)` \(new\)):\n\n"
    r"```(?P<language>\w+)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
COMMAND = re.compile(r"^(?:\.venv/bin/python (.+)|make generate)$", re.MULTILINE)
GENERATE = "-m tools.generate"
LEFT_OUT = shutil.ignore_patterns(".*", "__pycache__", "_build", "build", "node_modules", "artifacts")


def apply(step: re.Match[str], root: Path) -> None:
    """Carry out one step of a page below `root`."""
    if step["new"]:
        file = root / step["new"]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(step["text"])
        return
    file = root / step["path"]
    lines = file.read_text().splitlines(keepends=True)
    places = [number for number, line in enumerate(lines) if step["anchor"] in line]
    assert len(places) == 1, f"{step['path']}: {step['anchor']!r} is in {len(places)} lines"
    first = places[0] + (step["how"] == "after")
    lines[first : places[0] + 1] = [step["text"]]
    file.write_text("".join(lines))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_steps_work(page: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(ROOT, copy, ignore=LEFT_OUT)
    steps, commands = list(STEP.finditer(page.read_text())), COMMAND.findall(page.read_text())
    assert steps
    assert commands
    for step in steps:
        apply(step, copy)
    for command in commands:
        done = subprocess.run(
            [sys.executable, *shlex.split(command or GENERATE)], cwd=copy, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{command or GENERATE}\n{done.stdout[-4000:]}\n{done.stderr[-2000:]}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_all_code_on_the_page_is_in_steps(page: Path) -> None:
    text = page.read_text()
    assert text.count("\n```python\n") == sum(step["language"] == "python" for step in STEP.finditer(text))
