"""The options of `machine agent lease`, without an agent."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from command.agent.group import agent


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("take", "flash"), "Missing option '--for'"),
        (("take", "flash", "--for", "soon"), "'soon' is not a time"),
        (("take", "--for", "10m"), "Missing argument 'NAME'"),
        (("release",), "Missing argument 'NAME'"),
    ],
)
def test_wrong_options_are_refused_before_the_agent_is_asked(options: tuple[str, ...], text: str) -> None:
    result = CliRunner().invoke(agent, ["lease", *options])
    assert result.exit_code == 2
    assert text in result.output


@pytest.mark.parametrize("options", [("take", "flash", "--for", "90s"), ("release", "flash"), ("ls",)])
def test_without_an_agent_the_exit_code_says_so(options: tuple[str, ...]) -> None:
    result = CliRunner().invoke(agent, ["--root", "/nonexistent", "lease", *options])
    assert result.exit_code == 3
    assert "systemctl start machine-agent" in result.output
