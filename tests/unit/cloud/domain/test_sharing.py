"""Shared locations: the other organization has access as long as the share lasts, and only to what is shared."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
import trio

from cloud.domain.data.filters import DataFilter
from cloud.domain.data.pages import Page
from cloud.domain.data.readings import query
from cloud.domain.fleet.fleet import fleet, locations
from cloud.domain.organizations import sharing
from cloud.domain.organizations.first import create_owner
from cloud.domain.organizations.keys import Grant, create_key
from cloud.domain.permissions.access import ObjectKind, Role, place_of, role_at
from cloud.domain.permissions.data_scope import scope_of
from cloud.server.memory import APP, ROBOT
from cloud.services.app import AppService
from cloud.services.machines.facts import facts
from cloud.values.author import KEY, PART, Author
from rpc.api.client import ApiClient
from schema.errors import ErrorKind, MachineError
from tests.unit.cloud.captured import DATA, START, Uploads, piece
from tests.unit.cloud.domain.test_access import arguments
from tests.unit.cloud.guests import World, outcome, world
from tests.unit.cloud.services.test_members import role

__all__ = ["world"]

SHARED = (ObjectKind.LOCATION, ObjectKind.ROBOT, ObjectKind.PART)
GUARDED = sorted(
    name
    for name, rule in AppService.rules.items()
    if rule.of in SHARED and not inspect.isasyncgenfunction(inspect.unwrap(getattr(AppService, name)))
)


@pytest.mark.parametrize("method", GUARDED)
async def test_guests_have_their_role_except_for_moving_sharing_and_deleting(world: World, method: str) -> None:
    rule = AppService.rules[method]
    assert rule.of is not None
    passed = arguments(method, rule.field, world.ids[rule.of])
    for key in (world.operator, world.owner):
        assert await outcome(world.by(key), method, **passed) is ErrorKind.NOT_FOUND
    await world.share()
    at_operator = await outcome(world.by(world.operator), method, **passed)
    assert (at_operator is ErrorKind.PERMISSION) == (rule.role is Role.OWNER)
    at_owner = await outcome(world.by(world.owner), method, **passed)
    assert (at_owner is ErrorKind.PERMISSION) == rule.home
    await world.unshare()
    for key in (world.operator, world.owner):
        assert await outcome(world.by(key), method, **passed) is ErrorKind.NOT_FOUND


def test_calls_reserved_for_the_owning_organization_are_listed() -> None:
    assert {name for name, rule in AppService.rules.items() if rule.home} == {
        "update_location",
        "delete_location",
        "share_location",
        "unshare_location",
        "location_auth",
        "create_location_secret",
        "delete_location_secret",
        "new_robot",
        "delete_robot",
        "new_robot_part",
        "delete_robot_part",
        "create_robot_part_secret",
        "delete_robot_part_secret",
    }


async def test_lists_show_shared_locations_and_their_owners(world: World) -> None:
    inner = (
        await world.cloud.app(
            "create_location",
            organization_id=world.ids[ObjectKind.ORGANIZATION],
            name="Inner",
            parent_location_id=world.ids[ObjectKind.LOCATION],
        )
    )["id"]
    await world.cloud.app("new_robot", name="deep", location=inner)
    await world.share(inner)
    guest = world.by(world.operator)
    (own, shared) = sorted(
        await guest.call(APP, "", "list_locations", organization_id=world.guest), key=lambda item: item["name"]
    )
    assert (own["name"], shared["name"]) == ("Guest", "Inner")
    assert shared["parent_location_id"] == ""  # the parent location is not shared
    assert shared["organizations"] == [
        {"organization_id": world.ids[ObjectKind.ORGANIZATION], "primary": True},
        {"organization_id": world.guest, "primary": False},
    ]
    assert shared["primary_org_identity"]["name"] == "Test"
    answer = await guest.call(APP, "", "list_robots_for_org", org_id=world.guest)
    assert [element["name"] for element in answer] == ["deep"]
    summaries = await guest.call(APP, "", "list_machine_summaries", organization_id=world.guest)
    assert [summary["location_name"] for summary in summaries] == ["Inner"]
    assert [result["name"] for result in await guest.call(APP, "", "list_organizations")] == ["Guest"]
    author = Author(KEY, world.operator)
    paths = await world.cloud.cloud.store.read(
        lambda sql: [location.path for location in locations(sql, author).values()]
    )
    assert paths == ["Guest", "Inner"]
    access = await world.cloud.app("get_organizations_with_access_to_location", location_id=inner)
    assert [entry["name"] for entry in access] == ["Test", "Guest"]


async def test_guests_do_not_see_each_other(world: World) -> None:
    third = await world.cloud.cloud.store.write(lambda sql: create_owner(sql, "Third", START))
    place = world.ids[ObjectKind.LOCATION]
    await world.share()
    await world.cloud.app("share_location", location_id=place, organization_id=third.organization)
    for call in ("get_organizations_with_access_to_location", "get_location"):
        assert third.organization not in repr(await world.by(world.owner).call(APP, "", call, location_id=place))
        assert third.organization in repr(await world.cloud.app(call, location_id=place))


async def test_keys_of_machines_and_secrets_of_parts_stay_with_the_owner(world: World) -> None:
    await world.share()
    part = world.ids[ObjectKind.PART]
    result = (await world.by(world.owner).call(APP, "", "get_robot_part", id=part))["part"]
    assert (result["secret"], result["secrets"]) == ("", [])
    grant = role("robot", "owner", world.ids[ObjectKind.ROBOT])
    await world.cloud.app("create_key", authorizations=[grant], name="theirs")
    created = await world.by(world.owner).call(APP, "", "create_key", authorizations=[grant], name="mine")
    for key, name in ((world.owner, "mine"), (world.cloud.first.id, "theirs")):
        listed = await world.by(key).call(APP, "", "get_robot_api_keys", robot_id=world.ids[ObjectKind.ROBOT])
        assert [item["api_key"]["name"] for item in listed] == [name]
    listed = await world.by(world.owner).call(APP, "", "list_keys", org_id=world.guest)
    assert created["id"] in [element["api_key"]["id"] for element in listed]
    mine = role("location", "operator", world.ids[ObjectKind.LOCATION]) | {"identity_id": world.cloud.first.id}
    assert await outcome(world.by(world.owner), "add_role", authorization=mine) is ErrorKind.NOT_FOUND


async def test_the_role_of_a_guest_ends_with_the_share_for_good(world: World) -> None:
    await world.share()
    grants = [
        role("robot", "owner", world.ids[ObjectKind.ROBOT]),
        role("location", "operator", world.ids[ObjectKind.LOCATION]),
    ]
    key = await world.by(world.owner).call(APP, "", "create_key", authorizations=grants, name="x")
    assert await outcome(world.by(key["id"]), "get_robot", id=world.ids[ObjectKind.ROBOT]) is None
    await world.unshare()
    assert await outcome(world.by(key["id"]), "get_robot", id=world.ids[ObjectKind.ROBOT]) is ErrorKind.NOT_FOUND
    await world.share()
    assert await outcome(world.by(key["id"]), "get_robot", id=world.ids[ObjectKind.ROBOT]) is ErrorKind.NOT_FOUND
    assert await outcome(world.by(world.owner), "get_robot", id=world.ids[ObjectKind.ROBOT]) is None


async def test_a_machine_accepts_keys_of_guests_only_while_shared(world: World) -> None:
    store, part = world.cloud.cloud.store, world.ids[ObjectKind.PART]

    async def keys() -> set[str]:
        return set((await store.read(lambda sql: facts(sql, part)))["keys"])

    assert await keys() == {world.cloud.first.id}
    await world.share()
    assert await keys() == {world.cloud.first.id, world.owner, world.operator}
    await world.unshare()
    assert await keys() == {world.cloud.first.id}


async def test_streams_of_a_guest_end_with_the_share(world: World) -> None:
    await world.share()
    event = trio.Event()
    ended: list[ErrorKind] = []

    async def follow() -> None:
        try:
            async for _ in world.by(world.operator).stream(
                APP, "", "tail_robot_part_logs", id=world.ids[ObjectKind.PART]
            ):
                event.set()
        except MachineError as error:
            ended.append(error.kind)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(follow)
        entry = {"level": "error", "logger_name": "x", "message": "x", "host": "h"}
        machine = world.cloud.client(world.ids[ObjectKind.PART], PART)
        with trio.fail_after(30):
            while not event.is_set():  # until the stream has started
                await machine.call(ROBOT, "", "log", id=world.ids[ObjectKind.PART], logs=[entry])
                await trio.lowlevel.checkpoint()
        await world.unshare()
    assert ended == [ErrorKind.NOT_FOUND]


async def test_guests_read_captured_data_and_cannot_delete_them(world: World) -> None:
    up = Uploads(world.cloud, world.ids[ObjectKind.PART])
    await up.readings(piece(0, secret=1))
    file = await up.file()
    guest, operator = world.by(world.owner), world.by(world.operator)

    async def count(client: ApiClient) -> int:
        answer = await client.call(DATA, "", "tabular_data_by_filter", data_request={"limit": 10})
        return int(answer["count"])

    assert await count(guest) == 0
    await world.share()
    assert await count(guest) == await count(operator) == 1
    (item,) = (await guest.call(DATA, "", "binary_data_by_ids", binary_data_ids=[file]))["data"]
    assert item["metadata"]["file_name"] == "a.txt"
    everything = {"organization_ids": [world.ids[ObjectKind.ORGANIZATION]]}
    assert await guest.call(DATA, "", "delete_binary_data_by_filter", filter=everything) == 0
    for method, text in (
        ("delete_binary_data_by_ids", {"binary_data_ids": [file]}),
        ("create_binary_data_signed_url", {"binary_data_id": file}),  # the URL would outlive the share
    ):
        with pytest.raises(MachineError) as caught:
            await guest.call(DATA, "", method, **text)
        assert caught.value.kind is ErrorKind.PERMISSION
    await world.unshare()
    assert await count(guest) == await count(operator) == 0
    with pytest.raises(MachineError):
        await guest.call(DATA, "", "binary_data_by_ids", binary_data_ids=[file])


async def test_private_fragments_are_not_read_through_a_shared_machine(world: World) -> None:
    config = {"components": [{"name": "hidden", "api": "rdk:component:motor", "model": "fake"}]}
    values = {"config": config, "organization_id": world.ids[ObjectKind.ORGANIZATION]}
    private = (await world.cloud.app("create_fragment", name="private", **values))["id"]
    used = (await world.cloud.app("create_fragment", name="used", **values))["id"]
    part = world.ids[ObjectKind.PART]
    await world.cloud.app("update_robot_part", id=part, robot_config={"fragments": [{"id": used}]})
    await world.share()
    guest = world.by(world.owner)
    document = {"fragments": [{"id": used}], "components": []}
    assert await outcome(guest, "update_robot_part", id=part, robot_config=document) is None
    document = {"fragments": [{"id": used}, {"id": private, "prefix": "p"}]}
    assert await outcome(guest, "update_robot_part", id=part, robot_config=document) is ErrorKind.NOT_FOUND
    asked = {"machine_id": world.ids[ObjectKind.ROBOT], "additional_fragment_ids": [private]}
    assert await outcome(guest, "list_machine_fragments", **asked) is ErrorKind.NOT_FOUND
    assert await outcome(world.cloud.client(), "list_machine_fragments", **asked) is None


async def test_private_modules_stay_private(world: World) -> None:
    module = (await world.cloud.app("create_module", organization_id=world.ids[ObjectKind.ORGANIZATION], name="ours"))[
        "module_id"
    ]
    await world.share()
    grant = role("location", "owner", world.ids[ObjectKind.LOCATION])
    created = await world.by(world.owner).call(APP, "", "create_key", authorizations=[grant], name="x")
    for key in (world.owner, created["id"]):
        assert await outcome(world.by(key), "get_module", module_id=module) is ErrorKind.NOT_FOUND
    assert await outcome(
        world.by(created["id"]), "get_organization", organization_id=world.ids[ObjectKind.ORGANIZATION]
    )


async def test_a_location_is_shared_with_others_and_unshared(world: World) -> None:
    place = world.ids[ObjectKind.LOCATION]
    own = world.cloud.client()
    call = {"location_id": place, "organization_id": world.ids[ObjectKind.ORGANIZATION]}
    assert await outcome(own, "share_location", **call) is ErrorKind.PRECONDITION
    assert await outcome(own, "share_location", **{**call, "organization_id": "nobody"}) is ErrorKind.NOT_FOUND
    assert await outcome(own, "unshare_location", **{**call, "organization_id": world.guest}) is ErrorKind.NOT_FOUND
    await world.share()
    await world.share()
    await world.unshare()
    assert await world.cloud.cloud.store.read(lambda sql: sharing.shared_itself(sql, place)) == []


async def test_deleting_leaves_no_shares(world: World) -> None:
    await world.share()
    guest = world.by(world.owner)
    own = [item["id"] for item in await guest.call(APP, "", "list_locations", organization_id=world.guest)]
    own.remove(world.ids[ObjectKind.LOCATION])
    await guest.call(APP, "", "delete_location", location_id=own[0])
    await guest.call(APP, "", "delete_organization", organization_id=world.guest)
    assert (await world.cloud.app("get_location", location_id=world.ids[ObjectKind.LOCATION]))["organizations"] == [
        {"organization_id": world.ids[ObjectKind.ORGANIZATION], "primary": True}
    ]
    third = await world.cloud.cloud.store.write(lambda sql: create_owner(sql, "Third", START))
    await world.cloud.app(
        "share_location", location_id=world.ids[ObjectKind.LOCATION], organization_id=third.organization
    )
    await world.cloud.app("create_location_secret", location_id=world.ids[ObjectKind.LOCATION])
    await world.cloud.app("delete_robot", id=world.ids[ObjectKind.ROBOT])
    await world.cloud.app("delete_location", location_id=world.ids[ObjectKind.LOCATION])
    for table in ("location_shares", "location_secrets"):
        assert await world.cloud.cloud.store.read(lambda sql, t=table: sql.rows(f"SELECT * FROM {t}")) == []


async def test_a_role_has_no_effect_where_the_organization_has_no_access(world: World) -> None:
    """A role that is already in the database has no effect without the share, however it got there."""
    robot, place = world.ids[ObjectKind.ROBOT], world.ids[ObjectKind.LOCATION]
    grants = [Grant("owner", "robot", robot), Grant("owner", "location", place)]
    store = world.cloud.cloud.store
    await Uploads(world.cloud, world.ids[ObjectKind.PART]).readings(piece(0, secret=1))
    key = (await store.write(lambda sql: create_key(sql, world.guest, "x", grants, START)))[0]
    author = Author(KEY, key)

    def work(sql: Any) -> tuple[Any, ...]:
        scope = scope_of(sql, author, Role.OPERATOR)
        return (
            role_at(sql, author, place_of(sql, ObjectKind.PART, world.ids[ObjectKind.PART])),
            [location.role for location in locations(sql, author).values()],
            fleet(sql, author),
            query(sql, DataFilter(), scope, Page()) if scope else [],
            key in facts(sql, world.ids[ObjectKind.PART])["keys"],
        )

    assert await store.read(work) == (Role.NONE, [Role.NONE], [], [], False)
    assert await world.by(key).call(APP, "", "list_organizations") == []
