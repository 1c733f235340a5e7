"""Location secrets: parts log in with them and accept them from clients while they are in the location."""

from __future__ import annotations

import pytest
import trio

from cloud.domain.organizations import sharing
from cloud.domain.permissions import credentials
from cloud.domain.permissions.access import ObjectKind
from cloud.server.memory import APP, ROBOT
from cloud.values.author import LOCATION
from rpc.access.auth import digest_of
from rpc.carrier import Peer
from schema.errors import ErrorKind
from tests.unit.cloud.guests import World, outcome, world
from tests.unit.cloud.web.test_web_machine import connected

__all__ = ["world"]

LIMIT = 30.0  # seconds; each step takes milliseconds


async def test_parts_log_in_with_a_secret_of_their_location(world: World) -> None:
    place, part = world.ids[ObjectKind.LOCATION], world.ids[ObjectKind.PART]
    assert (await world.cloud.app("location_auth", location_id=place))["secrets"] == []
    await world.cloud.app("create_location_secret", location_id=place)
    auth = await world.cloud.app("create_location_secret", location_id=place)
    assert auth["location_id"] == place
    assert auth["secret"] == auth["secrets"][0]["secret"]
    assert len(auth["secrets"]) == 2
    authenticator = world.cloud.cloud.authenticator
    for secret in auth["secrets"]:
        token = await authenticator.sign_in(part, LOCATION, secret["secret"], peer=Peer())
        identity = await authenticator.identified(token)
        assert identity is not None
        assert (identity.entity, identity.kind) == (part, LOCATION)
    itself = world.cloud.client(part, LOCATION)
    assert (await itself.call(ROBOT, "", "config", id=part))["cloud"]["id"] == part
    assert await outcome(itself, "get_robot_part", id=part) is ErrorKind.PERMISSION
    await world.cloud.app("delete_location_secret", location_id=place, secret_id=auth["secrets"][0]["id"])
    assert await authenticator.identified(token) is not None  # the token of the older secret is still valid
    await world.cloud.app("delete_location_secret", location_id=place, secret_id=auth["secrets"][1]["id"])
    with pytest.raises(Exception, match="wrong"):
        await authenticator.sign_in(part, LOCATION, auth["secrets"][1]["secret"], peer=Peer())
    assert await authenticator.identified(token) is None


async def test_secrets_of_a_location_apply_only_to_parts_in_it(world: World) -> None:
    outer, part = world.ids[ObjectKind.LOCATION], world.ids[ObjectKind.PART]
    organization = world.ids[ObjectKind.ORGANIZATION]

    async def entities() -> set[str]:
        result = await world.cloud.cloud.store.read(credentials.every)
        return {item.entity for item in result if item.type == LOCATION}

    inner = (
        await world.cloud.app("create_location", organization_id=organization, name="I", parent_location_id=outer)
    )["id"]
    neighbour = (await world.cloud.app("create_location", organization_id=organization, name="B"))["id"]
    deep = await world.cloud.app("new_robot", name="deep", location=inner)
    deep_part = (await world.cloud.app("get_robot_parts", robot_id=deep))[0]["id"]
    await world.cloud.app("create_location_secret", location_id=outer)
    assert await entities() == {part, deep_part}
    await world.cloud.app("update_robot", id=world.ids[ObjectKind.ROBOT], location=neighbour)
    assert await entities() == {deep_part}
    await world.cloud.app("update_location", location_id=inner, parent_location_id="")
    assert await entities() == set()


async def test_machines_are_notified_of_added_and_deleted_secrets(world: World) -> None:
    """A machine receives the digests of the secrets of its location and all enclosing ones, also after a move."""
    outer, part = world.ids[ObjectKind.LOCATION], world.ids[ObjectKind.PART]
    organization, cloud = world.ids[ObjectKind.ORGANIZATION], world.cloud

    async def created(**more: str) -> str:
        location = await cloud.app("create_location", organization_id=organization, **more)
        return str(location["id"])

    async def secret(place: str) -> str:
        auth = await cloud.app("create_location_secret", location_id=place)
        return str(auth["secrets"][0]["secret"])

    inner, neighbour = await created(name="I", parent_location_id=outer), await created(name="B")
    with trio.fail_after(LIMIT):
        async with connected(cloud, part) as machine:

            async def hears(*secrets: str) -> None:
                expected = {digest_of(item) for item in secrets}
                while (location_secrets := (await machine.hears("cloud"))["location_secrets"]) is not None:
                    assert not any(element in str(location_secrets) for element in secrets)
                    if {result["secret"] for result in location_secrets} == expected:
                        return

            await hears()
            first, two = await secret(outer), await secret(neighbour)
            await hears(first)
            await cloud.app("update_robot", id=world.ids[ObjectKind.ROBOT], location=neighbour)
            await hears(two)
            await cloud.app("update_robot", id=world.ids[ObjectKind.ROBOT], location=await created(name="E"))
            await hears()
            await cloud.app("update_robot", id=world.ids[ObjectKind.ROBOT], location=inner)
            await hears(first)
            await cloud.app("update_location", location_id=inner, parent_location_id="")
            await hears()
            await cloud.app("update_location", location_id=inner, parent_location_id=neighbour)
            await hears(two)
            kept = (await cloud.app("location_auth", location_id=neighbour))["secrets"]
            await cloud.app("delete_location_secret", location_id=neighbour, secret_id=kept[0]["id"])
            await hears()


async def test_a_location_has_at_most_ten_secrets(world: World) -> None:
    place = world.ids[ObjectKind.LOCATION]
    for _ in range(sharing.MAX_SECRETS):
        auth = await world.cloud.app("create_location_secret", location_id=place)
    own = world.cloud.client()
    assert await outcome(own, "create_location_secret", location_id=place) is ErrorKind.PRECONDITION
    neighbour = (
        await own.call(APP, "", "create_location", organization_id=world.ids[ObjectKind.ORGANIZATION], name="B")
    )["id"]
    values = {"location_id": neighbour, "secret_id": auth["secrets"][0]["id"]}
    assert await outcome(own, "delete_location_secret", **values) is ErrorKind.NOT_FOUND


async def test_secrets_are_not_in_the_audit_log(world: World) -> None:
    auth = await world.cloud.app("create_location_secret", location_id=world.ids[ObjectKind.LOCATION])
    rows = await world.cloud.cloud.store.read(lambda sql: sql.rows("SELECT * FROM audit"))
    assert "create_location_secret" in repr(rows)
    assert auth["secret"] not in repr(rows)
