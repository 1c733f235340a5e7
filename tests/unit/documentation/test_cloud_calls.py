"""docs/design/cloud-calls.md: the page lists exactly the JSON routes of the cloud, with their commands and methods."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from cloud.services.configurations.editing import Editor
from cloud.services.organizations.people import Invitations
from cloud.services.triggers import TriggerService
from cloud.web.permissions import ROUTES
from command.cli import main

PAGE = Path(__file__).parents[3] / "docs" / "design" / "cloud-calls.md"
CODE = re.compile(r"`([^`]+)`")
CLASSES = {cls.__name__: cls for cls in (Editor, TriggerService, Invitations)}


def rows(heading: str) -> list[list[list[str]]]:
    """Return the names in code style in each cell of the table below a heading."""
    section = PAGE.read_text().partition(f"## {heading}\n")[2].partition("\n## ")[0]
    return [
        [CODE.findall(cell) for cell in line.strip("|").split("|")] for line in section.splitlines() if "| `" in line
    ]


JSON, HTTP = rows("JSON routes"), rows("Paths that stay HTTP")


def test_the_page_lists_exactly_the_json_routes() -> None:
    listed = sorted(route for cells in JSON for route in cells[0])
    assert listed == sorted(route for route in ROUTES if " /api/v1/" in route)


def test_the_paths_that_stay_http_exist() -> None:
    listed = [route for cells in HTTP for route in cells[0]]
    assert len(listed) > 7
    assert not [route for route in listed if route not in ROUTES]


@pytest.mark.parametrize("cells", JSON, ids=lambda cells: cells[0][0])
def test_the_commands_and_the_method_of_a_route_exist(cells: list[list[str]]) -> None:
    _, commands, (method,) = cells
    assert commands
    for words in commands:
        command: click.Command = main
        for word in ("cloud", *words.split()):
            assert isinstance(command, click.Group)
            entry = command.get_command(click.Context(command), word)
            assert entry is not None, words
            command = entry
    owner, _, name = method.partition(".")
    assert callable(getattr(CLASSES[owner], name))
