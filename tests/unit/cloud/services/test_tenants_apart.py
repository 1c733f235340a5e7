"""What another organization publishes never reaches this organization's machines and never reveals its secrets."""

from __future__ import annotations

import json
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any

import pytest

from cloud.domain.organizations.first import FirstKey, create_owner
from cloud.server.memory import APP, MemoryCloud
from cloud.values.author import PART
from rpc.api.client import ApiClient
from schema.errors import ErrorKind, MachineError
from tests.unit.cloud.services.test_registry import AGENT, PACKAGES, pieces

SECRET = "of-the-others"


@pytest.fixture
async def other(cloud: MemoryCloud) -> FirstKey:
    return await cloud.cloud.store.write(lambda sql: create_owner(sql, "Other", datetime(2026, 1, 1, tzinfo=UTC)))


@pytest.fixture
def others(cloud: MemoryCloud, other: FirstKey) -> ApiClient:
    return cloud.client(other.id)


async def refused(kind: ErrorKind, call: Any) -> None:
    with pytest.raises(MachineError) as caught:
        await call
    assert caught.value.kind is kind, caught.value


async def test_no_namespace_is_the_id_of_an_organization(
    cloud: MemoryCloud, other: FirstKey, others: ApiClient
) -> None:
    """Module names begin with a namespace or an id: a namespace equal to another id could supply its modules."""
    victim = cloud.first.organization
    for method, field in (
        ("update_organization", "public_namespace"),
        ("update_organization_namespace", "new_public_namespace"),
    ):
        values = {"organization_id": other.organization, field: victim}
        await refused(ErrorKind.INVALID, others.call(APP, "", method, **values))
    asked = {"public_namespace": victim}
    await refused(ErrorKind.INVALID, others.call(APP, "", "get_organization_namespace_availability", **asked))
    await others.call(APP, "", "update_organization", organization_id=other.organization, public_namespace="other-1")


async def test_an_agent_gets_programs_of_its_own_organization_only(
    cloud: MemoryCloud, part: str, other: FirstKey, others: ApiClient
) -> None:
    owner = other.organization
    await others.call(APP, "", "update_organization", organization_id=owner, public_namespace="others")
    for name in ("machine-agent", "machine-server"):
        values = {"organization_id": owner, "name": name, "version": "9.0.0", "type": "ARCHIVE", "platform": "any"}
        async with aclosing(pieces(b"an unwanted program")) as sent:
            await others.call(PACKAGES, "", "create_package", **values, pieces=sent)
        await others.call(APP, "", "update_registry_item", item_id=f"others:{name}", visibility=2)
    document = {"agent": {"version_control": {"agent": "9.0.0", "machine-server": "stable"}}}
    await cloud.app("update_robot_part", id=part, robot_config_json=json.dumps(document))
    host = {"platform": "linux/arm64"}
    answer = await cloud.client(part, PART).call(AGENT, "", "device_agent_config", id=part, host_info=host)
    assert not answer.get("agent_update_info")
    assert not answer.get("viam_server_update_info")


async def test_private_fragments_in_a_public_fragment_stay_private(
    cloud: MemoryCloud, machine: str, other: FirstKey
) -> None:
    others = cloud.client(other.id)
    inner = {"components": [{"name": SECRET}]}
    owner = other.organization
    private = await others.call(APP, "", "create_fragment", name="in", organization_id=owner, config=inner)
    outer = {"fragments": [private["id"]]}
    public = await others.call(
        APP, "", "create_fragment", name="out", organization_id=owner, config=outer, visibility=2
    )
    asked = {"fragment_id": public["id"]}
    assert SECRET in str(await others.call(APP, "", "list_nested_fragments", **asked))
    answer = await cloud.app("list_nested_fragments", **asked)
    assert SECRET not in str(answer)
    assert [fragment["fragment_id"] for fragment in answer["resolved_fragments"]] == [public["id"]]
    assert answer["resolved_fragments"][0]["error"]["error_type"] == "NO_ACCESS"
    # an organization with access to a machine may try fragments there, but does not see private ones of the owner
    location = other.location
    rover = await others.call(APP, "", "new_robot", name="r", location=location)
    share = {"location_id": location, "organization_id": cloud.first.organization}
    await others.call(APP, "", "share_location", **share)
    grant = {"authorization_id": "location_owner", "resource_type": "location", "resource_id": location}
    await cloud.app("add_role", authorization={**grant, "identity_id": cloud.first.id, "identity_type": "api-key"})
    for more in ({"additional_fragment_ids": [public["id"]]}, {"additional_fragments": [asked]}):
        assert SECRET not in str(await cloud.app("list_machine_fragments", machine_id=rover, **more))
        assert SECRET in str(await others.call(APP, "", "list_machine_fragments", machine_id=rover, **more))
