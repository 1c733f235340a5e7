"""Options of the connection may precede the command."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from command.cli import main


@pytest.mark.parametrize(
    "arguments",
    [
        ["--address", "127.0.0.1:1", "status"],
        ["--address=127.0.0.1:1", "status"],
        ["--json", "--address", "127.0.0.1:1", "status"],
        ["--api-key-id", "i", "--api-key", "k", "--address", "127.0.0.1:1", "status"],
        ["--address", "127.0.0.1:1", "call", "motor", "stop"],
    ],
)
def test_global_options_are_accepted_before_the_command(arguments: list[str]) -> None:
    result = CliRunner().invoke(main, arguments)
    assert "No such" not in result.output
    assert "127.0.0.1:1" in result.output
    assert result.exit_code == 3


def test_machine_options_are_refused_for_cloud_commands() -> None:
    result = CliRunner().invoke(main, ["--address", "127.0.0.1:1", "cloud", "machines"])
    assert result.exit_code == 2
    assert "--address" in result.output


@pytest.mark.parametrize("arguments", [["--address"], ["--address", "x"], ["--nix", "status"]])
def test_invalid_global_options_are_usage_errors(arguments: list[str]) -> None:
    assert CliRunner().invoke(main, arguments).exit_code == 2
