"""The check of imported names, on small files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.check_imports import foreign_rooms, missing

DEFINED = """
import os
if os.name == "posix":
    from a import given as other
NUMBER: int = 1
first, second = 1, 2
def function(argument): local = 1
class Class: inner = 1
with open("x") as file: pass
"""


@pytest.mark.parametrize("name", ["os", "other", "NUMBER", "first", "second", "function", "Class", "file", "below"])
def test_names_that_exist(tmp_path: Path, name: str) -> None:
    assert problems(tmp_path, name) == []


@pytest.mark.parametrize("name", ["given", "argument", "local", "inner", "posix"])
def test_names_that_do_not_exist(tmp_path: Path, name: str) -> None:
    assert problems(tmp_path, name) == [f"user.py:1: module has no {name}"]


def problems(folder: Path, name: str) -> list[str]:
    path = folder / "module.py"
    path.write_text(DEFINED)
    modules = {"module": path, "module.below": folder / "below.py"}
    return list(missing(Path("user.py"), f"from module import {name}", modules))


@pytest.mark.parametrize(
    ("file", "text", "room"),
    [
        ("tests/unit/agent/test_x.py", "from tests.e2e.agent import support", "e2e"),
        ("tests/unit/agent/test_x.py", "from tests.hil.rig.wave import RISES", "hil"),
        ("tests/unit/agent/test_x.py", "def work():\n    from tests import sim", "sim"),
        ("tests/unit/hil/test_x.py", "from tests.netns import lan", "netns"),
        ("tests/helpers/blobs.py", "from tests.unit.cloud import captured", "unit"),
        ("tests/unit/agent/test_x.py", "from tests.unit.agent import other", ""),
        ("tests/unit/hil/test_x.py", "from tests.hil.rig.wave import RISES", ""),
        ("tests/unit/agent/test_x.py", "from tests.helpers import blobs\nfrom e2e import x", ""),
        ("tests/e2e/agent/test_x.py", "from tests.unit.agent import other", ""),
    ],
)
def test_rooms_that_a_file_may_import(file: str, text: str, room: str) -> None:
    problems = list(foreign_rooms(Path(file), text))
    assert [f"tests/{room}:" in problem for problem in problems] == [True] * bool(room)
