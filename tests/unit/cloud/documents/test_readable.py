"""Every client can read what was saved: limits of depth, numbers and characters."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloud.documents.readable import MAX_DEPTH, check_readable
from cloud.server.memory import MemoryCloud
from schema.errors import ErrorKind, MachineError

DATA = "viam.app.data.v1.DataService"
SYNC = "viam.app.datasync.v1.DataSyncService"


def nested(depth: int, *, lists: bool = False) -> dict[str, Any]:
    """Return a document with objects nested `depth` deep, the innermost ones lists if `lists` is set."""
    result: Any = 1
    for _ in range(depth - 1):
        result = [result] if lists else {"a": result}
    return {"a": result}


WRONG = [
    ('{"a": {"b": NaN}}', "a.b: nan"),
    ('{"a": [1, 1e999]}', "a.1: inf"),
    ('{"a": -Infinity}', "a: -inf"),
    (r'{"a": "\ud800"}', "a: "),
    (r'{"a": {"\udfff": 1}}', "a: "),
    (json.dumps(nested(MAX_DEPTH + 1)), "levels of objects and lists"),
    (json.dumps(nested(MAX_DEPTH + 1, lists=True)), "levels of objects and lists"),
    ("[" * 100_000, "JSON"),
    ('{"a":' * 5_000, "JSON"),
    ("[" * 100_000, "more than 32 levels of objects and lists"),
]


@pytest.mark.parametrize(("text", "words"), WRONG, ids=range(len(WRONG)))
async def test_documents_that_clients_cannot_read_are_not_saved(
    cloud: MemoryCloud, part: str, text: str, words: str
) -> None:
    owner = cloud.first.organization
    fragment = (await cloud.app("create_fragment", organization_id=owner, name="drive"))["id"]
    for method, given_to, argument in (
        ("update_robot_part", part, "robot_config_json"),
        ("update_fragment", fragment, "fragment_config_json"),
    ):
        with pytest.raises(MachineError) as caught:
            await cloud.app(method, id=given_to, **{argument: text})
        assert caught.value.kind is ErrorKind.INVALID
        assert words in str(caught.value)
    assert (await cloud.app("get_robot_part", id=part))["config_json"] == "{}"


@pytest.mark.parametrize("lists", [False, True])
async def test_the_deepest_document_is_read_everywhere(cloud: MemoryCloud, part: str, *, lists: bool) -> None:
    deepest = nested(MAX_DEPTH, lists=lists)
    await cloud.app("update_robot_part", id=part, robot_config_json=json.dumps(deepest))
    await cloud.app("update_robot_part", id=part, robot_config_json="{}")
    (entry, *_) = (await cloud.app("get_robot_part_history", id=part))["history"]
    assert entry["old"]["robot_config"] == deepest
    fragment = await cloud.app("create_fragment", organization_id=cloud.first.organization, name="drive")
    await cloud.app("update_fragment", id=fragment["id"], fragment_config_json=json.dumps(deepest))
    assert (await cloud.app("get_fragment_history", id=fragment["id"]))["history"][0]["config"] == deepest


async def test_a_path_cannot_exceed_the_allowed_depth(cloud: MemoryCloud, part: str) -> None:
    changes = [{"path": ".".join("a" * (MAX_DEPTH + 1)), "value": 1}]
    (item,) = await cloud.app("set_config_property", robot_part_id=part, property_changes=changes)
    assert "is not a valid path" in item["error"]
    assert (await cloud.app("get_robot_part", id=part))["config_json"] == "{}"


async def test_metadata_is_readable_by_every_client(cloud: MemoryCloud, machine: str) -> None:
    with pytest.raises(MachineError, match="x: nan"):
        await cloud.app("update_robot_metadata", id=machine, data={"x": math.nan})
    assert await cloud.app("get_robot_metadata", id=machine) == {}


async def test_a_reading_that_is_not_a_number_does_not_break_queries(cloud: MemoryCloud, part: str) -> None:
    metadata = {"part_id": part, "component_type": "sensor", "component_name": "s", "method_name": "Readings"}
    sent = [{"struct": {"readings": {"t": number}}} for number in (math.nan, 1.0, math.inf, 3.0)]
    client = cloud.client()
    await client.call(SYNC, "", "data_capture_upload", metadata=metadata, sensor_contents=sent)
    query = "SELECT SUM(data.readings.t) AS sum, COUNT(*) AS n FROM readings"
    answer = await client.call(
        DATA, "", "tabular_data_by_sql", organization_id=cloud.first.organization, sql_query=query
    )
    assert len(answer) == 1
    assert b"sum\x00\x00\x00\x00\x00\x00\x00\x10@" in answer[0], "a BSON double: 4.0"


@settings(max_examples=30)
@given(
    st.recursive(
        st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=10,
    )
)
def test_readable_documents_survive_writing_and_reading(value: Any) -> None:
    document = {"a": value}
    check_readable(document)
    assert json.loads(json.dumps(document, ensure_ascii=False, allow_nan=False).encode()) == document
