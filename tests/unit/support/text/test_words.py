from __future__ import annotations

import json
import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import IntEnum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.text import words

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.binary()
    | st.datetimes()
    | st.timedeltas(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(values)
def test_every_value_becomes_strict_json(value: object) -> None:
    json.loads(json.dumps(words.plain(value), allow_nan=False))
    words.pretty(value)


@given(st.dictionaries(st.text(max_size=5), values, max_size=4))
def test_every_reading_becomes_rows_in_order(value: dict[str, object]) -> None:
    rows = words.readings(value)
    assert [key for key, _, _ in rows] == sorted(key for key, _, _ in rows)
    assert all(number is None or math.isfinite(number) or number - number != 0 for _, _, number in rows)


def test_readings_leave_out_the_marks_of_sdks() -> None:
    rows = words.readings({"speed": {"x": 1, "y": 0.5, "_type": "vector3"}})
    assert rows == [("speed.x", "1", 1.0), ("speed.y", "0.5", 0.5)]


@pytest.mark.parametrize("fields", [{"to": "a b", "part": 0.5, "rows": [1]}, '{"to": "a b", "part": 0.5, "rows": [1]}'])
def test_fields_of_a_log_entry_are_pairs(fields: dict[str, object] | str) -> None:
    assert words.pairs_text(fields) == "to=a b part=0.5 rows=[1]"
    assert words.pairs_text("") == ""


@given(st.text(max_size=60), st.integers(4, 60))
def test_shortened_text_fits_and_keeps_its_ends(text: str, limit: int) -> None:
    short = words.shorten(text, limit)
    assert len(short) <= limit
    assert short == text or (short[0] == text[0] and short[-1] == text[-1])


class Mode(IntEnum):
    FAST = 1


@dataclass
class Pose:
    x: float
    mode: Mode


def test_results_are_readable() -> None:
    assert words.plain(Pose(1.5, Mode.FAST)) == {"x": 1.5, "mode": "fast"}
    assert words.plain(b"ab") == "YWI="
    assert words.plain(b"x" * 5000) == "<5000 bytes>"
    assert words.plain(float("nan")) == "nan"
    assert words.plain(timedelta(seconds=1.5)) == 1.5
    assert "characters more" in words.pretty("x" * 300_000)


@pytest.mark.parametrize(
    ("value", "text"), [(24653740032.0, "24653740032"), (3.0, "3"), (0.1 + 0.2, "0.3"), (1e300, "1e+300"), (7, "7")]
)
def test_numbers(value: float, text: str) -> None:
    assert words.number(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(-5, "0 s"), (0, "0 s"), (59.9, "59 s"), (60, "1 min"), (7200, "2 h"), (200000, "2 d")]
)
def test_spans(seconds: float, text: str) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    assert words.ago(now - timedelta(seconds=seconds), now) == text


def test_names() -> None:
    assert words.short("rdk:component:motor/arm:left") == "arm:left"
    assert words.kind("rdk:component:motor/left") == "motor"
    assert words.kind("internal/rpc") == "internal"
    assert words.href('a"b/c?d') == "/resources/a%22b/c%3Fd"
    assert words.dom_id("a") != words.dom_id("b")


@pytest.mark.parametrize(
    ("reason", "path"),
    [
        ('components.3.attributes.max_rpm: must be a number, not "fast"', "components.3.attributes.max_rpm"),
        (
            "waiting for rdk:component:motor/left: components.3.attributes.max_rpm: 'fast' is",
            "components.3.attributes.max_rpm",
        ),
        ("services.0.attributes.a-b.c_d: x", "services.0.attributes.a-b.c_d"),
        ("waiting for 'rdk:component:base/rover'", ""),
        ("no answer: components are missing", ""),
        ("the file components.json: gone", ""),
        ("see components.3", ""),
        ("", ""),
    ],
)
def test_the_path_of_a_mistake_is_extracted_from_a_reason(reason: str, path: str) -> None:
    result = words.path_in(reason)
    assert (result[1], "".join(result)) == (path, reason)


def test_sizes_change_their_unit_before_they_have_four_digits() -> None:
    assert [words.bytes_text(size) for size in (999, 1000, 999_499, 999_500)] == ["999 B", "1 kB", "999 kB", "1 MB"]
