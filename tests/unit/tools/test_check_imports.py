"""The check of imported names, on small files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.check_imports import missing

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
