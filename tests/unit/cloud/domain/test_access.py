"""Access rules: every method with every role, and keys of other organizations."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloud.domain.organizations.first import create_owner
from cloud.domain.organizations.keys import Grant, create_key
from cloud.domain.permissions.access import ObjectKind, Place, Role, best, role_at
from cloud.domain.permissions.rules import allow, operator, owner
from cloud.server.memory import APP, ROBOT, MemoryCloud
from cloud.services.app import AppService
from cloud.services.common.base import Service, guarded
from cloud.services.machines.robot import RobotService
from cloud.values.author import KEY, PART, Author
from rpc.api.client import ApiClient
from schema.errors import ErrorKind, MachineError

NOW = datetime(2026, 1, 1, tzinfo=UTC)
KEYS = ("org_owner", "org_operator", "location_owner", "location_operator", "robot_owner", "robot_operator", "other")


@dataclass
class World:
    """Two organizations; the first has a machine, and a key for each role at each level."""

    cloud: MemoryCloud
    ids: dict[ObjectKind, str]
    keys: dict[str, str]
    other: dict[ObjectKind, str]  # ids of the second organization and its objects

    def client(self, key: str) -> ApiClient:
        return self.cloud.client(self.keys[key])


@pytest.fixture
async def world(cloud: MemoryCloud, machine: str, part: str) -> World:
    first = cloud.first
    places = (("org", "organization", first.organization), ("location", "location", first.location))
    grants = {
        f"{word}_{role}": Grant(role, kind, subject)  # type: ignore[arg-type]
        for word, kind, subject in (*places, ("robot", "robot", machine))
        for role in ("owner", "operator")
    }

    def make(sql: Any) -> dict[str, str]:
        return {name: create_key(sql, first.organization, name, [left], NOW)[0] for name, left in grants.items()}

    keys = await cloud.cloud.store.write(make)
    second = await cloud.cloud.store.write(lambda sql: create_owner(sql, "Other", NOW))
    keys["other"] = second.id
    theirs = cloud.client(second.id)
    their_robot = await theirs.call(APP, "", "new_robot", name="secret", location=second.location)
    their_part = (await theirs.call(APP, "", "get_robot_parts", robot_id=their_robot))[0]["id"]
    ids = {
        ObjectKind.ORGANIZATION: first.organization,
        ObjectKind.LOCATION: first.location,
        ObjectKind.ROBOT: machine,
        ObjectKind.PART: part,
    }
    other = {
        ObjectKind.ORGANIZATION: second.organization,
        ObjectKind.LOCATION: second.location,
        ObjectKind.ROBOT: their_robot,
        ObjectKind.PART: their_part,
        ObjectKind.KEY: second.id,
    }
    ids[ObjectKind.FRAGMENT] = await fragment_of(cloud.client(), first.organization)
    other[ObjectKind.FRAGMENT] = await fragment_of(theirs, second.organization)
    ids[ObjectKind.ITEM] = await item_of(cloud.client(), first.organization)
    other[ObjectKind.ITEM] = await item_of(theirs, second.organization)
    return World(cloud, {**ids, ObjectKind.KEY: first.id}, keys, other)


async def fragment_of(client: ApiClient, organization: str) -> str:
    fragment = await client.call(APP, "", "create_fragment", name="arm", config={}, organization_id=organization)
    return str(fragment["id"])


async def item_of(client: ApiClient, organization: str) -> str:
    return str((await client.call(APP, "", "create_module", organization_id=organization, name="smooth"))["module_id"])


async def no_pieces() -> AsyncIterator[bytes]:
    for nothing in ():
        yield nothing


def has(key: str, of: ObjectKind) -> Role:
    """Return the role of a key in the first organization: a role covers everything below its resource."""
    if key == "other":
        return Role.NONE
    level, _, role = key.partition("_")
    depth = {"org": 0, "location": 1, "robot": 2}[level]
    depth_of = {ObjectKind.LOCATION: 1, ObjectKind.ROBOT: 2, ObjectKind.PART: 2}.get(of, 0)
    if depth > depth_of:
        return Role.NONE
    return {"owner": Role.OWNER, "operator": Role.OPERATOR}[role]


def arguments(method: str, field: str, subject: str) -> dict[str, Any]:
    """Return a placeholder for each required argument; values are checked only after the role."""
    values: dict[str, Any] = {
        "name": "", "data": {}, "part_name": "", "robot_config": None, "property_changes": [], "secret_id": "x",
        "id": "x", "location": "", "tag": "stable", "revision": "1",
        "email": "x@example.com", "user_id": "x", "organization_id": "x", "new_public_namespace": "",
        "type": "MODULE", "new_name": "", "version": "", "pieces": no_pieces(),
    }  # fmt: skip
    signature = inspect.signature(getattr(AppService, method))
    needed = [name for name, first in signature.parameters.items() if first.default is first.empty and name != "self"]
    return {**{name: values[name] for name in needed if name != field}, field: subject}


async def outcome(client: ApiClient, method: str, value: dict[str, Any]) -> ErrorKind | None:
    try:
        if method == "tail_robot_part_logs":
            return None  # the stream never ends; test_following_logs_needs_the_role_too covers it
        await client.call(APP, "", method, **value)
    except MachineError as error:
        return error.kind
    return None


RULES = AppService.rules
GUARDED = sorted(name for name, rule in RULES.items() if rule.of is not None and name != "tail_robot_part_logs")


@pytest.mark.parametrize("method", GUARDED)
async def test_only_insufficient_roles_are_refused(world: World, method: str) -> None:
    rule = RULES[method]
    assert rule.of is not None
    passed = arguments(method, rule.field, world.ids[rule.of])
    for key in sorted(KEYS, key=lambda key: has(key, rule.of)):  # most powerful keys last: they destroy things
        kind = await outcome(world.client(key), method, passed)
        role = has(key, rule.of)
        if role is Role.NONE:
            assert kind is ErrorKind.NOT_FOUND, (key, kind)
        elif role < rule.role:
            assert kind is ErrorKind.PERMISSION, (key, kind)
        else:
            assert kind is not ErrorKind.PERMISSION, (key, kind)


@pytest.mark.parametrize("method", GUARDED)
async def test_resources_of_another_organization_are_not_found(world: World, method: str) -> None:
    rule = RULES[method]
    assert rule.of is not None
    theirs = await outcome(world.client("org_owner"), method, arguments(method, rule.field, world.other[rule.of]))
    nothing = await outcome(world.client("org_owner"), method, arguments(method, rule.field, "nothing"))
    assert theirs is nothing is ErrorKind.NOT_FOUND


async def test_errors_are_identical_for_foreign_and_missing_objects(world: World) -> None:
    def words(error: MachineError, subject: str) -> str:
        return str(error).replace(subject, "ID")

    said = set()
    for subject in (world.other[ObjectKind.PART], "12345678"):
        with pytest.raises(MachineError) as caught:
            await world.client("org_owner").call(APP, "", "get_robot_part", id=subject)
        said.add(words(caught.value, subject))
    assert len(said) == 1


async def test_following_logs_needs_the_role_too(world: World) -> None:
    with pytest.raises(MachineError) as caught:
        async for _ in world.client("other").stream(APP, "", "tail_robot_part_logs", id=world.ids[ObjectKind.PART]):
            pass
    assert caught.value.kind is ErrorKind.NOT_FOUND


@pytest.mark.parametrize(
    ("method", "value", "refused"),
    [
        ("get_organization", lambda w: {"organization_id": w.other[ObjectKind.ORGANIZATION]}, True),
        ("list_locations", lambda w: {"organization_id": w.other[ObjectKind.ORGANIZATION]}, True),
        ("list_robots_for_locations", lambda w: {"location_ids": [w.other[ObjectKind.LOCATION]]}, True),
        ("create_key", lambda w: {"authorizations": [role_at_location(w.other)], "name": "x"}, True),
        ("add_role", lambda w: {"authorization": role_at_location(w.ids, identity_id=w.other[ObjectKind.KEY])}, True),
        ("remove_role", lambda w: {"authorization": role_at_location(w.other, identity_id=w.keys["org_owner"])}, True),
        ("get_organization", lambda w: {"organization_id": w.ids[ObjectKind.ORGANIZATION]}, False),
    ],
)  # fmt: skip
async def test_methods_with_their_own_checks_separate_organizations(
    world: World, method: str, value: Any, refused: bool
) -> None:
    kind = await outcome(world.client("org_owner"), method, value(world))
    assert kind is (ErrorKind.NOT_FOUND if refused else None)


def role_at_location(ids: dict[ObjectKind, str], **more: str) -> dict[str, str]:
    return {
        "authorization_type": "role",
        "authorization_id": "location_owner",
        "resource_type": "location",
        "resource_id": ids[ObjectKind.LOCATION],
        **more,
    }


async def test_lists_contain_only_resources_at_which_the_caller_has_a_role(world: World) -> None:
    for key in KEYS:
        names = [item["name"] for item in await world.client(key).call(APP, "", "list_organizations")]
        assert names == (["Other"] if key == "other" else ["Test"])
    await world.cloud.app("create_location", organization_id=world.ids[ObjectKind.ORGANIZATION], name="Away")
    for key, expected in (("org_operator", 2), ("location_operator", 1), ("robot_operator", 0)):
        answer = await world.client(key).call(
            APP, "", "list_locations", organization_id=world.ids[ObjectKind.ORGANIZATION]
        )
        assert len(answer) == expected, key


async def test_callers_cannot_grant_roles_that_they_do_not_have(world: World) -> None:
    grant = {**role_at_location(world.ids), "authorization_id": "organization_owner", "resource_type": "organization"}
    grant["resource_id"] = world.ids[ObjectKind.ORGANIZATION]
    with pytest.raises(MachineError) as caught:
        await world.client("location_owner").call(APP, "", "create_key", authorizations=[grant], name="x")
    assert caught.value.kind is ErrorKind.NOT_FOUND
    key = await world.client("location_owner").call(
        APP, "", "create_key", authorizations=[role_at_location(world.ids)], name="x"
    )
    assert set(key) == {"id", "key"}


async def test_a_machine_may_only_act_for_itself(world: World) -> None:
    itself = world.cloud.client(world.ids[ObjectKind.PART], PART)
    await itself.call(ROBOT, "", "config", id=world.ids[ObjectKind.PART])
    for service, method, field, subject in (
        (ROBOT, "config", "id", world.other[ObjectKind.PART]),
        (ROBOT, "log", "id", world.other[ObjectKind.PART]),
        (APP, "get_robot", "id", world.ids[ObjectKind.ROBOT]),
        (APP, "get_organization", "organization_id", world.ids[ObjectKind.ORGANIZATION]),
    ):
        with pytest.raises(MachineError) as caught:
            await itself.call(service, "", method, **{field: subject})
        assert caught.value.kind is ErrorKind.NOT_FOUND
    with pytest.raises(MachineError) as caught:
        await itself.call(APP, "", "get_robot_part", id=world.ids[ObjectKind.PART])
    assert caught.value.kind is ErrorKind.PERMISSION
    assert await itself.call(APP, "", "list_organizations") == []


async def test_secrets_are_shown_to_owners_only(world: World) -> None:
    for key, shown in (("org_owner", True), ("org_operator", False), ("robot_owner", True)):
        part = (await world.client(key).call(APP, "", "get_robot_part", id=world.ids[ObjectKind.PART]))["part"]
        assert bool(part["secret"]) is shown
        assert bool(part["secrets"]) is shown


async def test_reported_permissions_match_the_checks(world: World) -> None:
    asked = [
        {
            "resource_type": "robot",
            "resource_id": world.ids[ObjectKind.ROBOT],
            "permissions": ["control_robot", "edit_robot", "robot_write", "nonsense"],
        }
    ]
    for key, expected in (
        ("org_owner", ["control_robot", "robot_write"]),
        ("robot_operator", ["control_robot"]),
        ("other", None),
    ):
        answer = await world.client(key).call(APP, "", "check_permissions", permissions=asked)
        assert (answer[0]["permissions"] if answer else None) == expected


def test_every_method_has_a_rule_and_every_rule_its_argument() -> None:
    with pytest.raises(TypeError, match="look"):

        @guarded
        class _Unruled(Service):
            async def look(self) -> None: ...

    with pytest.raises(TypeError, match="no argument other_id"):

        @guarded
        class _Misruled(Service):
            @allow(owner(ObjectKind.PART, "other_id"))
            async def look(self, one_id: str) -> None: ...

    with pytest.raises(TypeError, match="before a change"):

        @guarded
        class _Late(Service):
            @allow(operator(ObjectKind.PART, "part", inside=True))
            async def delete_thing(self, part: str) -> None: ...

    for cls in (AppService, RobotService):
        public = {name for name, _ in inspect.getmembers(cls, inspect.isfunction) if not name.startswith("_")}
        assert public >= {"read", "write"}


async def test_inner_rules_are_checked_first_in_the_first_transaction(world: World) -> None:
    asked: list[str] = []

    rule = operator(ObjectKind.PART, "part", inside=True)

    @guarded
    class _Inside(Service):
        @allow(rule)
        async def look(self, part: str) -> str:
            return await self.read_checked(lambda sql: asked.append(part) or part)  # type: ignore[func-returns-value]

        @allow(rule)
        async def leave(self, part: str) -> str:
            return await self.write_checked(lambda sql: asked.append(part) or part)  # type: ignore[func-returns-value]

        @allow(rule)
        async def nothing(self, part: str) -> str:
            return part

    part = world.ids[ObjectKind.PART]
    owner, stranger = (
        _Inside(world.cloud.cloud, Author(KEY, key)) for key in (world.keys["org_owner"], world.keys["other"])
    )
    for method in ("look", "leave"):
        with pytest.raises(MachineError, match="there is no part"):
            await getattr(stranger, method)(part)
        assert not asked
        assert await getattr(owner, method)(part) == part
        asked.clear()
    with pytest.raises(RuntimeError, match="without a transaction"):
        await owner.nothing(part)


grants = st.builds(
    Grant,
    st.sampled_from(["owner", "operator"]),
    st.sampled_from(["organization", "location", "robot"]),
    st.sampled_from(["a", "b", "c"]),
)


@given(
    st.lists(grants), st.sets(st.tuples(st.sampled_from(["organization", "location", "robot"]), st.sampled_from("abc")))
)
def test_only_grants_on_the_path_to_an_object_apply(value: list[Grant], within: set[tuple[str, str]]) -> None:
    place = Place("a", frozenset(within))
    reaching = [item for item in value if (item.kind, item.subject) in within]
    assert best(value, place) == best(reaching, place)
    assert (best(value, place) is Role.NONE) == (not reaching)


async def test_credentials_of_other_kinds_have_no_role(world: World) -> None:
    place = Place(world.ids[ObjectKind.ORGANIZATION], frozenset({("organization", world.ids[ObjectKind.ORGANIZATION])}))
    for kind in ("robot-location-secret", "program", ""):
        author = Author(kind, world.keys["org_owner"])
        assert await world.cloud.cloud.store.read(lambda sql, a=author: role_at(sql, a, place)) is Role.NONE
    author = Author(KEY, world.keys["org_owner"])
    assert await world.cloud.cloud.store.read(lambda sql: role_at(sql, author, place)) is Role.OWNER
