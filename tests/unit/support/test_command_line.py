"""Paths on command lines mean the folder in which the program was started, also in child programs."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from agent import cli as agent
from cloud.server import cli as cloud
from runtime.server import cli as server
from support.command_line import AbsolutePath, ProgramPath

SERVICES = {"machine-agent": agent.command, "machine-cloud": cloud.command, "machine-server": server.command}
NOT_HERE = {"--ray-python"}  # a program on the nodes of a cluster


@pytest.mark.parametrize("name", SERVICES)
def test_every_path_on_the_command_line_of_a_service_is_made_absolute(name: str) -> None:
    paths = {
        parameter.opts[0]: parameter.type
        for parameter in _parameters(SERVICES[name])
        if isinstance(parameter.type, click.Path) or {"FILE", "DIR", "DIRECTORY", "PROGRAM"} & {parameter.metavar}
    }
    assert len(paths) > 3
    assert [option for option, kind in paths.items() if not isinstance(kind, AbsolutePath | ProgramPath)] == sorted(
        NOT_HERE & paths.keys()
    )


def _parameters(command: click.Command) -> list[click.Parameter]:
    context = click.Context(command)
    names = command.list_commands(context) if isinstance(command, click.Group) else []
    inner = [command.get_command(context, name) for name in names] if isinstance(command, click.Group) else []
    return [*command.params, *(parameter for each in inner if each is not None for parameter in _parameters(each))]


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (AbsolutePath(), "a/../b", "{cwd}/a/../b"),  # links are not resolved, because they may change
        (AbsolutePath(), "/x", "/x"),
        (ProgramPath(), "python3", "python3"),
        (ProgramPath(), ".venv/bin/python", "{cwd}/.venv/bin/python"),
        (ProgramPath(), "", ""),
    ],
)
def test_values(
    kind: click.ParamType, value: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    @click.command()
    @click.option("--path", type=kind)
    def show(path: object) -> None:
        click.echo(path)

    result = CliRunner().invoke(show, ["--path", value])
    assert result.output.strip() == expected.format(cwd=tmp_path)


def test_the_default_is_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    context = cloud.command.make_context("machine-cloud", ["organization", "--help"], resilient_parsing=True)
    assert context.params["data"] == tmp_path / "machine-cloud"
