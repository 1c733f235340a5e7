"""The options of `machine agent hold`, without an agent."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from command.agent.group import agent


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ((), "give one of --for, --until and --release"),
        (("--for", "2d", "--release"), "give one of"),
        (("--for", "2d", "--until", "2999-01-01"), "give one of"),
        (("--for", "2 days"), "is not a time"),
        (("--for", "d"), "is not a time"),
        (("--until", "2020-01-01"), "2020-01-01 00:00 is in the past"),
        (("--until", "tomorrow"), "does not match the formats"),
    ],
)
def test_wrong_options_are_refused_before_the_agent_is_asked(options: tuple[str, ...], text: str) -> None:
    result = CliRunner().invoke(agent, ["hold", *options])
    assert result.exit_code == 2
    assert text in result.output


def test_without_an_agent_the_exit_code_says_so() -> None:
    result = CliRunner().invoke(agent, ["--root", "/nonexistent", "hold", "--for", "1h"])
    assert result.exit_code == 3
    assert "systemctl start machine-agent" in result.output
