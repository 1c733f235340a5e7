"""Options for the requirements of training scripts: what is refused, without repeating a password."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from cloud.server.cli import command

PYTHON = "--training-python=python3"


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--training-index=https://index.example/simple"], "--training-index requires --training-python"),
        ([PYTHON, "--training-index=index.example"], "must be a URL https://..., http://... or file:///..."),
        ([PYTHON, "--training-index=ftp://index.example"], "must be a URL"),
        ([PYTHON, "--training-index=https:///simple"], "must be a URL"),
        ([PYTHON, "--training-index=https://user:secret@host/simple"], "use --training-netrc FILE"),
        ([PYTHON, "--training-index=https://secret@host/simple"], "use --training-netrc FILE"),
        ([PYTHON, "--training-index=https://host/simple?token=secret"], "use --training-netrc FILE"),
        (["--training-netrc=/no/file"], "does not exist"),
        (["--training-environments=1"], "--training-environments"),
    ],
)
def test_refusals(options: list[str], reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cloud.server.app.main", lambda _: 0)  # if an option is accepted
    result = CliRunner().invoke(command, options)
    assert result.exit_code == 2
    assert reason in " ".join(result.output.split())
    assert "secret" not in result.output
