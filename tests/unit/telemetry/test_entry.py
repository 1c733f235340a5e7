"""Log lines for people and for programs."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from telemetry.logs.entry import Entry, fields_json, format_line, plain, timestamp


def entry(**changes: Any) -> Entry:
    values = {"seq": 1, "time": 0.0, "level": 20, "logger": "rdk", "caller": "a/b.py:1", "message": "hi"} | changes
    return Entry(**values)


def test_line_is_tab_separated() -> None:
    line = format_line(entry(level=30, fields={"a": 1, "b": ["x"]}))
    assert line == '1970-01-01T00:00:00.000Z\tWARN\trdk\ta/b.py:1\thi\t{"a":1,"b":["x"]}'


def test_no_fields_no_last_column() -> None:
    assert format_line(entry()).endswith("\thi")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (1136214245.0, "2006-01-02T15:04:05.000Z"),
        (1136214245.1239, "2006-01-02T15:04:05.124Z"),
        (1136214245.9999, "2006-01-02T15:04:06.000Z"),
    ],
)
def test_timestamp(seconds: float, text: str) -> None:
    assert timestamp(seconds) == text


@pytest.mark.parametrize(
    ("level", "name"),
    [(5, "DEBUG"), (10, "DEBUG"), (20, "INFO"), (25, "INFO"), (30, "WARN"), (40, "ERROR"), (50, "ERROR")],
)
def test_level_names(level: int, name: str) -> None:
    assert entry(level=level).level_name == name


def test_colour_only_on_request() -> None:
    assert "\x1b" not in format_line(entry(level=40))
    assert "\x1b[31mERROR\x1b[0m" in format_line(entry(level=40), colour=True)


def test_a_message_cannot_forge_a_line_or_control_a_terminal() -> None:
    line = format_line(entry(message="x\n2006-01-02\tINFO\x1b[2J\r\x07", trace="Traceback\n  deep\n"))
    assert all(part.startswith("\t") for part in line.split("\n")[1:])
    assert "\x1b" not in line
    assert "\r" not in line
    assert r"\x1b[2J" in line


@given(st.text(), st.dictionaries(st.text(), st.one_of(st.text(), st.floats(), st.integers(), st.binary())))
def test_any_text_makes_a_line(message: str, fields: dict[str, Any]) -> None:
    safe = plain(fields)
    line = format_line(entry(message=message, fields=safe))
    line.encode()
    assert not re.search(r"\n[^\t]", line)
    json.loads(fields_json(safe))


def test_lone_surrogates_are_written_escaped() -> None:
    line = format_line(entry(message="a\ud800b", fields=plain({"k": "\udfff"})))
    assert "a\\ud800b" in line
    assert "\\udfff" in line


def test_plain_copies() -> None:
    inner = [1]
    copy = plain({"a": inner, 2: {3: object}})  # type: ignore[dict-item]
    inner.append(2)
    assert copy == {"a": [1], "2": {"3": str(object)}}
