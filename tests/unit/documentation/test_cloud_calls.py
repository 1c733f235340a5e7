"""docs/design/cloud-calls.md lists exactly the calls that are not published, with their commands and methods."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from cloud.services.common.base import Service
from cloud.services.target import SERVICES
from cloud.web.permissions import ROUTES
from command.cli import main
from rpc.api import cloud_v1

PAGE = Path(__file__).parents[3] / "docs" / "design" / "cloud-calls.md"
CODE = re.compile(r"`([^`]+)`")
SERVICE_CLASSES: list[type[Service]] = [*SERVICES.values()]
CLASSES = {cls.__name__: cls for cls in SERVICE_CLASSES}

OF_AGENTS = ["AgentService.ReportAgent", "AgentService.WaitForAgentRequests"]


def rows(heading: str) -> list[list[list[str]]]:
    """Return the names in code style in each cell of the table below a heading."""
    section = PAGE.read_text().partition(f"## {heading}\n")[2].partition("\n## ")[0]
    return [
        [CODE.findall(cell) for cell in line.strip("|").split("|")] for line in section.splitlines() if "| `" in line
    ]


CALLS, HTTP = rows("The package machine.cloud.v1"), rows("Paths that stay HTTP")


def test_the_page_lists_exactly_the_calls_of_the_package() -> None:
    listed = sorted(call for cells in CALLS for call in cells[0])
    names = [(service.rpartition(".")[2], methods) for service, methods in cloud_v1.SERVICES.items()]
    assert listed == sorted(f"{service}.{method}" for service, methods in names for method in methods)


def test_the_page_lists_all_paths_for_programs_and_no_others() -> None:
    listed = {route for cells in HTTP for route in cells[0]}
    assert not [route for route in listed if route not in ROUTES]
    assert {route for route in ROUTES if " /api/" in route or " /machine/v1/" in route} <= listed


@pytest.mark.parametrize("cells", CALLS, ids=lambda cells: cells[0][0])
def test_the_commands_and_the_method_of_a_call_exist(cells: list[list[str]]) -> None:
    _, commands, (method,) = cells
    assert commands or cells[0][0] in OF_AGENTS
    for words in commands:
        command: click.Command = main
        for word in ("cloud", *words.split()):
            assert isinstance(command, click.Group)
            entry = command.get_command(click.Context(command), word)
            assert entry is not None, words
            command = entry
    owner, _, name = method.partition(".")
    assert callable(getattr(CLASSES[owner], name))
