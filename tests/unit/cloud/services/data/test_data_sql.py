"""SQL queries: the published table, SELECT only, within limits; and rows encoded as BSON."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import AsyncGenerator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import bson
import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from cloud.domain.queries import query_process
from cloud.domain.queries.bson import encode
from cloud.domain.queries.query import COLUMNS, Cells
from cloud.domain.queries.query_process import EACH, Bounds, QueryProcesses
from cloud.server.memory import MemoryCloud
from cloud.values.limits import SQL_QUEUE
from schema.errors import ErrorKind, MachineError
from tests.unit.cloud.captured import Uploads, at, piece


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
async def test_only_a_select_from_the_readings_is_allowed(up: Uploads, text: str) -> None:
    with pytest.raises(MachineError) as caught:
        await rows(up, text)
    assert caught.value.kind is ErrorKind.INVALID
    assert len(await up.values()) == 5


ENDLESS = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT COUNT(*) FROM n"
NATIVE = "SELECT instr(printf('%.*c',16000000,'a'), printf('%.*c',8000000,'a')||'b')"


async def none() -> AsyncGenerator[Sequence[Cells], None]:
    """Yield no readings."""
    for some in ():
        yield some


async def asked(engine: QueryProcesses, text: str, organization: str = "a") -> list[dict[str, Any]]:
    return [bson.decode(row) for row in await engine.execute(organization, text, none())]


@pytest.mark.parametrize(
    ("text", "bounds"),
    [
        (ENDLESS, Bounds(cpu=1)),
        (NATIVE, Bounds(cpu=1)),
        (NATIVE, Bounds(wall=1.0)),
        (ENDLESS.replace("COUNT(*)", "i"), Bounds(rows=1000)),
        (ENDLESS.replace("COUNT(*)", "i"), Bounds(size=10_000)),
        ("SELECT hex(zeroblob(10000000))", Bounds()),
        ("SELECT 'a' LIKE printf('%.*c', 20000, '%')", Bounds()),
        (ENDLESS.replace("COUNT(*)", "group_concat(printf('%.*c', 100000, 'a'))"), Bounds(cpu=1)),
        (f"SELECT {'+'.join(['1'] * 500)}", Bounds()),
        (f"SELECT 1 -- {'x' * 70_000}", Bounds()),
    ],
)
async def test_queries_that_are_too_slow_or_too_large_are_ended(text: str, bounds: Bounds) -> None:
    engine, before = QueryProcesses(bounds), children()  # a database server of other tests may be running
    with trio.fail_after(30), pytest.raises(MachineError) as caught:
        await asked(engine, text)
    assert caught.value.kind in (ErrorKind.EXHAUSTED, ErrorKind.INVALID)
    assert caught.value.remedy
    assert await asked(engine, "SELECT 1 AS one") == [{"one": 1}]
    assert children() <= before


def children() -> set[int]:
    """Return the ids of running child processes."""
    return {int(path) for path in Path("/proc/self/task").glob("*/children") for path in path.read_text().split()}


def seconds(process: int) -> float:
    """Return the CPU seconds that a process has used."""
    words = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


async def test_a_disconnected_caller_ends_the_query_and_its_process() -> None:
    before = children()
    with trio.fail_after(60), trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(asked, QueryProcesses(), NATIVE)
            while not children() - before:  # noqa: ASYNC110 - nothing reports the start of a process
                await trio.sleep(0.01)
            (started,) = children() - before
            while seconds(started) < 0.2:  # noqa: ASYNC110 - nor that it has begun the query
                await trio.sleep(0.01)
            scope.cancel()
    assert children() <= before


async def test_slow_queries_of_an_organization_do_not_block_others() -> None:
    engine, before = QueryProcesses(), children()
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            for _ in range(SQL_QUEUE.value + EACH):
                nursery.start_soon(asked, engine, NATIVE, "slow")
            await trio.testing.wait_all_tasks_blocked()
            with pytest.raises(MachineError, match="`sql_queue`") as caught:
                await asked(engine, "SELECT 1", "slow")
            assert caught.value.kind is ErrorKind.EXHAUSTED
            assert await asked(engine, "SELECT 2 AS two", "quick") == [{"two": 2}]
            assert len(children() - before) == EACH
            nursery.cancel_scope.cancel()
    assert children() <= before


async def test_the_process_can_open_no_file_and_inherits_nothing() -> None:
    program = query_process._PROGRAM.replace("main()", "")
    check = """
from cloud.domain.queries import query_child
import os
query_child._confine(5, 640 << 20)
assert not set(os.environ) - {"LC_CTYPE"}, os.environ
for path in ("/etc/passwd", query_child.__file__):
    try:
        open(path)
    except OSError as error:
        assert error.errno == 24, error
    else:
        raise SystemExit("it opened a file")
for number in range(3, 100):
    try:
        os.fstat(number)
    except OSError:
        continue
    raise SystemExit(f"it inherited the descriptor {number}")
"""
    done = await trio.run_process([sys.executable, "-I", "-S", "-c", program + check], env={}, capture_stderr=True)
    assert done.returncode == 0, done.stderr


async def test_too_many_readings_are_refused_and_not_truncated(up: Uploads) -> None:
    object.__setattr__(up.cloud.cloud, "queries", QueryProcesses(Bounds(readings=4)))
    with pytest.raises(MachineError) as caught:
        await rows(up, "SELECT 1 AS x")
    assert caught.value.kind is ErrorKind.EXHAUSTED
    assert "ExportTabularData" in str(caught.value)


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


@pytest.mark.parametrize("document", [{"a\0": 1}, {"a": 2**63}, {"a": object()}])
def test_values_that_bson_cannot_contain_are_refused(document: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"BSON|NUL"):
        encode(document)


def test_numbers_that_are_not_finite() -> None:
    assert math.isnan(bson.decode(encode({"a": math.nan}))["a"])
