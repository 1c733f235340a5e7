"""SQL queries: the published table, SELECT only, within limits; and rows encoded as BSON."""

from __future__ import annotations

import math
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import bson
import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from cloud.domain.queries import gathering, query_process
from cloud.domain.queries.bson import decode, encode
from cloud.domain.queries.query import CopiedData, Material, Sealed
from cloud.domain.queries.query_process import EACH, Bounds, QueryProcesses
from cloud.domain.queries.scratch import Scratch
from cloud.domain.queries.statement import COLUMNS
from cloud.domain.queries.view import RECENT, SOURCES, Needs
from cloud.server.memory import MemoryCloud
from cloud.values.limits import SQL_QUEUE
from schema.errors import ErrorKind, MachineError
from tests.unit.cloud.captured import Uploads, at, piece

pytest.importorskip("_duckdb", reason="SQL needs the extra `data`")


@pytest.fixture
async def up(cloud: MemoryCloud, part: str) -> Uploads:
    uploads = Uploads(cloud, part)
    await uploads.readings(*(piece(number, t=float(number), name="ü") for number in range(5)), tags=["a", "b"])
    return uploads


async def rows(up: Uploads, text: str) -> list[dict[str, Any]]:
    answer = await up.ask("tabular_data_by_sql", organization_id=up.cloud.first.organization, sql_query=text)
    return [bson.decode(item, bson.CodecOptions(tz_aware=True)) for item in answer]


async def test_the_table_has_the_published_columns(up: Uploads, machine: str) -> None:
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


async def test_queries_of_all_kinds(up: Uploads) -> None:
    assert await rows(up, "SELECT COUNT(*) AS n, AVG(data.t) AS mean FROM readings") == [{"n": 5, "mean": 2.0}]
    assert await rows(up, "FROM readings SELECT MAX((data->>'$.t')::DOUBLE) AS top") == [{"top": 4.0}]
    text = """
        WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3) SELECT SUM(i) AS s FROM n
    """
    assert await rows(up, text) == [{"s": 6}]
    assert await rows(up, "SELECT data FROM readings WHERE 1 = 0") == []
    assert (await rows(up, "SELECT data->>'$.name' AS data, NULL AS x FROM readings LIMIT 1"))[0] == {
        "data": "ü",
        "x": None,
    }
    assert await rows(up, "SELECT AVG(data.nothing) AS mean FROM readings") == [{"mean": None}]
    text = "SELECT date_trunc('minute', time_received) AS minute, COUNT(*) AS n FROM readings GROUP BY ALL"
    assert await rows(up, text) == [{"minute": at(0), "n": 5}]


EXPECTED: Final[dict[str, Any]] = {
    "1.5": 1.5,
    "'NaN'::DOUBLE": math.nan,
    "170141183460469231731687303715884105727::HUGEINT": 2.0**127,
    "SUM(2)": 2,
    "'\\x00\\xFF'::BLOB": b"\0\xff",
    "INTERVAL '1 month 2 days'": "1 month 2 days",
    "TIME '12:30:00'": "12:30:00",
    "DATE '2026-01-01'": at(0),
    "TIMESTAMPTZ '2026-01-01 02:00:00+02'": at(0),
    "[TIMESTAMPTZ '2026-01-01 02:00:00+02']": [at(0)],
    "TIMESTAMP_NS '2026-01-01 00:00:00.5'": at(0.5),
    "{'a': [1, NULL], 'b c': {'d': INTERVAL 1 day}}": {"a": [1, None], "b c": {"d": "1 day"}},
    "MAP([1, 2], ['a', NULL])": {"1": "a", "2": None},
    "MAP([[1]], ['a'])": {"key": [[1]], "value": ["a"]},
    "ROW(1, 'a')": [1, "a"],
    "'00000000-0000-4000-8000-000000000000'::UUID": "00000000-0000-4000-8000-000000000000",
    """'{"a": [1, NaN, {"b": null}]}'::JSON""": {"a": [1, math.nan, {"b": None}]},
    "['{}'::JSON]": [{}],
    "'101'::BIT": "101",
    "'a'::ENUM('a', 'b')": "a",
    "union_value(number := 1)": 1,
    "array_value(1.5, 2)": [1.5, 2.0],
    "true": True,
    "NULL": None,
}


async def test_values_of_all_types() -> None:
    async with QueryProcesses().opened() as engine:
        (row,) = await asked(engine, f"SELECT {', '.join(f'{text} AS c{n}' for n, text in enumerate(EXPECTED))}")
    expected = {f"c{number}": value for number, value in enumerate(EXPECTED.values())}
    nan = row.pop("c1"), row["c16"]["a"].pop(1), expected.pop("c1"), expected["c16"]["a"].pop(1)  # which equals nothing
    assert all(map(math.isnan, nan))
    assert row == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "SELECT",
        "SELECT nothing FROM readings",
        "SELECT AVG(data.name) FROM readings",
        "SELECT * FROM sqlite_master; SELECT 1",
        "DELETE FROM readings",
        "SELECT $1",
        "SELECT 'a'::INTEGER",
        "SELECT 1 /* \0",
    ],
)
async def test_only_a_valid_select_is_executed(up: Uploads, text: str) -> None:
    with pytest.raises(MachineError) as caught:
        await rows(up, text)
    assert caught.value.kind is ErrorKind.INVALID
    assert len(await up.values()) == 5


SLOW = "SELECT COUNT(*) FROM range(1000000000) a, range(1000000000) b WHERE a.range + b.range < 0"
ENDLESS = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT COUNT(*) FROM n"


async def none(folder: Path) -> Material:
    """Write no readings."""
    for name in (RECENT, SOURCES):
        os.close(os.open(folder / name, os.O_CREAT, 0o600))
    return Material(Sealed((), {}, ()), nothing)


async def nothing(needs: Needs) -> CopiedData:
    return CopiedData()


async def asked(engine: QueryProcesses, text: str, organization: str = "a") -> list[dict[str, Any]]:
    answer = await engine.execute(organization, text, none)
    return [bson.decode(row, bson.CodecOptions(tz_aware=True)) for row in answer.rows]


@pytest.mark.parametrize(
    ("text", "bounds"),
    [
        (ENDLESS, Bounds(cpu=1)),
        (SLOW, Bounds(cpu=1)),
        (SLOW, Bounds(wall=1.0)),
        ("SELECT * FROM range(1000)", Bounds(rows=999)),
        ("SELECT repeat('a', 1000) FROM range(100)", Bounds(size=10_000)),
        ("SELECT repeat('a', 4000000000)", Bounds()),
        ("SELECT list(repeat('a', 1000000) || range) FROM range(10000)", Bounds(cpu=3)),
        (f"SELECT {'+'.join(['1'] * 5000)}", Bounds()),
        (f"SELECT 1 -- {'x' * 70_000}", Bounds()),
    ],
)
async def test_queries_that_are_too_slow_or_too_large_are_ended(text: str, bounds: Bounds, tmp_path: Path) -> None:
    before = children()  # a database server of other tests may be running
    async with QueryProcesses(tmp_path, bounds).opened() as engine:
        with trio.fail_after(30), pytest.raises(MachineError) as caught:
            await asked(engine, text)
        assert caught.value.kind in (ErrorKind.EXHAUSTED, ErrorKind.INVALID)
        assert caught.value.remedy
        assert await asked(engine, "SELECT 1 AS one") == [{"one": 1}]
    assert children() <= before
    assert names_in(tmp_path) == []


async def opened(*, task_status: trio.TaskStatus[QueryProcesses]) -> None:
    async with QueryProcesses().opened() as engine:
        task_status.started(engine)
        await trio.sleep_forever()


def names_in(folder: Path) -> list[str]:
    return os.listdir(folder)


def children() -> set[int]:
    """Return the ids of running child processes."""
    return {int(word) for path in Path("/proc/self/task").glob("*/children") for word in path.read_text().split()}


def seconds(process: int) -> float:
    """Return the CPU seconds that a process has used."""
    words = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


async def test_a_disconnected_caller_ends_the_query_and_its_process() -> None:
    before = children()
    with trio.fail_after(60), trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            engine = await nursery.start(opened)
            nursery.start_soon(asked, engine, SLOW)
            while not children() - before:  # noqa: ASYNC110 - nothing reports the start of a process
                await trio.sleep(0.01)
            (started,) = children() - before
            while seconds(started) < 0.2:  # noqa: ASYNC110 - nor that it has begun the query
                await trio.sleep(0.01)
            scope.cancel()
    assert children() <= before


async def test_slow_queries_of_an_organization_do_not_block_others() -> None:
    before = children()
    with trio.fail_after(60):
        async with QueryProcesses().opened() as engine, trio.open_nursery() as nursery:
            for _ in range(SQL_QUEUE.value + EACH):
                nursery.start_soon(asked, engine, SLOW, "slow")
            await trio.testing.wait_all_tasks_blocked()
            with pytest.raises(MachineError, match="`sql_queue`") as caught:
                await asked(engine, "SELECT 1", "slow")
            assert caught.value.kind is ErrorKind.EXHAUSTED
            assert await asked(engine, "SELECT 2 AS two", "quick") == [{"two": 2}]
            assert len(children() - before) == EACH
            nursery.cancel_scope.cancel()
    assert children() <= before


async def test_folders_of_a_killed_process_are_removed_by_the_next(tmp_path: Path) -> None:
    killed, running = Scratch(tmp_path), Scratch(tmp_path)
    killed.open()
    (killed.add() / "deep").mkdir()
    os.close(killed._lock)  # as the kernel does when a process ends
    running.open()
    kept = running.add()
    async with QueryProcesses(tmp_path).opened():
        assert kept.is_dir()
        assert not killed._own.exists()
    running.close()
    assert names_in(tmp_path) == []


async def test_without_duckdb_the_extra_is_named(up: Uploads, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query_process, "find_spec", lambda name: None)
    with pytest.raises(MachineError) as caught:
        await rows(up, "SELECT 1")
    assert caught.value.kind is ErrorKind.UNSUPPORTED
    assert "machine-runtime[data]" in str(caught.value)


async def test_too_many_readings_are_refused_and_not_truncated(up: Uploads, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathering, "MAX_RECENT", 4)
    with pytest.raises(MachineError) as caught:
        await rows(up, "SELECT COUNT(*) AS n FROM readings")
    assert caught.value.kind is ErrorKind.EXHAUSTED
    assert "--seal-after" in str(caught.value)
    assert await rows(up, "SELECT COUNT(*) AS n FROM readings WHERE component_name = 'other'") == [{"n": 0}]
    assert await rows(up, "SELECT 1 AS x") == [{"x": 1}]


# ---- BSON, compared with the official implementation

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary()
    | st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1)).map(
        lambda item: item.replace(tzinfo=UTC, microsecond=item.microsecond // 1000 * 1000)
    )
)
NAMES = st.text().filter(lambda name: "\0" not in name)
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3))


@given(st.dictionaries(NAMES, VALUES, max_size=5))
def test_bson_is_read_by_the_official_implementation(document: dict[str, Any]) -> None:
    assert bson.decode(encode(document), bson.CodecOptions(tz_aware=True)) == document
    assert decode(encode(document)) == document


@pytest.mark.parametrize("document", [{"a\0": 1}, {"a": 2**63}, {"a": object()}])
def test_values_that_bson_cannot_contain_are_refused(document: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"BSON|NUL"):
        encode(document)


def test_numbers_that_are_not_finite() -> None:
    assert math.isnan(bson.decode(encode({"a": math.nan}))["a"])
