"""The reference of machine-agent: generated, and complete."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields
from fnmatch import fnmatch
from pathlib import Path

from agent import cli, reference
from agent.layout import PROGRAMS, Layout
from agent.supervise.units import files_of
from tools.gen_agent_reference import PAGE, page

ROOT = Path(__file__).parents[3]
TEXT = PAGE.read_text("utf-8")
NOT_VARIABLES = {"MACHINE_API_KEY"}


def test_the_page_is_current() -> None:
    assert page() == TEXT, "run make generate"


def test_every_option_is_on_the_page() -> None:
    for option in cli.command.params:
        for name in option.opts:
            assert f"`{name}`" in TEXT


def test_every_variable_in_the_source_is_in_the_table() -> None:
    pattern = re.compile(r"\b(?:MACHINE|VIAM|XDG|NOTIFY|WATCHDOG)_[A-Z][A-Z_]+\b(?!\*)")
    files = [file for file in (ROOT / "agent").rglob("*") if file.suffix in (".py", "") and file.is_file()]
    assert len(files) > 50
    names = {
        name
        for file in files
        if file.name != "reference.py"
        for line in file.read_text("utf-8", "replace").splitlines()
        if any(mark in line for mark in ('"', "'", "$", "export"))
        for name in pattern.findall(line)
    }
    assert names - {variable.name for variable in reference.VARIABLES} <= NOT_VARIABLES
    assert {variable.name for variable in reference.VARIABLES} - names == {"TZ"}


def _paths() -> Iterator[Path]:
    layout = Layout()
    for name, value in vars(Layout).items():
        if (
            isinstance(value, property)
            and name != "folders"
            and name not in ("state", "home", "trust", "queue", "downloads")
        ):
            yield getattr(layout, name)
    yield from files_of(layout)
    for program in PROGRAMS:
        yield layout.record(program)
        yield layout.release(program, "0" * 64)
        yield layout.launch(program) / "run"
    assert {field.name for field in fields(Layout)} == {"root", "run"}


def test_every_file_of_the_layout_is_in_the_table() -> None:
    for path in _paths():
        name = f"{path}/x" if path == Layout().leases else str(path)
        assert any(fnmatch(name, file.path) for file in reference.FILES), name


def test_exit_codes_are_those_of_the_program() -> None:
    codes = {value for name, value in vars(cli).items() if name.startswith("EXIT_")}
    launcher = {
        int(code) for code in re.findall(r"^ *exit (\d+)", (ROOT / "agent/launch/machine-launch").read_text(), re.M)
    }
    assert codes | launcher == reference.EXIT_CODES.keys()
