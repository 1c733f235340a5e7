"""Owners with whom a machine is only shared do not choose its name in certificates of another organization."""

from __future__ import annotations

import json
from typing import Any

from cloud.server.memory import APP
from schema.errors import ErrorKind
from tests.unit.cloud.guests import World, outcome, world

__all__ = ["world"]  # a fixture


async def save(world: World, key: str, document: dict[str, Any]) -> ErrorKind | None:
    part = next(value for kind, value in world.ids.items() if kind.name == "PART")
    return await outcome(world.by(key), "update_robot_part", id=part, name="", robot_config_json=json.dumps(document))


async def test_a_guest_cannot_choose_the_public_name_of_a_machine(world: World) -> None:
    await world.share()
    assert await save(world, world.owner, {"debug": True}) is None
    for name in ("www.example.com", "com", "8.8.8.8", "cloud.corp.example"):
        assert await save(world, world.owner, {"network": {"fqdn": name}}) is ErrorKind.PERMISSION
    part = next(value for kind, value in world.ids.items() if kind.name == "PART")
    change = [{"path": "network.fqdn", "value": "www.example.com"}]
    assert await outcome(
        world.by(world.owner), "set_config_property", robot_part_id=part, property_changes=change
    ) is not None  # fmt: skip


async def test_a_guest_may_keep_the_name_and_remove_it(world: World) -> None:
    await world.share()
    assert await save(world, world.cloud.first.id, {"network": {"fqdn": "rover.example.com"}}) is None
    assert await save(world, world.owner, {"network": {"fqdn": "rover.example.com"}, "debug": True}) is None
    assert await save(world, world.owner, {"debug": True}) is None
    document = await world.cloud.client().call(APP, "", "get_robot_part", id=world.ids[list(world.ids)[-1]])
    assert "rover" not in document["config_json"]
