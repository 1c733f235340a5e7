"""Readings become columns and files, and come back exactly."""

from __future__ import annotations

import json
import random
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloud.domain.data.readings import text_of
from cloud.domain.data.segments import columns as module
from cloud.domain.data.segments.columns import KEYS, FieldKind, SegmentRow, columns_of
from cloud.domain.data.segments.parquet import read, written

LEAVES = st.one_of(
    st.floats(), st.booleans(), st.text(max_size=5), st.none(), st.integers(), st.lists(st.floats(), max_size=2)
)
NAMES = st.sampled_from(["a", "b", "a.b", "", "data", "source", "ä", "number"])
DATA = st.dictionaries(NAMES, st.one_of(LEAVES, st.dictionaries(NAMES, LEAVES, max_size=3)), max_size=4)


def rows(*data: Any) -> list[SegmentRow]:
    """Return readings with the texts in which they are stored."""
    return [
        SegmentRow(number % 3, 1000 - number // 2, 2000 + number, 3000, number, text_of(each))
        for number, each in enumerate(data)
    ]


def ordered(each: list[SegmentRow]) -> list[SegmentRow]:
    return sorted(each, key=lambda row: (row.source, row.requested, row.number))


@given(st.lists(DATA, max_size=12))
def test_readings_come_back_exactly(data: list[Any]) -> None:
    before = rows(*data)
    columns = columns_of(before)
    assert list(columns.rows()) == ordered(before)
    content, _ = written(columns, range(len(KEYS) + 1 + len(columns.kinds)))
    assert list(read(content).rows()) == ordered(before)


def test_ordinary_readings_keep_no_text() -> None:
    before = rows(
        *({"readings": {"t": 20.5, "on": True, "at": {"x": 1.0}}, "note": "ok"} for _ in range(9)), {"t": 1.0}
    )
    columns = columns_of(before)
    assert set(columns.whole) == {None}
    assert columns.kinds == {
        "note": FieldKind.TEXT,
        "readings.at.x": FieldKind.NUMBER,
        "readings.on": FieldKind.BOOL,
        "readings.t": FieldKind.NUMBER,
        "t": FieldKind.NUMBER,
    }


@pytest.mark.parametrize("odd", [{"t": "text"}, {"t": [1.0]}, {"t": None}, {"t": float("nan")}, {"t": {}}, {"T": 1.0}])
def test_an_odd_reading_keeps_its_text_and_no_other_does(odd: Any) -> None:
    columns = columns_of(rows({"t": 1.0}, {"t": 2.0}, {"t": 3.0}, odd))
    assert [text is None for text in columns.whole].count(False) == 1
    assert columns.kinds == {"t": FieldKind.NUMBER}


def test_fields_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_FIELDS", 3)
    before = rows(*({f"f{number}": 1.0} for number in range(9)))
    columns = columns_of(before)
    assert len(columns.kinds) == 3
    assert list(columns.rows()) == ordered(before)


def test_the_summaries_of_columns() -> None:
    columns = columns_of(rows({"t": 1.5, "n": "b"}, {"t": 2.0, "n": "a"}, {"n": "c"}))
    _, summaries = written(columns, range(8))
    by_name = {each.name: each for each in summaries}
    assert (by_name["t"].count, by_name["t"].nulls, by_name["t"].least, by_name["t"].greatest, by_name["t"].total) == (
        2,
        1,
        1.5,
        2,
        3.5,
    )
    assert (by_name["n"].least, by_name["n"].greatest, by_name["n"].total) == ("a", "c", None)
    assert (by_name["number"].least, by_name["number"].greatest) == (0, 2)
    assert by_name["data"].count == 0


def test_sensor_values_take_at_most_nine_bytes() -> None:
    chance, value, before = random.Random(1), [20.0, 40.0, 300.0], list[SegmentRow]()
    for number in range(60_000):
        value = [round(each + chance.choice((-0.1, 0.0, 0.0, 0.1)), 1) for each in value]
        text = msgspec.json.encode({"readings": dict(zip("abc", value, strict=True))}, order="sorted").decode()
        moment = number // 100 * 1_000_000 + chance.randrange(900)
        before.append(SegmentRow(number % 100, moment, moment + chance.randrange(900), number // 1000, number, text))
    content, _ = written(columns_of(before), range(9))
    assert len(content) / len(before) <= 9
    assert json.loads(before[0].text)["readings"]["a"] == pytest.approx(20, abs=0.2)
