"""Aggregations of MongoDB over readings: answers, refusals that name the operator, and hostile BSON."""

from __future__ import annotations

import struct
import tracemalloc
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import bson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloud.domain.queries.mql import reading
from cloud.domain.queries.mql.expressions import FUNCTIONS, SPECIAL
from cloud.domain.queries.mql.stages import ACCUMULATORS, MAX_STAGES, STAGES, translated
from cloud.domain.queries.statement import Invalid
from cloud.server.memory import MemoryCloud
from schema.errors import ErrorKind, MachineError
from tests.unit.cloud.captured import DATA, Uploads, at, piece

pytest.importorskip("_duckdb", reason="SQL needs the extra `data`")

READINGS: Final[tuple[dict[str, Any], ...]] = (
    {"celsius": 20.0, "mode": "auto", "on": True, "errors": [1, 2]},
    {"celsius": 21.5, "mode": "manual", "on": False, "errors": []},
    {"celsius": 23.0, "mode": "auto", "on": True},
    {"celsius": "broken", "mode": "auto", "inner": {"a": 1.0}},
    {"mode": None, "celsius": 19.0, "errors": ["x"]},
)


@pytest.fixture
async def up(cloud: MemoryCloud, part: str) -> Uploads:
    uploads = Uploads(cloud, part)
    pieces = [piece(number, readings=each) for number, each in enumerate(READINGS)]
    await uploads.readings(*pieces[:3], component_name="boiler", tags=["lab", "hot"])
    await uploads.readings(*pieces[3:], component_name="outside")
    return uploads


async def answered(up: Uploads, *stages: dict[str, Any], prefix: str = "") -> list[dict[str, Any]]:
    answer = await up.ask(
        "tabular_data_by_mql",
        organization_id=up.cloud.first.organization,
        mql_binary=[bson.encode(stage) for stage in stages],
        query_prefix_name=prefix,
    )
    return [bson.decode(item, bson.CodecOptions(tz_aware=True)) for item in answer]


C, MODE, ON = "data.readings.celsius", "data.readings.mode", "data.readings.on"

MATCHES: Final[list[tuple[dict[str, Any], list[int]]]] = [
    ({}, [0, 1, 2, 3, 4]),
    ({"component_name": "boiler"}, [0, 1, 2]),
    ({C: 20}, [0]),
    ({C: {"$gt": 20}}, [1, 2]),
    ({C: {"$gte": 20, "$lt": 23}}, [0, 1]),
    ({C: {"$lte": 19.0}}, [4]),
    ({C: {"$ne": 20}}, [1, 2, 3, 4]),
    ({C: {"$in": [20, 23.0, "x"]}}, [0, 2]),
    ({C: {"$nin": [20, 23.0]}}, [1, 3, 4]),
    ({C: {"$exists": True}}, [0, 1, 2, 4]),
    ({C: {"$exists": False}}, [3]),
    ({MODE: "auto"}, [0, 2, 3]),
    ({MODE: {"$gt": "auto"}}, [1]),
    ({MODE: {"$gt": 5}}, []),
    ({MODE: None}, [4]),
    ({MODE: {"$ne": None}}, [0, 1, 2, 3]),
    ({MODE: {"$regex": "^MAN", "$options": "i"}}, [1]),
    ({MODE: bson.Regex("^au")}, [0, 2, 3]),
    ({MODE: {"$not": {"$eq": "auto"}}}, [1, 4]),
    ({ON: True}, [0, 2]),
    ({ON: {"$ne": True}}, [1, 3, 4]),
    ({"data.readings.inner.a": 1}, [3]),
    ({"data.readings.nothing.at.all": 1}, []),
    ({"nothing": {"$exists": False}}, [0, 1, 2, 3, 4]),
    ({"tags": "lab"}, [0, 1, 2]),
    ({"tags": {"$ne": "lab"}}, [3, 4]),
    ({"time_requested": {"$gte": at(1), "$lt": at(3)}}, [1, 2]),
    ({"time_requested": at(4)}, [4]),
    ({C: at(4)}, []),
    ({"$or": [{C: 20}, {MODE: "manual"}]}, [0, 1]),
    ({"$and": [{C: {"$gt": 20}}, {MODE: "auto"}]}, [2]),
    ({"$nor": [{C: 20}, {C: {"$exists": False}}]}, [1, 2, 4]),
    ({"$expr": {"$gt": ["$data.readings.celsius", {"$add": [20, 1]}]}}, [1, 2]),
]


@pytest.mark.parametrize(("condition", "expected"), MATCHES)
async def test_conditions(up: Uploads, condition: dict[str, Any], expected: list[int]) -> None:
    stages = {"$match": condition}, {"$sort": {"time_requested": 1}}, {"$project": {"time_requested": 1}}
    answer = await answered(up, *stages)
    assert [row["time_requested"] for row in answer] == [at(number) for number in expected]


FIRST: Final = {"$match": {"time_requested": at(0)}}
EXPRESSIONS: Final[list[tuple[Any, Any]]] = [
    ("$data.readings.celsius", 20.0),
    ({"$add": ["$data.readings.celsius", 1, 2.5]}, 23.5),
    ({"$subtract": ["$data.readings.celsius", 5]}, 15.0),
    ({"$subtract": ["$time_received", "$time_requested"]}, 500),
    ({"$multiply": [2, "$data.readings.celsius"]}, 40.0),
    ({"$divide": ["$data.readings.celsius", 8]}, 2.5),
    ({"$divide": [1, 0]}, None),
    ({"$mod": [17, 5]}, 2),
    ({"$pow": [2, 10]}, 1024.0),
    ({"$abs": -3}, 3),
    ({"$floor": 1.7}, 1.0),
    ({"$ceil": 1.2}, 2.0),
    ({"$sqrt": 16}, 4.0),
    ({"$sqrt": -1}, None),
    ({"$round": [2.567, 1]}, 2.6),
    ({"$add": ["$data.readings.mode", 1]}, None),
    ({"$concat": ["$component_name", ":", "$data.readings.mode"]}, "boiler:auto"),
    ({"$toUpper": "$component_name"}, "BOILER"),
    ({"$toLower": "ABC"}, "abc"),
    ({"$strLenCP": "üü"}, 2),
    ({"$toString": "$data.readings.celsius"}, "20.0"),
    ({"$toDouble": "1.5"}, 1.5),
    ({"$cond": [{"$gt": ["$data.readings.celsius", 15]}, "warm", "cold"]}, "warm"),
    ({"$cond": {"if": "$data.readings.nothing", "then": 1, "else": 2}}, 2),
    ({"$ifNull": ["$data.readings.nothing", 7]}, 7),
    ({"$and": ["$data.readings.on", {"$eq": ["$data.readings.mode", "auto"]}]}, True),
    ({"$or": [False, 0]}, False),
    ({"$not": ["$data.readings.on"]}, False),
    ({"$ne": ["$data.readings.mode", "auto"]}, False),
    ({"$literal": "$x"}, "$x"),
    ({"$dateTrunc": {"date": "$time_requested", "unit": "hour"}}, at(0)),
    ({"$dateTrunc": {"date": "$time_requested", "unit": "week"}}, datetime(2025, 12, 28, tzinfo=UTC)),
    (
        {"$dateTrunc": {"date": "$time_requested", "unit": "week", "startOfWeek": "monday"}},
        at(-3 * 86_400),
    ),
    ({"$dateTrunc": {"date": "$time_received", "unit": "minute", "binSize": 15}}, at(0)),
    ({"$dateTrunc": {"date": "$time_received", "unit": "month", "binSize": 3}}, at(0)),
    ({"$dateAdd": {"startDate": "$time_requested", "unit": "day", "amount": 2}}, at(2 * 86_400)),
    (
        {"$dateSubtract": {"startDate": "$time_requested", "unit": "quarter", "amount": 1}},
        at(-92 * 86_400),
    ),
    ({"$dateDiff": {"startDate": "$time_requested", "endDate": "$time_received", "unit": "millisecond"}}, 500),
    ({"$year": "$time_requested"}, 2026),
    ({"$month": "$time_requested"}, 1),
    ({"$dayOfMonth": "$time_requested"}, 1),
    ({"$dayOfWeek": "$time_requested"}, 5),
    ({"$dayOfYear": "$time_requested"}, 1),
    ({"$hour": "$time_requested"}, 0),
    ({"$minute": "$time_requested"}, 0),
    ({"$second": "$time_received"}, 0),
    ({"$millisecond": "$time_received"}, 500),
    ({"a": "$component_name", "b": {"c": 1}}, {"a": "boiler", "b": {"c": 1}}),
    ({"$lt": ["$time_requested", "$$NOW"]}, True),
]


def test_every_operator_has_an_example() -> None:
    named = {name for value, _ in EXPRESSIONS if isinstance(value, dict) for name in value}
    assert {*FUNCTIONS, *SPECIAL} - named == set()


async def test_expressions(up: Uploads) -> None:
    added = {f"f{number}": value for number, (value, _) in enumerate(EXPRESSIONS)}
    (row,) = await answered(up, FIRST, {"$addFields": added})
    assert [(value, row[f"f{number}"]) for number, (value, _) in enumerate(EXPRESSIONS)] == EXPRESSIONS
    assert row["component_name"] == "boiler"


async def test_a_group_has_every_accumulator(up: Uploads) -> None:
    group = {
        "_id": "$component_name",
        "n": {"$sum": 1},
        "sum": {"$sum": "$data.readings.celsius"},
        "avg": {"$avg": "$data.readings.celsius"},
        "min": {"$min": "$data.readings.celsius"},
        "max": {"$max": "$data.readings.celsius"},
        "first": {"$first": "$data.readings.mode"},
        "last": {"$last": "$data.readings.mode"},
        "count": {"$count": {}},
        "push": {"$push": "$data.readings.celsius"},
        "set": {"$addToSet": "$data.readings.on"},
        "pop": {"$stdDevPop": "$data.readings.celsius"},
        "samp": {"$stdDevSamp": "$data.readings.celsius"},
    }
    named = {name for each in group.values() if isinstance(each, dict) for name in each}
    assert named == set(ACCUMULATORS)
    stages = {"$sort": {"time_requested": -1}}, {"$group": group}, {"$sort": {"_id": 1}}
    boiler, outside = await answered(up, *stages)
    assert boiler["set"] in ([True, False], [False, True])
    assert {name: boiler[name] for name in ("_id", "n", "sum", "avg", "min", "max", "first", "last", "count")} == {
        "_id": "boiler", "n": 3, "sum": 64.5, "avg": 21.5, "min": 20.0, "max": 23.0, "first": "auto", "last": "auto",
        "count": 3,
    }  # fmt: skip
    assert boiler["push"] == [23.0, 21.5, 20.0]
    assert boiler["samp"] == pytest.approx(1.5)
    assert boiler["pop"] == pytest.approx(1.2247, abs=1e-4)
    assert (outside["n"], outside["sum"], outside["set"], outside["first"]) == (2, 19.0, [], None)


async def test_stages_apply_in_their_order(up: Uploads) -> None:
    hours = {"_id": {"hour": {"$dateTrunc": {"date": "$time_requested", "unit": "hour"}}, "name": "$component_name"}}
    stages: tuple[dict[str, Any], ...] = (
        {"$match": {"component_name": {"$in": ["boiler", "outside"]}}},
        {"$group": {**hours, "mean": {"$avg": "$data.readings.celsius"}}},
        {"$match": {"mean": {"$gt": 20}}},
        {"$project": {"_id": 0, "hour": "$_id.hour", "name": "$_id.name", "mean": 1}},
    )
    assert await answered(up, *stages) == [{"hour": at(0), "name": "boiler", "mean": 21.5}]
    order = {"$sort": {"data.readings.celsius": -1}}
    keep = {"$project": {"c": "$data.readings.celsius"}}
    assert await answered(up, order, {"$skip": 1}, {"$limit": 2}, keep) == [{"c": 21.5}, {"c": 20.0}]
    assert await answered(up, order, {"$limit": 2}, {"$skip": 1}, keep) == [{"c": 21.5}]
    assert await answered(up, order, {"$limit": 3}, {"$match": {C: {"$lt": 22}}}, keep) == [{"c": 21.5}, {"c": 20.0}]
    twice = {"$addFields": {"d": {"$add": ["$c", "$c"]}}}
    assert await answered(up, order, keep, twice, {"$limit": 1}) == [{"c": 23.0, "d": 46.0}]
    assert await answered(up, {"$match": {C: {"$gt": 20}}}, {"$count": "n"}) == [{"n": 2}]
    assert await answered(up, {"$match": {C: 99}}, {"$count": "n"}) == []
    assert await answered(up, {"$match": {C: 99}}, {"$group": {"_id": None, "n": {"$sum": 1}}}) == []
    assert await answered(up, {"$group": {"_id": None, "n": {"$sum": 1}}}) == [{"_id": None, "n": 5}]
    assert await answered(up, {"$sortByCount": "$component_name"}) == [
        {"_id": "boiler", "count": 3},
        {"_id": "outside", "count": 2},
    ]


async def test_lists_are_unwound(up: Uploads) -> None:
    tags = {"$unwind": "$tags"}, {"$group": {"_id": "$tags", "n": {"$sum": 1}}}, {"$sort": {"_id": 1}}
    assert await answered(up, *tags) == [{"_id": "hot", "n": 3}, {"_id": "lab", "n": 3}]
    errors = {"$project": {"e": "$data.readings.errors"}}
    numbers = {"$match": {"e": {"$gt": 0}}}, {"$sort": {"e": 1}}
    assert await answered(up, errors, {"$unwind": "$e"}, *numbers) == [{"e": 1}, {"e": 2}]
    assert len(await answered(up, errors, {"$unwind": {"path": "$e"}})) == 3
    assert len(await answered(up, errors, {"$unwind": {"path": "$e", "preserveNullAndEmptyArrays": True}})) == 6


async def test_fields_are_kept_and_left_out(up: Uploads) -> None:
    (row,) = await answered(up, FIRST, {"$project": {C: 1, MODE: 1, "_id": 0}})
    assert row == {"data": {"readings": {"celsius": 20.0, "mode": "auto"}}}
    (row,) = await answered(up, FIRST, {"$unset": ["data", "tags"]}, {"$project": {"time_received": 0}})
    assert "data" not in row
    assert {"time_requested", "component_name"} <= set(row)
    (row,) = await answered(up, FIRST, {"$limit": 1})
    assert row["data"] == {"readings": READINGS[0]}


async def test_only_the_organization_is_asked(up: Uploads) -> None:
    with pytest.raises(MachineError) as caught:
        await up.owner.call(DATA, "", "tabular_data_by_mql", organization_id="none", mql_binary=[bson.encode(FIRST)])
    assert caught.value.kind is ErrorKind.NOT_FOUND


# ---- saved aggregations


async def test_aggregations_are_saved_and_used_as_prefix(up: Uploads) -> None:
    organization = up.cloud.first.organization
    stages = [bson.encode({"$match": {C: {"$gt": 20}}}), bson.encode({"$sort": {C: -1}})]
    subject = await up.ask("create_saved_query", organization_id=organization, name="hot", mql_binary=stages)
    query = await up.ask("get_saved_query", id=subject)
    assert (query["name"], query["mql_binary"], query["organization_id"]) == ("hot", stages, organization)
    keep = {"$project": {"c": "$data.readings.celsius"}}
    assert await answered(up, keep, prefix="hot") == [{"c": 23.0}, {"c": 21.5}]
    await up.ask("update_saved_query", id=subject, name="hottest")
    await up.ask("update_saved_query", id=subject, mql_binary=[*stages, bson.encode({"$limit": 1})])
    assert await answered(up, keep, prefix="hottest") == [{"c": 23.0}]
    assert [each["id"] for each in await up.ask("list_saved_queries", organization_id=organization)] == [subject]
    with pytest.raises(MachineError, match="stage 1") as caught:
        await up.ask("create_saved_query", organization_id=organization, name="x", mql_binary=[b"\0"])
    assert caught.value.kind is ErrorKind.INVALID
    await up.ask("delete_saved_query", id=subject)
    with pytest.raises(MachineError) as caught:
        await answered(up, keep, prefix="hottest")
    assert caught.value.kind is ErrorKind.NOT_FOUND


# ---- refusals

REFUSED: Final[list[tuple[list[dict[str, Any]], str]]] = [
    ([], "0 stages"),
    ([{"$lookup": {"from": "keys"}}], r"\$lookup"),
    ([{"$out": "x"}], r"\$out"),
    ([{"$merge": "x"}], r"\$merge"),
    ([{"$unionWith": "keys"}], r"\$unionWith"),
    ([{"$facet": {}}], r"\$facet"),
    ([{"$match": {"a": 1}, "$limit": 1}], "stage 1"),
    ([{"$match": {"$where": "sleep(1)"}}], r"\$where"),
    ([{"$match": {"tags": {"$elemMatch": {"a": 1}}}}], r"stage 1, \$match: the operator \$elemMatch"),
    ([{"$match": {"a": {"$in": 1}}}], "list"),
    ([{"$match": {"$or": []}}], r"\$or"),
    ([{"$match": {"a": {"$regex": "x", "$options": "x"}}}], "option"),
    ([{"$match": {"a": [1]}}], "list"),
    ([{"$match": 1}], "object"),
    ([{"$addFields": {"a": {"$function": {"body": "x"}}}}], r"\$function"),
    ([{"$addFields": {"a.b": 1}}], "new field"),
    ([{"$addFields": {"$a": 1}}], r"\$a"),
    ([{"$addFields": {"a": "$$ROOT"}}], "ROOT"),
    ([{"$addFields": {"a": {"$dateTrunc": {"date": "$time_requested", "unit": "'"}}}}], "unit"),
    ([{"$addFields": {"a": {"$dateTrunc": {"date": 1, "unit": "day", "timezone": "Europe/Berlin"}}}}], "time zone"),
    ([{"$project": {"a": 1, "b": 0}}], "mixed"),
    ([{"$project": {"a": 1, "a.b": 1}}], "twice"),
    ([{"$group": {"n": {"$sum": 1}}}], "_id"),
    ([{"$group": {"_id": 1, "n": {"$accumulator": {}}}}], r"\$accumulator"),
    ([{"$sort": {"a": {"$meta": "x"}}}], "direction"),
    ([{"$limit": 0}], "whole number"),
    ([{"$skip": -1}], "whole number"),
    ([{"$limit": 1}] * (MAX_STAGES + 1), "stages"),
    ([{"$match": {"a": bson.ObjectId()}}], "object id"),
    ([{"$match": {"a": bson.Code("x")}}], "code"),
    ([{"$match": {"a": float("nan")}}], "float"),
    ([{"$match": {"a": "\0"}}], "NUL"),
]


@pytest.mark.parametrize(("stages", "words"), REFUSED)
def test_refusals_name_the_stage_or_operator(stages: list[dict[str, Any]], words: str) -> None:
    with pytest.raises(Invalid, match=words):
        translated([bson.encode(stage) for stage in stages])


NESTED: Final = 40


def test_a_field_that_doubles_itself_does_not_grow_without_bound() -> None:
    stages = [{"$addFields": {"a": {"$add": ["$a", "$a"]}}}] * MAX_STAGES
    assert len(translated([bson.encode(stage) for stage in stages])) < 200_000


def nested(levels: int) -> Any:
    value: Any = "$data.a"
    for _ in range(levels):
        value = {"$cond": [value, "$data.a", 1]}  # its SQL names the condition eight times
    return value


HUGE: dict[str, dict[str, Any]] = {
    "nested": {"$project": {"x": nested(14)}},
    "many": {"$project": {f"x{number}": nested(3) for number in range(400)}},
    "arguments": {"$project": {"x": {"$add": [nested(3)] * 100}}},
    "path": {"$match": {"data" + ".a" * 100_000: {"$in": list(range(4000))}}},
    "values": {"$match": {"data.a": {"$in": list(range(4900))}}},
    "conditions": {"$match": {"$or": [{"data.a": {"$in": list(range(90))}} for _ in range(50)]}},
}


@pytest.mark.parametrize("name", HUGE)
def test_sql_that_would_be_huge_is_refused_before_it_is_made(name: str) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(Invalid, match=r"too large|more than"):
            translated([bson.encode(HUGE[name])])
        assert tracemalloc.get_traced_memory()[1] < 80e6
    finally:
        tracemalloc.stop()


def test_hostile_bson_is_refused() -> None:
    whole = bson.encode({"$match": {"a": ["x", {"b": 1.5}], "c": None, "d": True}})
    for size in range(len(whole)):
        with pytest.raises(Invalid):
            reading.read(whole[:size])
    for place in range(len(whole)):
        for byte in (0, 1, 0x7F, 0x80, 0xFF):
            changed = bytearray(whole)
            changed[place] = byte
            try:
                reading.read(bytes(changed))
            except Invalid:
                continue
    with pytest.raises(Invalid, match="follow"):
        reading.read(whole + b"\0")
    deep: Any = 1
    for _ in range(NESTED):
        deep = {"a": deep}
    with pytest.raises(Invalid, match="levels"):
        reading.read(bson.encode(deep))
    with pytest.raises(Invalid, match="values"):
        reading.read(bson.encode({"a": [1] * (reading.MAX_VALUES + 1)}))
    twice = b"\x08a\0\1" * 2
    with pytest.raises(Invalid, match="twice"):
        reading.read(struct.pack("<i", len(twice) + 5) + twice + b"\0")


NAMES = st.text().filter(lambda name: "\0" not in name)
TIMES = st.datetimes(datetime(1970, 1, 1), datetime(2100, 1, 1)).map(
    lambda item: item.replace(tzinfo=UTC, microsecond=0) + timedelta(milliseconds=7)
)
SCALARS = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text() | TIMES
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3))


@given(st.dictionaries(NAMES, VALUES, max_size=5))
def test_bson_of_the_official_implementation_is_read(document: dict[str, Any]) -> None:
    assert reading.read(bson.encode(document)) == document


# ---- attacks

TEXTS: Final = (
    "' OR 1=1 --", "'; DROP VIEW readings; --", '" FROM sources --', '"', "''", "\\'", "$$", "$1", "/*", "*/", "\n--",
    "') UNION SELECT content FROM read_text('/etc/passwd') --", '"]) FROM read_csv(\'/etc/passwd\') --',
    "\ufeff", "x\u2028y",
)  # fmt: skip


@pytest.mark.parametrize("text", TEXTS)
async def test_texts_and_names_never_become_sql(up: Uploads, text: str) -> None:
    assert await answered(up, {"$match": {MODE: text}}) == []
    assert len(await answered(up, {"$match": {MODE: {"$ne": text}}})) == len(READINGS)
    name = text.replace(".", "").lstrip("$") or "x"
    (row,) = await answered(up, FIRST, {"$project": {name: {"$literal": text}}})
    assert row == {name: text}
    (row,) = await answered(up, FIRST, {"$group": {"_id": {name: {"$literal": text}}, name: {"$sum": 1}}})
    assert row == {"_id": {name: text}, name: 1}
    (row,) = await answered(up, FIRST, {"$project": {"a": f"$data.{name}.{name}"}})
    assert row == {"a": None}
    (row,) = await answered(up, FIRST, {"$addFields": {"a": {name: 1}}}, {"$project": {"b": f"$a.{name}"}})
    assert row == {"b": 1}


ANY_STAGE = st.dictionaries(st.sampled_from([*STAGES, *FUNCTIONS, *SPECIAL, "a", "$x"]), VALUES, max_size=2)


@given(st.lists(ANY_STAGE, max_size=4))
def test_any_stages_are_translated_or_refused(stages: list[dict[str, Any]]) -> None:
    with suppress(Invalid):
        assert translated([bson.encode(stage) for stage in stages]).startswith("SELECT")
