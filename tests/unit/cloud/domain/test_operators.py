"""Which keys the cloud names to a machine as those of operators."""

from __future__ import annotations

import pytest

from cloud.server.memory import MemoryCloud
from cloud.services.machines.facts import facts


@pytest.mark.parametrize(
    ("roles", "operator"),
    [
        ([("robot", "operator")], True),
        ([("organization", "operator")], True),
        ([("organization", "operator"), ("robot", "owner")], False),
        ([("location", "owner")], False),
    ],
)
async def test_the_cloud_sends_the_ids_of_operators(
    cloud: MemoryCloud, machine: str, roles: list[tuple[str, str]], operator: bool
) -> None:
    part = (await cloud.app("get_robot_parts", robot_id=machine))[0]["id"]
    subjects = {"robot": machine, "location": cloud.first.location, "organization": cloud.first.organization}
    grants = [
        {
            "authorization_type": "role",
            "authorization_id": f"{kind}_{role}",
            "resource_type": kind,
            "resource_id": subjects[kind],
            "organization_id": cloud.first.organization,
            "identity_id": "",
        }
        for kind, role in roles
    ]
    created = await cloud.app("create_key", name="k", authorizations=grants)
    received = await cloud.cloud.store.read(lambda sql: facts(sql, part))
    assert created["id"] in received["keys"]
    assert (created["id"] in received["operators"]) is operator
    assert cloud.first.id not in received["operators"]
