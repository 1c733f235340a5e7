"""SQL over segments and rows: each query answers as if all readings were rows, whatever is sealed in between."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final

import bson
import pytest
from google.protobuf.wrappers_pb2 import StringValue

from cloud.domain.data.segments import merging, sealing
from cloud.domain.data.segments.catalog import MAX_COLUMNS
from cloud.domain.organizations.first import create_owner
from cloud.domain.queries import gathering, query_process
from cloud.domain.queries.query_process import Bounds
from cloud.domain.queries.view import RECENT, Needs, StoredReadings
from cloud.server.memory import MemoryCloud
from cloud.server.segment_nodes import seal_all
from cloud.values.times import now
from schema.errors import ErrorKind, MachineError
from support.worker import Worker
from tests.unit.cloud.captured import DATA, Uploads, piece
from tests.unit.cloud.conftest import Clock

pytest.importorskip("_duckdb", reason="SQL needs the extra `data`")
pytest.importorskip("pyarrow", reason="segments need the extra `data`")


@pytest.fixture
def up(cloud: MemoryCloud, part: str) -> Uploads:
    return Uploads(cloud, part)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sealing, "MOST", 7)
    monkeypatch.setattr(sealing, "SOME", 1)
    monkeypatch.setattr(gathering, "PAGE", 3)


async def seal(up: Uploads, clock: Clock, days: int = 2) -> None:
    cloud = up.cloud.cloud
    async with (worker := Worker("test")).opened():
        await seal_all(cloud.store, cloud.blobs, worker, timedelta(hours=1), lambda: clock.now + timedelta(days=days))


async def rows(up: Uploads, text: str) -> list[Any]:
    answer = await up.ask("tabular_data_by_sql", organization_id=up.cloud.first.organization, sql_query=text)
    return [bson.decode(item, bson.CodecOptions(tz_aware=True)) for item in answer]


ODD: Final[list[dict[str, Any]]] = [
    {"readings": {"celsius": 20.5, "ok": True, "name": "a'\"\t\n"}},
    {"readings": {"celsius": 21.0, "ok": False, "words": ["a", {"b": None}]}},
    {"readings": {"celsius": "broken"}},
    {"readings": {"celsius": 22.0, "none": None}},
    {"readings": {}},
    {},
    {"readings": {"celsius": {"inner": 1.0}}},
    {"readings": {"nan": math.nan}},
    {"Readings": {"celsius": 1.0}},
    {"a.b": 1.0, "a": {"b": 2.0}, "": {"": 3.0}, "~/": 4.0, '"quoted"': "x", "_json": {"x": 1.0}},
    {"readings": {"celsius": 23.0, "deep": {"er": {"still": "ü"}}}},
    {"readings": {"celsius": 24.5}},
]

QUESTIONS: Final = (
    "SELECT * FROM readings ORDER BY time_requested",
    "SELECT data FROM readings ORDER BY time_requested",
    "SELECT data AS d, data.readings.celsius AS c FROM readings ORDER BY time_requested",
    "SELECT COUNT(*) AS n, AVG(data.readings.celsius) AS c, MAX(time_received) AS t FROM readings",
    "SELECT component_name, AVG(data.readings.celsius) AS c FROM readings GROUP BY ALL ORDER BY ALL",
    "SELECT data.readings.ok AS ok, COUNT(*) AS n FROM readings GROUP BY ALL ORDER BY ALL",
    "SELECT data.readings.deep.er.still AS s FROM readings WHERE s IS NOT NULL",
    "SELECT data.readings.deep AS s FROM readings WHERE data.readings.deep.er.still = 'ü'",
    "SELECT data.readings.words AS w FROM readings ORDER BY time_requested",
    "SELECT data.readings AS r FROM readings ORDER BY time_requested",
    "SELECT data->>'$.readings.name' AS n FROM readings ORDER BY time_requested",
    "SELECT data->'$.readings.words[1]' AS w FROM readings ORDER BY time_requested",
    "SELECT (data->'readings')->>'celsius' AS c FROM readings ORDER BY time_requested",
    "SELECT json_type(data, '$.readings.celsius') AS c, json_keys(data) AS k FROM readings ORDER BY time_requested",
    "SELECT data::JSON AS j, to_json(data)->>'$.readings.celsius' AS c FROM readings ORDER BY time_requested",
    "SELECT data._json AS j FROM readings ORDER BY time_requested",
    "SELECT data['readings']['celsius'] AS c FROM readings ORDER BY time_requested",
    "WITH r AS (SELECT * FROM readings) SELECT SUM(r.data.readings.celsius) AS s FROM r WHERE r.data.readings.ok",
    "SELECT a.data.readings.ok AS c FROM readings a JOIN readings b USING (time_requested) ORDER BY a.time_requested",
    "SELECT x.data.readings.celsius AS c FROM (SELECT data FROM readings ORDER BY time_requested) x",
    "SELECT r.d.readings.celsius AS c FROM (SELECT data AS d, time_requested AS t FROM readings) r ORDER BY t",
    "SELECT r FROM readings r ORDER BY time_requested",
    "SELECT data.readings.nothing AS n, tags FROM readings ORDER BY time_requested LIMIT 1",
    "SELECT COUNT(*) AS n FROM readings WHERE time_requested BETWEEN '2026-01-01 00:00:02' AND '2026-01-01 00:00:05'",
    "SELECT readings.data.readings.celsius AS c FROM readings WHERE component_name = 'other' ORDER BY time_requested",
    "SELECT list(data ORDER BY time_requested) AS l FROM readings",
    "SELECT data AS d FROM readings WHERE time_requested >= '2026-01-01 00:00:03' AND data.readings.ok ORDER BY ALL",
    "SELECT COUNT(*) AS n FROM readings r WHERE TIMESTAMP '2026-01-01 00:00:04' > r.time_requested",
    "SELECT COUNT(*) AS n FROM readings WHERE time_requested = '2026-01-01 00:00:04' OR time_requested < '2026-01-01'",
    "SELECT COUNT(*) AS n FROM readings WHERE time_requested > now() - INTERVAL 100 years AND time_requested < today()",
    "SELECT COUNT(*) AS n FROM readings WHERE NOT (time_requested > '2026-01-01 00:00:04')",
    "SELECT COUNT(*) AS n FROM readings WHERE time_requested > '2026-01-01 00:00:09' "
    "UNION ALL SELECT COUNT(*) FROM readings",
    "SELECT MAX(memory.main.readings.time_received) AS t, MIN(memory.main.readings.data.readings.celsius) AS c "
    "FROM readings",
    "SELECT r['time_received'] AS t FROM readings r ORDER BY ALL",
    "SELECT COUNT(*) AS n FROM readings a JOIN readings b USING (time_received)",
    "SELECT COUNT(*) AS n FROM readings a NATURAL JOIN readings b",
    "SELECT MAX(COLUMNS('time_.*')) FROM readings",
    "SELECT t FROM readings AS r(a, b, c, d, e, f, g, h, i, j, t) ORDER BY t",
    "SELECT DISTINCT time_received::DATE AS d, component_name AS c FROM readings ORDER BY ALL",
    "SELECT x.t FROM (SELECT Time_Received AS t FROM readings WHERE robot_name = 'rover') x ORDER BY t LIMIT 2",
    "SELECT COUNT(*) AS n FROM readings WHERE component_name = 'other' AND time_requested > '2026-01-01 00:00:03'",
    "SELECT data.readings.celsius AS c FROM readings WHERE time_requested <= '2026-01-01 00:00:05' ORDER BY c",
    "SELECT 1 AS n WHERE EXISTS (FROM readings)",
    "WITH readings AS (SELECT 1 AS x) SELECT * FROM readings",
    "SELECT x FROM (VALUES ('2027-01-01')) o(x) WHERE EXISTS (SELECT 1 FROM readings WHERE o.x > '2026-06-01')",
)


@pytest.mark.parametrize("parts", ["separate", "joined"])
async def test_segments_and_rows_answer_as_rows(
    up: Uploads, clock: Clock, monkeypatch: pytest.MonkeyPatch, parts: str
) -> None:
    """Files of each source are a part of the table, or are joined with their sources if there are too many."""
    if parts == "joined":
        monkeypatch.setattr(up.cloud.cloud.queries, "_bounds", Bounds(planned=0))
    for number, data in enumerate(ODD):
        await up.readings(
            piece(number, **data), component_name="s" if number % 3 else "other", tags=["lab"] * (number % 2)
        )
    before = [await rows(up, question) for question in QUESTIONS]
    assert repr(before[1]) == repr([{"data": data} for data in map(_sorted, ODD)])
    await seal(up, clock)
    sealed = [await rows(up, question) for question in QUESTIONS]
    for question, first, second in zip(QUESTIONS, before, sealed, strict=True):
        assert repr(second) == repr(first), question


def _sorted(value: Any) -> Any:
    return {name: _sorted(each) for name, each in sorted(value.items())} if isinstance(value, dict) else value


NARROW: Final = {
    "time_requested >= '2026-01-01'": (1, 0),
    "time_requested = '2026-01-01'": (1, 1),
    "r.time_requested < '2026-01-01' AND (data.x > 1 AND '2025-01-01' <= time_requested)": (1, 1),
    "time_requested BETWEEN '2026-01-01' AND now()": (1, 1),
    "time_requested > now() - INTERVAL 1 day": (1, 0),
    "time_requested > date_trunc('day', now()) - INTERVAL '3 hours'": (1, 0),
    "o.time_requested > '2026-01-01'": (0, 0),
    "time_requested > '2026-01-01' OR data.x > 1": (0, 0),
    "NOT time_requested > '2026-01-01'": (0, 1),
    "time_requested > random()": (0, 0),
    "time_requested > (SELECT MAX(time_received) FROM readings)": (0, 0),
    "time_requested > time_received": (0, 0),
    "time_received > '2026-01-01'": (0, 0),
}
"""Conditions, and how many lower and upper bounds of times they have."""


@pytest.mark.parametrize("condition", NARROW)
def test_only_bounds_that_every_reading_must_meet_leave_out_files(condition: str) -> None:
    program = (
        f"import sys; sys.path += [{query_process._ROOT!r}, {query_process._engine()!r}]; import json, _duckdb; "
        "from cloud.domain.queries import statement; "
        "answer = _duckdb.connect().execute('SELECT json_serialize_sql(?)', [sys.argv[1]]).fetchone()[0]; "
        "bounds = statement.time_bounds(statement.checked(json.loads(answer))); "
        "print(json.dumps([lower for lower, each in bounds if statement.is_fixed(each)]))"
    )
    query = f"SELECT * FROM readings r WHERE {condition}"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", program, query], capture_output=True, check=True)
    lower = json.loads(done.stdout)
    assert (lower.count(True), lower.count(False)) == NARROW[condition]


def test_files_outside_of_the_range_and_of_other_sources_are_not_read() -> None:
    files = [("a", 1, 0, 9, False), ("b", 1, 10, 19, True), ("c", 2, 20, 29, False)]

    def chosen(needs: Needs) -> tuple[list[str], list[str]]:
        settings = {"folder": "", "again": (), "numbers": {}, "longest": 0, "planned": 0, "files": files}
        stored = StoredReadings(settings, needs)
        return stored.files(texts=False), stored.files(texts=True)

    assert (chosen(Needs()), Needs().within(), Needs().of_sources()) == ((["a", "c"], ["b"]), [], [])
    assert chosen(Needs(low=10)) == (["c"], ["b"])
    assert chosen(Needs(low=10, high=19)) == ([], ["b"])
    assert Needs(low=10, high=19).within() == ["requested >= 10", "requested <= 19"]
    assert chosen(Needs([2, 7])) == (["c"], [])
    assert chosen(Needs([])) == ([], [])
    assert (Needs([2, 7]).of_sources(), Needs([]).of_sources()) == (["source IN (2, 7)"], ["false"])


OF_SOURCES = {
    "component_name = 'a'": 1,
    "r.component_name IN ('a', 'b') AND robot_name LIKE 'x%' AND data.x > 1": 2,
    "(part_id = 'a' OR lower(part_name) = 'b') AND time_requested > now()": 1,
    "component_name BETWEEN 'a' AND 'b' AND method_name IS NOT NULL AND NOT (robot_id = 'x')": 3,
    "component_name = 'a' OR data.x > 1": 0,
    "component_name = data.name": 0,
    "component_name = (SELECT MAX(robot_name) FROM sources)": 0,
    "component_name = CAST(random() AS VARCHAR)": 0,
    "o.component_name = 'a'": 0,
    "list_contains(tags, 'a')": 0,
    "additional_parameters->>'x' = 'a'": 0,
}
"""Conditions, and how many of them leave out sources."""


@pytest.mark.parametrize("condition", OF_SOURCES)
def test_only_conditions_on_sources_leave_out_sources(condition: str) -> None:
    program = (
        f"import sys; sys.path += [{query_process._ROOT!r}, {query_process._engine()!r}]; import json, _duckdb; "
        "from cloud.domain.queries import statement; "
        "answer = _duckdb.connect().execute('SELECT json_serialize_sql(?, skip_null := false)', [sys.argv[1]]); "
        "tree = json.loads(answer.fetchone()[0])['statements'][0]; "
        "print(len(statement.source_conditions(tree)[0]))"
    )
    query = f"SELECT * FROM readings r WHERE {condition}"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", program, query], capture_output=True, check=True)
    assert int(done.stdout) == OF_SOURCES[condition]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("component_name = 'a'", {"a"}),
        ("Readings.Component_Name <> 'a'", {"b", "it's"}),
        ("component_name IN ('b', 'it''s') AND data.t < 1", {"b", "it's"}),
        ("component_name = 'none'", set()),
        ("component_name LIKE '%''%'", {"it's"}),
        ("component_name = 1", {"fails"}),
    ],
)
async def test_answers_for_some_sources_are_those_of_all(
    up: Uploads, clock: Clock, condition: str, expected: set[str]
) -> None:
    for name in ("a", "b", "it's"):
        await up.readings(*(piece(number, t=float(number)) for number in range(3)), component_name=name)
        await seal(up, clock)
        await up.readings(*(piece(number, t=float(number)) for number in range(3, 6)), component_name=name)
    query = f"SELECT DISTINCT component_name AS name, 'b' AS robot_name FROM readings WHERE {condition}"
    if expected == {"fails"}:
        with pytest.raises(MachineError, match="Could not convert"):
            await rows(up, query)
    else:
        assert {row["name"] for row in await rows(up, query)} == expected


async def test_names_of_sources_are_data(up: Uploads, clock: Clock) -> None:
    odd = ["it's", "\\'; --", 'a"b', "x\ny\t", "$1 %s {0}", "ü€😀", "", "NULL", "1", "[]", "'] || getenv('HOME') || ['"]
    for place, name in enumerate(odd):
        value = StringValue(value=name).SerializeToString()
        parameters = {name: {"type_url": "type.googleapis.com/google.protobuf.StringValue", "value": value}}
        await up.readings(piece(place, t=1.0), component_name=name, tags=[name, "b"], method_parameters=parameters)
    text = "SELECT component_name AS c, tags, additional_parameters AS p, COUNT(*) AS n FROM readings GROUP BY ALL"
    before = await rows(up, f"{text} ORDER BY ALL")
    assert sorted(row["c"] for row in before) == sorted(odd)
    await seal(up, clock)
    assert await rows(up, f"{text} ORDER BY ALL") == before


Change = Callable[[], Awaitable[None]]


def change_while_copying(monkeypatch: pytest.MonkeyPatch, *, first: Change | None = None, then: Change | None) -> None:
    """Change what is stored after the segments were listed: once before rows are read, and once after some were."""
    copied, added = gathering._copied, gathering._Copy.add

    async def copy(*arguments: Any) -> Any:
        if first is not None:
            await first()
        return await copied(*arguments)

    async def add(self: Any, lines: Any) -> None:
        nonlocal then
        await added(self, lines)
        if then is not None:
            change, then = then, None
            await change()

    monkeypatch.setattr(gathering, "_copied", copy)
    monkeypatch.setattr(gathering._Copy, "add", add)


ALL = "SELECT COUNT(*) AS n, SUM(data.t) AS s FROM readings"


@pytest.mark.parametrize("place", ["folder", "bucket"])
@pytest.mark.parametrize("rows_are_read", [False, True])
async def test_readings_that_are_sealed_while_a_query_begins_count_once(
    up: Uploads, clock: Clock, monkeypatch: pytest.MonkeyPatch, place: str, rows_are_read: bool
) -> None:
    await up.readings(*(piece(number, t=float(number)) for number in range(12)))
    if place == "bucket":
        monkeypatch.setattr(type(up.cloud.cloud.blobs), "path", lambda self, key: None)

    async def change() -> None:
        await seal(up, clock)

    if rows_are_read:
        change_while_copying(monkeypatch, then=change)
    else:
        change_while_copying(monkeypatch, first=change, then=None)
    assert await rows(up, ALL) == [{"n": 12, "s": 66.0}]
    assert await rows(up, ALL) == [{"n": 12, "s": 66.0}]


async def test_segments_that_are_merged_and_fields_that_become_columns_while_a_query_begins_count_once(
    up: Uploads, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sealing, "MOST", 20)
    monkeypatch.setattr(sealing, "SOME", 20)
    monkeypatch.setattr(merging, "FEWEST", 2)
    await up.readings(*(piece(number, t=float(number)) for number in range(5)))
    await seal(up, clock, 20)
    await up.readings(*(piece(number, t=float(number), u=1.0) for number in range(5, 9)))
    before = set(_files(up))

    async def change() -> None:
        await seal(up, clock, 20)  # merges both segments, too

    change_while_copying(monkeypatch, first=change, then=None)
    text = "SELECT COUNT(*) AS n, SUM(data.t) AS s, SUM(data.u) AS u FROM readings"
    assert await rows(up, text) == [{"n": 9, "s": 36.0, "u": 4.0}]
    assert await up.cloud.cloud.store.read(lambda sql: sql.rows("SELECT count FROM segments")) == [{"count": 9}]
    assert len(set(_files(up)) - before) == 2


async def test_only_what_a_query_needs_is_copied(up: Uploads, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b"):
        await up.readings(*(piece(number, t=float(number)) for number in range(3)), component_name=name)
    await seal(up, clock)
    for name in ("a", "b"):
        await up.readings(*(piece(number, t=float(number)) for number in range(3, 6)), component_name=name)
    monkeypatch.setattr(type(up.cloud.cloud.blobs), "path", lambda self, key: None)
    lines, files = list[str](), list[str]()
    add, file = gathering._Copy.add, gathering._Copy.file

    async def noted_add(self: Any, some: Any) -> None:
        lines.extend(some)
        await add(self, some)

    async def noted_file(self: Any, blobs: Any, blob: str) -> None:
        files.append(blob)
        await file(self, blobs, blob)

    monkeypatch.setattr(gathering._Copy, "add", noted_add)
    monkeypatch.setattr(gathering._Copy, "file", noted_file)
    copied = []
    for text in (
        "SELECT AVG(data.t) AS t, MAX(time_received) AS r FROM readings",
        "SELECT COUNT(*) AS n FROM readings WHERE component_name = 'a'",
        "SELECT SUM(data.t) AS s FROM readings WHERE time_requested > '2026-01-01 00:00:04'",
        "SELECT SUM(data.none) AS s FROM readings WHERE component_name = 'a'",
        "SELECT COUNT(*) AS n FROM readings WHERE component_name = 'c'",
        "SELECT 1 AS n",
    ):
        await rows(up, text)
        texts, receipts = [line for line in lines if line.endswith("}")], [line.split("\t")[2] for line in lines]
        copied.append((len(lines), len(texts), len([each for each in receipts if each != "0"]), len(files)))
        lines.clear()
        files.clear()
    assert copied == [(6, 6, 6, 2), (3, 0, 0, 1), (4, 4, 0, 0), (6, 6, 6, 2), (0, 0, 0, 0), (0, 0, 0, 0)]


async def test_a_process_that_asks_for_the_readings_of_another_organization_gets_none(
    up: Uploads, clock: Clock, tmp_path: Path
) -> None:
    await up.readings(*(piece(number, t=float(number)) for number in range(3)))
    await seal(up, clock)
    await up.readings(piece(9, t=9.0))
    cloud, own = up.cloud.cloud, up.cloud.first.organization
    other = await cloud.store.write(lambda sql: create_owner(sql, "Other", now()))
    run = partial(cloud.room.run, own)
    for owner, expected in ((own, 1), (other.organization, 0)):
        folder = tmp_path / owner
        folder.mkdir()
        material = await gathering.gathered(cloud.store, cloud.blobs, run, owner, folder)
        assert len(material.sealed.files) == expected
        await material.copy(Needs([1, 2, 3, 1 << 40]))
        assert (folder / RECENT).read_text().count("\n") == expected


async def test_files_without_texts_are_known(up: Uploads, clock: Clock, tmp_path: Path) -> None:
    await up.readings(piece(0, t=1.0), component_name="a")
    await up.readings(piece(0, t=1.0), piece(1, t=[1.0]), component_name="b")
    await seal(up, clock)
    cloud, own = up.cloud.cloud, up.cloud.first.organization
    material = await gathering.gathered(cloud.store, cloud.blobs, partial(cloud.room.run, own), own, tmp_path)
    assert sorted(texts for *_, texts in material.sealed.files) == [False, True]


async def test_the_readings_of_other_organizations_are_not_there(up: Uploads, clock: Clock) -> None:
    await up.readings(*(piece(number, t=float(number)) for number in range(12)))
    await seal(up, clock)
    cloud = up.cloud.cloud
    other = await cloud.store.write(lambda sql: create_owner(sql, "Other", now()))
    client = up.cloud.client(other.id)
    text = "SELECT COUNT(*) AS n FROM readings"
    (row,) = await client.call(DATA, "", "tabular_data_by_sql", organization_id=other.organization, sql_query=text)
    assert bson.decode(row) == {"n": 0}
    (path, *_) = _files(up)
    for attack in (f"FROM read_parquet('{path}')", f"FROM '{path}'", f"SELECT content FROM read_blob('{path}')"):
        with pytest.raises(MachineError) as caught:
            await client.call(DATA, "", "tabular_data_by_sql", organization_id=other.organization, sql_query=attack)
        assert caught.value.kind is ErrorKind.INVALID


async def test_a_missing_file_is_reported(up: Uploads, clock: Clock) -> None:
    await up.readings(*(piece(number, t=float(number)) for number in range(12)))
    await seal(up, clock)
    _files(up)[0].unlink()
    with pytest.raises(MachineError, match="doctor") as caught:
        await rows(up, "SELECT AVG(data.t) AS t FROM readings")
    assert caught.value.kind is ErrorKind.UNAVAILABLE


async def test_files_of_a_bucket_are_copied(up: Uploads, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    await up.readings(*(piece(number, t=float(number)) for number in range(12)))
    await seal(up, clock)
    monkeypatch.setattr(type(up.cloud.cloud.blobs), "path", lambda self, key: None)
    assert await rows(up, "SELECT AVG(data.t) AS t FROM readings") == [{"t": 5.5}]
    monkeypatch.setattr(gathering, "MAX_COPIED", 100)
    with pytest.raises(MachineError) as caught:
        await rows(up, "SELECT AVG(data.t) AS t FROM readings")
    assert caught.value.kind is ErrorKind.EXHAUSTED


async def test_an_organization_with_as_many_columns_as_there_can_be(up: Uploads, clock: Clock) -> None:
    for start in range(0, MAX_COLUMNS + 500, 400):
        await up.readings(piece(start, **{f"f{number}": float(number) for number in range(start, start + 400)}))
    text = "SELECT data, data.f3 AS first, data.f2100 AS last FROM readings ORDER BY time_requested"
    before = await rows(up, text)
    await seal(up, clock)
    assert await rows(up, text) == before
    assert await rows(up, "SELECT SUM(data.f3) AS s FROM readings") == [{"s": 3.0}]


def _files(up: Uploads) -> list[Path]:
    return [path for path in Path(up.cloud.cloud.blobs.where).glob("??/*") if path.is_file()]
