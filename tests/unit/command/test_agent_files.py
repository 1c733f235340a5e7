"""`machine agent check` and `bundle` with files at other places."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from agent.cli import command
from command.agent.group import agent


@pytest.mark.parametrize("name", ["check", "bundle"])
@pytest.mark.parametrize("option", ["config", "defaults"])
def test_the_files_are_by_default_those_of_the_agent(name: str, option: str) -> None:
    (own,) = (parameter for parameter in command.params if parameter.name == option)
    (same,) = (parameter for parameter in agent.commands[name].params if parameter.name == option)
    assert same.default == own.default
    assert set(same.opts) <= set(own.opts)


def test_the_bundle_contains_the_defaults_of_the_option_without_their_secrets(tmp_path: Path) -> None:
    defaults, archive = tmp_path / "defaults.json", tmp_path / "bundle.tar.gz"
    variables = {"TOKEN": "very-secret"}
    defaults.write_text(json.dumps({"advanced_settings": {"debug": True, "viam_server_env": variables}}))
    words = ["--root", str(tmp_path / "root"), "bundle", str(archive), "--defaults", str(defaults)]
    result = CliRunner().invoke(agent, [*words, "--config", str(tmp_path / "none.json")])
    assert result.exit_code == 0, result.output
    with tarfile.open(archive) as opened:
        file = opened.extractfile(f"bundle/files{defaults}")
        assert file is not None
        text = file.read().decode()
    assert '"debug": true' in text
    assert "very-secret" not in text
