"""Which machines the overview of triggers has, without merging the configurations of all others."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cloud.domain.triggering import configured
from cloud.server.memory import MemoryCloud
from tests.unit.cloud.conftest import BOTH

TRIGGERS: dict[str, Any] = {
    "triggers": [{"name": "up", "event": {"type": "part_online"}, "notifications": [{"type": "email", "value": "all"}]}]
}


async def _fragment(cloud: MemoryCloud, name: str, document: Any) -> str:
    owner = cloud.first.organization
    created = await cloud.app("create_fragment", name=name, organization_id=owner, config=document)
    return str(created["id"])


@BOTH
async def test_triggers_of_machines_and_of_their_fragments(cloud: MemoryCloud, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = await _fragment(cloud, "inner", TRIGGERS)
    outer = await _fragment(cloud, "outer", {"fragments": [inner]})
    quiet = await _fragment(cloud, "quiet", {"log": [{"pattern": "a", "level": "info"}]})
    documents: dict[str, Any] = {
        "own": TRIGGERS,
        "by a fragment": {"fragments": [quiet, inner]},
        "by a nested one": {"fragments": [outer]},
        "none": {"fragments": [quiet]},
        "nothing": {},
    }
    parts = {}
    for name, document in documents.items():
        robot = await cloud.app("new_robot", name=name, location=cloud.first.location)
        (part,) = await cloud.app("get_robot_parts", robot_id=robot)
        await cloud.app("update_robot_part", id=part["id"], robot_config_json=json.dumps(document))
        parts[part["id"]] = name
    merged, resolved = list[str](), configured.resolved

    def counted(sql: Any, part: str) -> Any:
        merged.append(parts[part])
        return resolved(sql, part)

    monkeypatch.setattr(configured, "resolved", counted)
    shown = await cloud.cloud.store.read(lambda sql: configured.with_triggers(sql, list(parts)))
    assert sorted(parts[part] for part in shown) == ["by a fragment", "by a nested one", "own"]
    assert sorted(merged) == ["by a fragment", "by a nested one"]


async def test_fragments_whose_revisions_have_used_each_other(cloud: MemoryCloud) -> None:
    second, inner = sorted([await _fragment(cloud, name, {}) for name in ("a", "b")])  # followed in this order
    await cloud.app("update_fragment", id=inner, name="inner", config=TRIGGERS)
    first = await _fragment(cloud, "first", {"fragments": [second]})
    await cloud.app("update_fragment", id=first, name="first", config={"fragments": [inner]})
    await cloud.app("update_fragment", id=second, name="second", config={"fragments": [first]})
    parts = []
    for name in ("a", "b"):
        robot = await cloud.app("new_robot", name=name, location=cloud.first.location)
        (part,) = await cloud.app("get_robot_parts", robot_id=robot)
        parts.append(part["id"])
    for part, fragment in zip(sorted(parts), (first, second), strict=True):
        await cloud.app("update_robot_part", id=part, robot_config_json=json.dumps({"fragments": [fragment]}))
    shown = await cloud.cloud.store.read(lambda sql: configured.with_triggers(sql, parts))
    assert sorted(shown) == sorted(parts)
