"""Calls, pages, machines and captured data agree on permissions after any sequence of shares, moves and grants."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import trio

from cloud.domain.data.filters import DataFilter
from cloud.domain.data.pages import Page
from cloud.domain.data.readings import query
from cloud.domain.fleet.fleet import fleet
from cloud.domain.organizations.tenants import ROLES_AT
from cloud.domain.permissions.access import ObjectKind, Role, captured, place_of, role_at
from cloud.domain.permissions.data_scope import scope_of
from cloud.server.memory import APP
from cloud.services.machines.facts import facts
from cloud.values.author import KEY, Author
from schema.errors import ErrorKind, MachineError
from tests.unit.cloud.captured import Uploads, piece
from tests.unit.cloud.guests import World, world
from tests.unit.cloud.services.test_members import role

__all__ = ["world"]


@contextmanager
def suppress_kinds(*kinds: ErrorKind) -> Iterator[None]:
    """Ignore errors of these kinds."""
    try:
        yield
    except MachineError as error:
        if error.kind not in kinds:
            raise


@pytest.mark.parametrize("seed", range(6))
async def test_all_checks_of_access_to_a_machine_agree(world: World, seed: int) -> None:
    """After every step, each key has the same role in calls, on pages, at the machine and for captured data."""
    chance, store, own = random.Random(seed), world.cloud.cloud.store, world.cloud.client()
    organization = world.ids[ObjectKind.ORGANIZATION]
    places = [world.ids[ObjectKind.LOCATION]]
    for number in range(3):
        parent = chance.choice(["", *places])
        values = {"organization_id": organization, "name": f"L{number}", "parent_location_id": parent or None}
        places.append((await own.call(APP, "", "create_location", **values))["id"])
    parts: dict[str, str] = {}
    for number, place in enumerate(places):
        robot = await own.call(APP, "", "new_robot", name=f"R{number}", location=place)
        parts[robot] = (await own.call(APP, "", "get_robot_parts", robot_id=robot))[0]["id"]
    keys = [world.owner, world.operator, world.cloud.first.id]
    given_before = len(keys)

    async def step() -> None:
        place, robot = chance.choice(places), chance.choice(list(parts))
        grant = chance.choice([role("location", "operator", place), role("robot", "owner", robot)])
        done = chance.choice(("share", "unshare", "move", "nest", "give", "rotate", "take", "capture"))
        with suppress_kinds(ErrorKind.NOT_FOUND, ErrorKind.PRECONDITION):  # not shared; would contain itself
            if done in ("share", "unshare"):
                await own.call(APP, "", f"{done}_location", location_id=place, organization_id=world.guest)
            elif done == "move":
                await own.call(APP, "", "update_robot", id=robot, location=place)
            elif done == "nest":
                parent = chance.choice(["", *places])
                await own.call(APP, "", "update_location", location_id=place, parent_location_id=parent)
            elif done == "give":
                passed = {"authorizations": [grant], "name": "given"}
                keys.append((await world.by(world.owner).call(APP, "", "create_key", **passed))["id"])
            elif done == "rotate":
                await own.call(APP, "", "rotate_key", id=world.cloud.first.id)
            elif done == "take" and len(keys) > given_before:
                await world.by(world.owner).call(
                    APP, "", "delete_key", id=keys.pop(chance.randrange(given_before, len(keys)))
                )
            else:
                await Uploads(world.cloud, parts[robot]).readings(piece(0, where=place), component_name=place)

    def grants_of(sql: Any) -> dict[str, tuple[dict[str, str], set[str]]]:
        """Return for each part the keys that its machine accepts, and the subjects of events if these keys change."""
        return {
            part: (
                facts(sql, part)["keys"],
                {part, *(first for _, first in place_of(sql, ObjectKind.PART, part).within)},
            )
            for part in parts.values()
        }

    def agree(sql: Any) -> None:
        accepted = {part: set(facts(sql, part)["keys"]) for part in parts.values()}
        for key in keys:
            author = Author(KEY, key)
            shown = {item.id: item.role for item in fleet(sql, author)}
            for robot, part in parts.items():
                has = role_at(sql, author, place_of(sql, ObjectKind.PART, part))
                assert shown.get(robot, Role.NONE) is has, (key, robot)
                assert (key in accepted[part]) == (has is not Role.NONE), (key, robot)
            scope = scope_of(sql, author, Role.OPERATOR)
            read = {element.source for element in query(sql, DataFilter(), scope, Page(limit=1000))} if scope else set()
            everything = {result.source for result in query(sql, DataFilter(), everywhere, Page(limit=1000))}
            for source in everything:
                place = captured(sql, source)
                assert (source in read) == (role_at(sql, author, place) is not Role.NONE), (key, source)

    everywhere = await store.read(lambda sql: scope_of(sql, Author(KEY, world.cloud.first.id), Role.OWNER))
    with world.cloud.cloud.events.listening(ROLES_AT, also=["part"]) as news:
        for _ in range(25):
            before = await store.read(grants_of)
            await step()
            await store.read(agree)
            messages: set[str] = set()
            with trio.move_on_after(0):
                messages.update(await news.all())
            for part, (accepted, _) in (await store.read(grants_of)).items():
                assert accepted == before[part][0] or messages & before[part][1], "a machine that follows hears of it"
