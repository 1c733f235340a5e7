"""Revisions for the commands, with the same numbers and names as the pages."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from cloud.domain.organizations.first import create_owner
from cloud.server.memory import MemoryCloud
from cloud.values.limits import HISTORY as HISTORY_LIMIT
from rpc.api.client import ApiClient
from rpc.api.cloud_v1 import HISTORY
from schema.errors import ErrorKind, MachineError
from schema.secrets import MASK
from tests.unit.cloud.pages import signed_in
from tests.unit.cloud.web.test_web_fleet import key_at


async def of_part(client: ApiClient, part: str, **page: int) -> list[dict[str, Any]]:
    return list(await client.call(HISTORY, "", "list_part_revisions", part_id=part, **page))


async def of_fragment(client: ApiClient, fragment: str, **page: int) -> list[dict[str, Any]]:
    return list(await client.call(HISTORY, "", "list_fragment_revisions", fragment_id=fragment, **page))


def documents(revisions: list[dict[str, Any]]) -> list[Any]:
    return [json.loads(revision["document_json"]) for revision in revisions]


async def save(cloud: MemoryCloud, part: str, *configurations: dict[str, Any]) -> None:
    for configuration in configurations:
        await cloud.app("update_robot_part", id=part, name="", robot_config_json=json.dumps(configuration))


async def test_revisions_match_those_of_the_page(cloud: MemoryCloud, part: str) -> None:
    await save(cloud, part, {"a": 1}, {"a": 1.0, "b": 2**53 + 1})
    revisions = await of_part(cloud.client(), part)
    assert [revision["revision"] for revision in revisions] == [3, 2, 1]
    assert [revision["author"] for revision in revisions] == ["owner", "owner", "machine-cloud"]
    assert (revisions[0]["author_type"], revisions[0]["author_id"]) == ("api-key", cloud.first.id)
    assert repr(documents(revisions)[0]) == repr({"a": 1.0, "b": 2**53 + 1})
    person = await signed_in(cloud)
    page = (await person.get(f"/machines/{part}/history")).text
    assert re.findall(r"<strong>Revision ([0-9]+)</strong>", page) == ["3", "2", "1"]
    assert re.findall(r"ago by ([^<]+)<", page) == [revision["author"] for revision in revisions]
    published = (await cloud.app("get_robot_part_history", id=part))["history"]
    assert [json.loads(entry["old"]["robot_config_json"]) for entry in published] == documents(revisions)[1:]
    assert [entry["when"] for entry in published] == [revision["saved"] for revision in revisions[:2]]


async def test_pages_of_the_history(cloud: MemoryCloud, part: str) -> None:
    await save(cloud, part, *({"a": number} for number in range(4)))
    for page, numbers in (
        ({"limit": 2}, [5, 4]),
        ({"before": 4, "limit": 2}, [3, 2]),
        ({"before": 2}, [1]),
        ({"before": 1}, []),
        ({"limit": 0}, [5, 4, 3, 2, 1]),
        ({"limit": 999_999}, [5, 4, 3, 2, 1]),
    ):
        assert [revision["revision"] for revision in await of_part(cloud.client(), part, **page)] == numbers, page
    for page in ({"before": 0}, {"before": -1}, {"limit": -1}, {"before": 99_999_999_999}):
        with pytest.raises(MachineError, match=next(iter(page))) as caught:
            await of_part(cloud.client(), part, **page)
        assert caught.value.kind is ErrorKind.INVALID


async def test_a_page_ends_at_the_limit_of_its_size(cloud: MemoryCloud, part: str) -> None:
    large = "x" * (HISTORY_LIMIT.value * 2 // 5)
    await save(cloud, part, *({"text": large, "a": number} for number in range(4)))
    assert [revision["revision"] for revision in await of_part(cloud.client(), part)] == [5, 4]
    assert [revision["revision"] for revision in await of_part(cloud.client(), part, before=4)] == [3, 2]


async def test_revisions_of_a_fragment(cloud: MemoryCloud) -> None:
    fragment = await cloud.app(
        "create_fragment", name="drive", config={"a": 1}, organization_id=cloud.first.organization
    )
    await cloud.app("update_fragment", id=fragment["id"], name="", config={"a": 2})
    revisions = await of_fragment(cloud.client(), fragment["id"])
    assert [(revision["revision"], revision["author"]) for revision in revisions] == [(2, "owner"), (1, "owner")]
    assert documents(revisions) == [{"a": 2}, {"a": 1}]
    (first,) = await of_fragment(cloud.client(), fragment["id"], before=2)
    assert first["revision"] == 1


async def test_others_cannot_read_the_history(cloud: MemoryCloud, part: str) -> None:
    fragment = await cloud.app("create_fragment", name="drive", config={}, organization_id=cloud.first.organization)
    second = await cloud.cloud.store.write(lambda sql: create_owner(sql, "Other", cloud.cloud.clock()))
    for list_revisions, subject in ((of_part, part), (of_fragment, fragment["id"])):
        for client, id_ in ((cloud.client(second.id), subject), (cloud.client(), "nobody")):
            with pytest.raises(MachineError, match=id_) as caught:
                await list_revisions(client, id_)
            assert caught.value.kind is ErrorKind.NOT_FOUND


async def test_operators_do_not_read_secrets(cloud: MemoryCloud, part: str) -> None:
    fragment = await cloud.app("create_fragment", name="drive", config={}, organization_id=cloud.first.organization)
    operator = cloud.client((await key_at(cloud, "organization", cloud.first.organization))[0])
    await save(cloud, part, {"modules": [{"name": "m", "env": {"TOKEN": "hush-hush"}}], "note": "hush-hush"})
    masked = {"modules": [{"name": "m", "env": {"TOKEN": MASK}}], "note": MASK}
    await save(cloud, part, {"note": "hush-hush"})  # masked because another revision on the page says what it is
    assert documents(await of_part(operator, part))[:2] == [{"note": MASK}, masked]
    await cloud.app("update_fragment", id=fragment["id"], name="", config={"password": "hush-hush"})
    assert documents(await of_fragment(operator, fragment["id"]))[0] == {"password": MASK}
    assert documents(await of_part(cloud.client(), part))[0]["note"] == "hush-hush"
    assert documents(await of_fragment(cloud.client(), fragment["id"]))[0] == {"password": "hush-hush"}
