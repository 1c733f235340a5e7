"""The command line of machine-agent: combinations of options, and what needs root."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from agent import cli
from agent.cli import EXIT_FAILED, EXIT_USAGE, command


@pytest.mark.parametrize(("line", "message"), [
    ("--install --uninstall", "--install and --uninstall exclude each other"),
    ("--install --preinstall /mnt", "--install and --preinstall exclude each other"),
    ("--install --dev-mode", "--dev-mode does not install anything"),
    ("--install --root /srv", "--install always uses /opt/machine"),
    ("--credentials file", "--credentials is only for --install and --preinstall"),
    ("--uninstall --server file", "--server is only for --install and --preinstall"),
    ("--agent file", "--agent is only for --install and --preinstall"),
    ("--uninstall --migrate", "--migrate is only for --install and --preinstall"),
    ("--install --keep-credentials", "--keep-credentials is only for --uninstall"),
])  # fmt: skip
def test_options_that_exclude_each_other_are_refused(line: str, message: str) -> None:
    result = CliRunner().invoke(command, line.split())
    assert result.exit_code == EXIT_USAGE
    assert message in result.output


@pytest.mark.parametrize("line", ["--install", "--uninstall", "--preinstall /mnt"])
def test_installing_needs_root(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    result = CliRunner().invoke(command, line.split())
    assert result.exit_code == EXIT_FAILED
    assert result.output.startswith("machine-agent: root is required: use sudo")


@pytest.mark.parametrize("line", ["", "--debug", "--root {folder}/opt"])
def test_root_without_systemd_is_refused_before_anything_is_made(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(cli, "SYSTEMD", tmp_path / "systemd")
    result = CliRunner().invoke(command, line.format(folder=tmp_path).split())
    assert result.exit_code == EXIT_FAILED
    assert "systemd is not the init process of this system: run `machine-agent --dev-mode`" in result.output
    assert not list(tmp_path.iterdir())
