"""Revisions as JSON for the commands, with the same numbers and names as the pages."""

from __future__ import annotations

import json
import re
from typing import Any

from cloud.domain.organizations.first import create_owner
from cloud.server.memory import MemoryCloud
from schema.secrets import MASK
from tests.unit.cloud.pages import signed_in
from tests.unit.cloud.web.test_web_fleet import key_at
from tests.unit.runtime.parts.web.client import Browser


async def asked(person: Browser, path: str, status: int = 200) -> Any:
    reply = await person.get(f"/api/v1/{path}")
    assert reply.status == status, reply.text
    found = json.loads(reply.text)
    return found["error"] if status >= 400 else found["revisions"]


async def save(cloud: MemoryCloud, part: str, *documents: dict[str, Any]) -> None:
    for one in documents:
        await cloud.app("update_robot_part", id=part, name="", robot_config_json=json.dumps(one))


async def test_versions_match_those_of_the_page(cloud: MemoryCloud, part: str) -> None:
    await save(cloud, part, {"a": 1}, {"a": 1.0, "b": 2**53 + 1})
    person = await signed_in(cloud)
    found = await asked(person, f"parts/{part}/revisions")
    assert [one["revision"] for one in found] == [3, 2, 1]
    assert [one["author"] for one in found] == ["owner", "owner", "machine-cloud"]
    assert (found[0]["author_type"], found[0]["author_id"]) == ("api-key", cloud.first.id)
    assert repr(found[0]["document"]) == repr({"a": 1.0, "b": 2**53 + 1})
    page = (await person.get(f"/machines/{part}/history")).text
    assert re.findall(r"<strong>Revision ([0-9]+)</strong>", page) == ["3", "2", "1"]
    assert re.findall(r"ago by ([^<]+)<", page) == [one["author"] for one in found]
    told = await cloud.app("get_robot_part_history", id=part)
    assert [one["old"]["robot_config_json"] for one in told["history"]] == [
        json.dumps(one["document"]) for one in found[1:]
    ]


async def test_pages_of_the_history(cloud: MemoryCloud, part: str) -> None:
    await save(cloud, part, *({"a": one} for one in range(4)))
    person = await signed_in(cloud)
    for query, numbers in (
        ("limit=2", [5, 4]),
        ("before=4&limit=2", [3, 2]),
        ("before=2", [1]),
        ("before=1", []),
        ("limit=0", [5]),
        ("limit=999999", [5, 4, 3, 2, 1]),
    ):
        found = await asked(person, f"parts/{part}/revisions?{query}")
        assert [one["revision"] for one in found] == numbers, query
    for query in ("before=x", "limit=-1", "before=99999999999"):
        assert "is not a number" in await asked(person, f"parts/{part}/revisions?{query}", 400)


async def test_revisions_of_a_fragment(cloud: MemoryCloud) -> None:
    made = await cloud.app("create_fragment", name="drive", config={"a": 1}, organization_id=cloud.first.organization)
    await cloud.app("update_fragment", id=made["id"], name="", config={"a": 2})
    person = await signed_in(cloud)
    found = await asked(person, f"fragments/{made['id']}/revisions")
    assert [(one["revision"], one["author"], one["document"]) for one in found] == [
        (2, "owner", {"a": 2}),
        (1, "owner", {"a": 1}),
    ]


async def test_others_cannot_read_the_history(cloud: MemoryCloud, part: str) -> None:
    made = await cloud.app("create_fragment", name="drive", config={}, organization_id=cloud.first.organization)
    second = await cloud.cloud.store.write(lambda sql: create_owner(sql, "Other", cloud.cloud.clock()))
    await cloud.cloud.authenticator.load()
    other = await signed_in(cloud, (second.id, second.key))
    for path in (f"parts/{part}/revisions", f"fragments/{made['id']}/revisions"):
        assert await asked(other, path, 404)
        absent = await asked(other, path.replace(part, "nobody").replace(made["id"], "nobody"), 404)
        assert "nobody" in absent
    operator = await signed_in(cloud, await key_at(cloud, "organization", cloud.first.organization))
    await save(cloud, part, {"modules": [{"name": "m", "env": {"TOKEN": "hush-hush"}}], "note": "hush-hush"})
    shown = (await asked(operator, f"parts/{part}/revisions"))[0]["document"]
    assert shown == {"modules": [{"name": "m", "env": {"TOKEN": MASK}}], "note": MASK}
    await cloud.app("update_fragment", id=made["id"], name="", config={"password": "hush-hush"})
    assert (await asked(operator, f"fragments/{made['id']}/revisions"))[0]["document"] == {"password": MASK}
    owner = await signed_in(cloud)
    assert (await asked(owner, f"parts/{part}/revisions"))[0]["document"]["note"] == "hush-hush"
    assert (await asked(owner, f"fragments/{made['id']}/revisions"))[0]["document"] == {"password": "hush-hush"}
