"""Favorites, parts found by name, and the keys with access to a machine."""

from __future__ import annotations

import pytest

from cloud.server.memory import APP, MemoryCloud
from schema.errors import ErrorKind, MachineError


async def test_favorites_belong_to_the_caller(cloud: MemoryCloud, machine: str) -> None:
    for _ in range(2):
        await cloud.app("add_favorite_machine", machine_id=machine)
    answer = await cloud.app("list_favorite_machines")
    assert [(item["machine"]["name"], item["organization_id"]) for item in answer] == [
        ("rover", cloud.first.organization)
    ]
    grant = {"resource_type": "robot", "resource_id": machine, "authorization_id": "robot_operator"}
    guard = await cloud.app("create_key", authorizations=[{**grant, "authorization_type": "role"}], name="guard")
    theirs = cloud.client(guard["id"])
    assert await theirs.call(APP, "", "list_favorite_machines") == []
    await theirs.call(APP, "", "add_favorite_machine", machine_id=machine)
    await cloud.app("remove_favorite_machine", machine_id=machine)
    assert await cloud.app("list_favorite_machines") == []
    assert len(await theirs.call(APP, "", "list_favorite_machines")) == 1
    await cloud.app("delete_robot", id=machine)
    assert await theirs.call(APP, "", "list_favorite_machines") == []


async def test_a_part_by_name_and_the_organizations_with_access(cloud: MemoryCloud, part: str) -> None:
    place = {"location_id": cloud.first.location}
    answer = await cloud.app("get_robot_part_by_name_and_location", name="rover-main", **place)
    assert answer["id"] == part
    with pytest.raises(MachineError) as caught:
        await cloud.app("get_robot_part_by_name_and_location", name="other", **place)
    assert caught.value.kind is ErrorKind.NOT_FOUND
    access = await cloud.app("get_organizations_with_access_to_location", **place)
    assert access == [{"id": cloud.first.organization, "name": "Test"}]
