"""Times in tables are local times, which `--since` and `--until` read."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import click
import pytest

from command.cloud.times import local
from command.recordings.data import MOMENT

ROOT = Path(__file__).resolve().parents[3]
OTHER = {"command/cloud/times.py", "command/agent/group.py", "command/agent/lease.py", "command/agent/show.py"}
"""Files that format times on their own, with the name of the zone."""


@pytest.fixture(params=["America/New_York", "UTC", "Asia/Kolkata"])
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("zone")
def test_a_printed_time_can_be_entered() -> None:
    moment = datetime(2026, 7, 1, 12, 30, 5, tzinfo=UTC)
    assert MOMENT.convert(local(moment), None, click.Context(click.Command("x"))) == moment
    assert local(moment.timestamp()) == local(moment)


def test_no_other_code_formats_times() -> None:
    files = [file for file in (ROOT / "command").rglob("*.py") if re.search(r":%Y|strftime", file.read_text())]
    assert {str(file.relative_to(ROOT)) for file in files} == OTHER
