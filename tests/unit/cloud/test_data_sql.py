"""Questions in SQL: the published table, nothing but SELECT, within limits; and their rows as BSON."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

import bson
import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from cloud.data import query
from cloud.data.bson import encode
from cloud.data.query import COLUMNS, Question
from cloud.memory import MemoryCloud
from schema.errors import ErrorKind, MachineError
from tests.unit.cloud.captured import Uploads, at, piece


@pytest.fixture
async def up(cloud: MemoryCloud, part: str) -> Uploads:
    uploads = Uploads(cloud, part)
    await uploads.readings(*(piece(number, t=float(number), name="ü") for number in range(5)), tags=["a", "b"])
    return uploads


async def rows(up: Uploads, text: str) -> list[dict[str, Any]]:
    found = await up.ask("tabular_data_by_sql", organization_id=up.cloud.first.organization, sql_query=text)
    return [bson.decode(one, bson.CodecOptions(tz_aware=True)) for one in found]


async def test_the_table_has_what_is_published(up: Uploads, machine: str) -> None:
    (row,) = await rows(up, "SELECT * FROM readings WHERE time_requested = '2026-01-01 00:00:02.000000'")
    first = up.cloud.first
    assert tuple(row) == COLUMNS
    assert row == {
        "organization_id": first.organization,
        "location_id": first.location,
        "robot_id": machine,
        "robot_name": "rover",
        "part_id": up.part,
        "part_name": "rover-main",
        "component_type": "sensor",
        "component_name": "s",
        "method_name": "Readings",
        "time_requested": at(2),
        "time_received": at(2.5),
        "tags": ["a", "b"],
        "additional_parameters": {},
        "data": {"t": 2.0, "name": "ü"},
    }


async def test_questions_of_all_kinds(up: Uploads) -> None:
    assert await rows(up, "SELECT COUNT(*) AS n, AVG(data->>'$.t') AS mean FROM readings") == [{"n": 5, "mean": 2.0}]
    text = """
        WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3) SELECT SUM(i) AS s FROM n
    """
    assert await rows(up, text) == [{"s": 6}]
    assert await rows(up, "SELECT data FROM readings WHERE 1 = 0") == []
    assert (await rows(up, "SELECT data->>'$.name' AS data, NULL AS x FROM readings LIMIT 1"))[0] == {
        "data": "ü",
        "x": None,
    }


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "SELECT",
        "SELECT nothing FROM readings",
        "SELECT * FROM sqlite_master; SELECT 1",
        "DELETE FROM readings",
        "INSERT INTO readings DEFAULT VALUES",
        "UPDATE readings SET data = ''",
        "CREATE TABLE x (y)",
        "DROP TABLE readings",
        "ATTACH '/etc/passwd' AS x",
        "PRAGMA user_version",
        "PRAGMA temp_store_directory = '/'",
        "VACUUM INTO '/tmp/x'",
        "SELECT load_extension('x')",
        "SELECT * FROM pragma_database_list",
        "BEGIN",
        "SELECT 1 /* \0",
    ],
)
async def test_nothing_but_a_select_from_the_readings(up: Uploads, text: str) -> None:
    with pytest.raises(MachineError) as caught:
        await rows(up, text)
    assert caught.value.kind is ErrorKind.INVALID
    assert len(await up.values()) == 5


async def test_what_takes_too_long_or_is_too_much_is_ended() -> None:
    endless = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT COUNT(*) FROM n"
    many = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"
    large = "SELECT hex(zeroblob(10000000))"
    for text, steps, rows_ in ((endless, 100, 10), (many, 1000, 10), (large, 1000, 10)):
        async with Question(steps, rows_).opened() as question:
            with pytest.raises(MachineError) as caught:
                await question.ask(text)
            assert caught.value.kind in (ErrorKind.EXHAUSTED, ErrorKind.INVALID)
            assert await question.ask("SELECT 1 AS one") == [{"one": 1}]


async def test_a_caller_who_goes_away_ends_his_question() -> None:
    endless = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT COUNT(*) FROM n"
    with trio.fail_after(30), trio.move_on_after(0.2) as scope:
        async with Question(10**9).opened() as question:
            await question.ask(endless)
    assert scope.cancelled_caught


async def test_more_readings_than_fit_are_refused_not_cut(up: Uploads, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query, "MAX_READINGS", 4)
    with pytest.raises(MachineError) as caught:
        await rows(up, "SELECT 1 AS x")
    assert caught.value.kind is ErrorKind.EXHAUSTED
    assert "ExportTabularData" in str(caught.value)


# ---- BSON, against the official implementation

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary()
    | st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1)).map(
        lambda one: one.replace(tzinfo=UTC, microsecond=one.microsecond // 1000 * 1000)
    )
)
NAMES = st.text().filter(lambda name: "\0" not in name)
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3))


@given(st.dictionaries(NAMES, VALUES, max_size=5))
def test_bson_is_read_by_the_official_implementation(document: dict[str, Any]) -> None:
    assert bson.decode(encode(document), bson.CodecOptions(tz_aware=True)) == document


@pytest.mark.parametrize("document", [{"a\0": 1}, {"a": 2**63}, {"a": object()}])
def test_what_has_no_place_in_bson_is_refused(document: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"BSON|NUL"):
        encode(document)


def test_numbers_that_are_none() -> None:
    assert math.isnan(bson.decode(encode({"a": math.nan}))["a"])
