"""Lists of machines by call, their tags, and saved views."""

from __future__ import annotations

from typing import Any

import pytest

from cloud.domain.fleet.listing import SORTS
from cloud.domain.machines import listed
from cloud.domain.machines.machines import note_seen, parts
from cloud.domain.organizations.first import create_owner
from cloud.server.memory import MemoryCloud
from cloud.store.sql import Sql
from cloud.values.limits import MACHINE_TAGS
from schema import ErrorKind, MachineError
from tests.unit.cloud.conftest import BOTH, Clock
from tests.unit.cloud.services.fleet.fleet_help import call, fill, key_with


async def names(cloud: MemoryCloud, caller: str = "", **arguments: Any) -> list[str]:
    reply = await call(cloud, "list_fleet_machines", caller, **arguments)
    return [each["name"] for each in reply["machines"]]


async def report(cloud: MemoryCloud, machine: str, **reported: Any) -> None:
    def work(sql: Sql) -> None:
        note_seen(sql, parts(sql, machine)[0].id, cloud.cloud.clock(), reported)

    await cloud.cloud.store.write(work)


@BOTH
@pytest.mark.parametrize("sort", SORTS)
async def test_pages_contain_each_machine_once_in_every_order(cloud: MemoryCloud, sort: str) -> None:
    hall = await cloud.app("create_location", organization_id=cloud.first.organization, name="hall")
    ids = await fill(cloud, 4) + await fill(cloud, 3, location=hall["id"])
    for number, machine in enumerate(ids[:4]):
        await report(cloud, machine, version=f"1.{number % 2}", problems=number)
    whole = (await call(cloud, "list_fleet_machines", sort=sort))["machines"]
    paged: list[Any] = []
    token = ""
    while True:
        page = await call(cloud, "list_fleet_machines", sort=sort, page_token=token, limit=2)
        paged += page["machines"]
        token = page["next_page_token"]
        if not token:
            break
    assert [each["id"] for each in paged] == [each["id"] for each in whole]
    assert sorted(each["id"] for each in whole) == sorted(ids)
    keys: dict[str, Any] = {
        "name": lambda each: (each["name"], each["id"]),
        "state": lambda each: ("offline", "degraded", "awaiting", "online").index(each["state"]),
        "location": lambda each: each["location"].lower(),
        "version": lambda each: each["server_version"],
        "problems": lambda each: -each["problems"],
    }
    assert [keys[sort](each) for each in whole] == sorted(keys[sort](each) for each in whole)
    reply = await call(cloud, "list_fleet_machines")
    assert (reply["total"], reply["online"], reply["degraded"], reply["awaiting"], reply["problems"]) == (7, 1, 3, 3, 3)


async def test_tags_filter_and_are_those_of_the_metadata(cloud: MemoryCloud) -> None:
    first, second, _ = await fill(cloud, 3)
    await call(cloud, "add_machine_tags", machine_id=first, tags=["red", "big"])
    await cloud.app("update_robot_metadata", id=second, data={"tags": ["red"], "note": "kept"})
    assert await names(cloud, filter={"tags": ["red"]}) == ["m000", "m001"]
    assert await names(cloud, filter={"tags": ["red", "big"]}) == ["m000"]
    assert await names(cloud, filter={"text": "big"}) == ["m000"]
    assert await call(cloud, "remove_machine_tags", machine_id=second, tags=["red"]) == []
    assert await cloud.app("get_robot_metadata", id=second) == {"note": "kept"}
    assert await names(cloud, filter={"tags": ["red"]}) == ["m000"]
    await cloud.app("delete_robot", id=first)
    assert await names(cloud, filter={"tags": ["red"]}) == []


async def test_tags_of_a_part_count_for_its_machine_and_are_removed_with_it(cloud: MemoryCloud, machine: str) -> None:
    part = await cloud.app("new_robot_part", robot_id=machine, part_name="helper")
    await cloud.app("update_robot_part_metadata", id=part, data={"tags": ["arm64"]})
    assert await call(cloud, "list_machine_tags", machine_id=machine) == ["arm64"]
    await call(cloud, "remove_machine_tags", machine_id=machine, tags=["arm64"])
    assert await cloud.app("get_robot_part_metadata", id=part) == {}
    await call(cloud, "add_machine_tags", machine_id=machine, tags=["x"])
    await cloud.app("update_robot_part_metadata", id=part, data={"tags": ["y"]})
    await cloud.app("delete_robot_part", part_id=part)
    assert await call(cloud, "list_machine_tags", machine_id=machine) == ["x"]


async def test_tags_have_limits_and_operators_change_none(cloud: MemoryCloud, machine: str) -> None:
    await call(cloud, "add_machine_tags", machine_id=machine, tags=[f"t{n}" for n in range(MACHINE_TAGS.value)])
    for tag, text in (
        ("another", "machine_tags"),
        ("x" * 101, "limit `tag`"),
        (" ", "not a tag"),
        ("a\n", "not a tag"),
    ):
        with pytest.raises(MachineError, match=text):
            await call(cloud, "add_machine_tags", machine_id=machine, tags=[tag])
    operator = await key_with(cloud, ("operator", "robot", machine))
    with pytest.raises(MachineError) as caught:
        await call(cloud, "add_machine_tags", operator, machine_id=machine, tags=["x"])
    assert caught.value.kind is ErrorKind.PERMISSION
    assert len(await call(cloud, "list_machine_tags", operator, machine_id=machine)) == MACHINE_TAGS.value


@BOTH
async def test_a_caller_lists_only_machines_at_which_it_has_a_role(cloud: MemoryCloud, clock: Clock) -> None:
    ids = await fill(cloud, 3)
    hall = await cloud.app("create_location", organization_id=cloud.first.organization, name="hall")
    await fill(cloud, 1, location=hall["id"])
    of_machine = await key_with(cloud, ("operator", "robot", ids[2]))
    of_place = await key_with(cloud, ("operator", "location", hall["id"]), ("owner", "robot", ids[0]))
    other = await cloud.cloud.store.write(lambda sql: create_owner(sql, "Other", clock()))
    assert await names(cloud, of_machine) == ["m002"]
    reply = await call(cloud, "list_fleet_machines", of_place)
    assert [each["id"] for each in reply["machines"]].count(ids[0]) == 1
    assert (len(reply["machines"]), reply["total"]) == (2, 2)
    assert await names(cloud, other.id) == []
    await cloud.app("share_location", location_id=hall["id"], organization_id=other.organization)
    assert await names(cloud, other.id) == ["m000"]
    assert await names(cloud, other.id, filter={"location_id": cloud.first.location}) == []


async def test_rows_of_an_older_database_are_derived_at_the_start(cloud: MemoryCloud, machine: str) -> None:
    await report(cloud, machine, version="1.2.3")
    await call(cloud, "add_machine_tags", machine_id=machine, tags=["red"])

    def blank(sql: Sql) -> None:
        sql.run("UPDATE fleet_rows SET stale = 1, state = 'offline', server = ''")
        sql.run("DELETE FROM machine_tags")

    await cloud.cloud.store.write(blank)
    assert await names(cloud, filter={"server_version": "1.2.3"}) == []
    assert await cloud.cloud.store.write(lambda sql: listed.refresh_stale(sql, 10)) == 1
    assert await cloud.cloud.store.write(lambda sql: listed.refresh_stale(sql, 10)) == 0
    assert await names(cloud, filter={"server_version": "1.2.3", "tags": ["red"]}) == ["rover"]


@pytest.mark.parametrize("arguments", [{"sort": "colour"}, {"page_token": "nonsense"}])
async def test_an_unknown_order_or_token_is_refused(cloud: MemoryCloud, arguments: dict[str, str]) -> None:
    with pytest.raises(MachineError) as caught:
        await call(cloud, "list_fleet_machines", **arguments)
    assert caught.value.kind is ErrorKind.INVALID


# ---- views


async def test_views_belong_to_a_key_or_to_its_organization(cloud: MemoryCloud, clock: Clock) -> None:
    operator = await key_with(cloud, ("operator", "organization", cloud.first.organization))
    other = await cloud.cloud.store.write(lambda sql: create_owner(sql, "Other", clock()))
    shared = await call(cloud, "set_fleet_view", name="Red", query="?tag=red", shared=True)
    own = await call(cloud, "set_fleet_view", operator, name="Mine", query="state=offline")
    assert await call(cloud, "set_fleet_view", operator, name="Mine", query="state=online") == own

    async def seen(caller: str = "") -> list[tuple[str, str, bool]]:
        views = await call(cloud, "list_fleet_views", caller)
        return [(view["name"], view["query"], view["shared"]) for view in views]

    assert await seen() == [("Red", "tag=red", True)]
    assert await seen(operator) == [("Mine", "state=online", False), ("Red", "tag=red", True)]
    assert await seen(other.id) == []
    for caller, view, kind in (
        (operator, shared, ErrorKind.PERMISSION),
        ("", own, ErrorKind.NOT_FOUND),
        (other.id, shared, ErrorKind.NOT_FOUND),
    ):
        with pytest.raises(MachineError) as caught:
            await call(cloud, "delete_fleet_view", caller, id=view)
        assert caught.value.kind is kind
    with pytest.raises(MachineError) as caught:
        await call(cloud, "set_fleet_view", operator, name="Red", query="", shared=True)
    assert caught.value.kind is ErrorKind.PERMISSION
    await call(cloud, "delete_fleet_view", operator, id=own)
    await call(cloud, "delete_fleet_view", id=shared)
    assert await seen(operator) == []
