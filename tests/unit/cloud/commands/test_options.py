"""Errors of machine-cloud for its file options."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner

from cloud.commands.options import Options
from cloud.server.cli import command


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--files", "s3://"], "s3://my-bucket/cloud"),
        (["--files", "s3://id:hush@bucket"], "AWS_SECRET_ACCESS_KEY"),
        (["--files", "s3://bucket", "--s3-endpoint", "127.0.0.1:1"], "https://minio.example:9000"),
        (["--files", "s3://bucket", "--s3-region", "a b"], "--s3-region"),
        (["--files", "s3://bucket", "--s3-addressing", "ip"], "--s3-addressing"),
        (["--files", "s3://bucket", "files", "copy"], "--to"),
        (["--files", "s3://bucket", "files", "copy", "--to", "s3://bucket/"], "set --to to another location"),
        (["--replica-address", "replica-1:8090"], "https://replica-1.cloud.example:8090"),
        (["--replica-address", "https://replica-1/path"], "https://replica-1.cloud.example:8090"),
        (
            ["--data", "nowhere", "files", "copy", "--to", "s3://bucket/"],
            f"no folder {Path('nowhere/files').absolute()}",
        ),
    ],
)
def test_incompatible_options_are_usage_errors(words: list[str], said: str) -> None:
    done = CliRunner().invoke(command, words)
    assert done.exit_code == 2
    assert said in done.output
    assert "hush" not in done.output


def test_a_copy_needs_credentials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID", raising=False)
    (tmp_path / "files").mkdir()
    done = CliRunner().invoke(command, ["--data", str(tmp_path), "files", "copy", "--to", "s3://bucket"])
    assert done.exit_code == 1
    assert "set AWS_ACCESS_KEY_ID" in done.output


def test_help_names_the_store() -> None:
    done = CliRunner().invoke(command, ["--help"])
    assert done.exit_code == 0
    for word in ("s3://BUCKET/PREFIX", "--s3-endpoint", "--s3-region", "--s3-credentials", "--s3-addressing", "files"):
        assert word in done.output


def test_sealing_needs_a_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cloud.server.cli.find_spec", lambda name: None)
    done = CliRunner().invoke(command, ["--seal-after", "24"])
    assert done.exit_code == 2
    assert "install the extra `data`" in done.output


@pytest.mark.parametrize(
    ("words", "installed", "hours"),
    [
        ([], True, 24),
        ([], False, None),
        (["--database", "postgresql://u@h/n"], True, None),
        (["--seal-after", "never"], True, None),
        (["--seal-after", "never"], False, None),
        (["--seal-after", "48"], True, 48),
        (["--database", "postgresql://u@h/n", "--seal-after", "1"], True, 1),
    ],
)
def test_readings_of_a_day_ago_are_sealed_where_one_process_has_the_database(
    monkeypatch: pytest.MonkeyPatch, words: list[str], installed: bool, hours: int | None
) -> None:
    monkeypatch.setattr("cloud.server.cli.find_spec", lambda name: object() if installed else None)
    started = list[Options]()

    def start(options: Options) -> int:
        started.append(options)
        return 0

    monkeypatch.setattr("cloud.server.app.main", start)
    CliRunner().invoke(command, words)
    assert started[0].seal_after == (None if hours is None else timedelta(hours=hours))


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "x", "²", "9" * 30])
def test_odd_times_of_sealing_are_refused(text: str) -> None:
    done = CliRunner().invoke(command, ["--seal-after", text])
    assert done.exit_code == 2
    assert "neither a number of hours" in done.output
