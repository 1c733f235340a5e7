"""The main part of a machine has its other parts as remotes, and may call them."""

from __future__ import annotations

from typing import Any

import pytest

from cloud.domain.machines.subparts import remote_name, with_remotes
from cloud.domain.permissions.calling import require_caller
from cloud.server.memory import ROBOT, MemoryCloud
from cloud.services.machines.facts import facts
from cloud.values.author import LOCATION, PART, Author
from rpc.access.auth import digest_of
from schema.errors import ErrorKind, MachineError


async def parts_of(cloud: MemoryCloud, machine: str) -> tuple[str, str]:
    """Add a part to a machine; return the ids of the main part and of that one."""
    deck = await cloud.app("new_robot_part", robot_id=machine, part_name="deck")
    return (await cloud.app("get_robot_parts", robot_id=machine))[0]["id"], deck


async def refused(cloud: MemoryCloud, kind: str, caller: str, called: str) -> bool:
    try:
        await cloud.cloud.store.read(lambda sql: require_caller(sql, Author(kind, caller), called))
    except MachineError as error:
        return error.kind is ErrorKind.NOT_FOUND
    return False


@pytest.mark.parametrize("kind", [PART, LOCATION])
async def test_only_the_main_part_may_call_sub_parts(cloud: MemoryCloud, machine: str, kind: str) -> None:
    main, deck = await parts_of(cloud, machine)
    other, _ = await parts_of(cloud, await cloud.app("new_robot", name="other", location=cloud.first.location))
    assert not await refused(cloud, kind, main, deck)
    for caller, called in ((deck, main), (other, deck), (other, main), ("", deck), (main, "")):
        assert await refused(cloud, kind, caller, called), (caller, called)
    await cloud.app("mark_part_as_main", part_id=deck)
    assert await refused(cloud, kind, main, deck)
    assert not await refused(cloud, kind, deck, main)


async def test_the_main_part_receives_remotes_and_the_others_its_secret(cloud: MemoryCloud, machine: str) -> None:
    main, deck = await parts_of(cloud, machine)
    secret = (await cloud.app("get_robot_part", id=main))["part"]["secret"]
    read = cloud.cloud.store.read
    received = await read(lambda sql: facts(sql, main, lambda part: f"{part.name}.example"))
    assert received["document"]["remotes"] == [{"name": "deck", "address": "deck.example"}]
    assert "main_part" not in received["cloud"]
    received = await read(lambda sql: facts(sql, deck, lambda part: f"{part.name}.example"))
    assert "remotes" not in received["document"]
    assert received["cloud"]["main_part"] == {"id": main, "secrets": [digest_of(secret)]}
    polled = await cloud.client(main, PART).call(ROBOT, "", "config", id=main)
    assert [(remote["name"], remote["address"]) for remote in polled["remotes"]] == [("deck", f"deck-{deck}")]


@pytest.mark.parametrize(
    ("remotes", "names"),
    [
        (None, ["deck", "left-arm"]),
        ([{"name": "deck", "address": "a"}], ["deck", "left-arm"]),
        ("wrong", "wrong"),
        (["wrong"], ["wrong", "deck", "left-arm"]),
    ],
)
def test_remotes_of_the_configuration_take_precedence(remotes: Any, names: Any) -> None:
    document = {} if remotes is None else {"remotes": remotes}
    result = with_remotes(document, [("deck", "b"), ("Left Arm", "c"), ("left arm", "d")])["remotes"]
    assert (result if result == "wrong" else [getattr(r, "get", lambda _, r=r: r)("name") for r in result]) == names
    assert document == ({} if remotes is None else {"remotes": remotes})


@pytest.mark.parametrize(
    ("name", "remote"), [("deck_2", "deck_2"), ("a:b", "a-b"), ("é", "machine"), ("x" * 99, "x" * 60)]
)
def test_names_of_remotes(name: str, remote: str) -> None:
    assert remote_name(name) == remote
