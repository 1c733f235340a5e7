"""The line format of `machine logs`."""

from __future__ import annotations

import json
from datetime import UTC, timedelta, timezone
from typing import Any

import pytest

from command.connection import Connection
from command.machine.logs import line, show

ENTRY: dict[str, Any] = {
    "seq": 7,
    "time": "2026-03-01T12:00:00.123456Z",
    "level": "warn",
    "logger": "rdk.config",
    "caller": "uplink/files.py:90",
    "message": "two\nlines",
    "fields": {"path": "a.json", "why": "not there", "none": "", "count": 3, "list": [1, "x"]},
}


def test_an_entry_as_a_table_line() -> None:
    assert line(ENTRY, "table", zone=timezone(timedelta(hours=-5))) == (
        "2026-03-01 07:00:00.123  WARN   rdk.config  two\n  lines"
        '  path=a.json why="not there" none="" count=3 list=[1,"x"]'
    )


def test_the_level_is_colored() -> None:
    text = line({**ENTRY, "fields": {}}, "table", colour=True, zone=UTC)
    assert "  \x1b[33mWARN \x1b[0m  " in text
    assert text.endswith("lines")


def test_an_entry_as_json_and_as_its_message() -> None:
    assert json.loads(line(ENTRY, "json")) == ENTRY
    assert line(ENTRY, "quiet") == "two\n  lines"
    assert line({**ENTRY, "message": ""}, "quiet") == "(no message)"


@pytest.mark.parametrize("style", ["table", "quiet"])
def test_control_characters_are_removed_from_entries(style: str) -> None:
    sly = {**ENTRY, "message": "\x1b[2Jgone\r\x07", "logger": "a\x1bb", "fields": {"k\x1b": "\x1b]0;x\x07"}}
    assert "\x1b" not in line(sly, style)
    assert "\x07" not in line(sly, style)


def test_missed_entries_are_reported_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    show({"missed": 4}, "quiet", Connection("localhost:1"))
    show({"entries": [ENTRY, ENTRY]}, "quiet", Connection("localhost:1"))
    out, err = capsys.readouterr()
    assert out == "two\n  lines\n" * 2
    assert err == "(4 lines are missing here: they were logged faster than this command received them)\n"
