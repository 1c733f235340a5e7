"""No call reads or changes data of another organization, whichever ids it receives in whichever field.

Requests are generated from the descriptors, with ids of both organizations in every text. Captured data has its own
test of the same kind.
"""

from __future__ import annotations

import json
import random
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

import pytest
import trio
from google.protobuf.descriptor import FieldDescriptor

from cloud.domain.organizations.first import create_owner
from cloud.domain.people import invites
from cloud.domain.training.jobs import NewJob, submit
from cloud.server.memory import APP, ROBOT, MemoryCloud
from cloud.services.agents import agent_requests
from cloud.services.organizations.people import Invitations
from cloud.services.target import SERVICES
from cloud.store.moving import tables
from cloud.values.author import KEY, Author
from rpc.api import table
from rpc.api.convert.encode import is_map
from rpc.api.methods import Method, methods_of
from schema.errors import MachineError
from tests.unit.cloud.conftest import Clock

WORD = "of-the-others"
ELSEWHERE = ("viam.app.data.v1", "viam.app.dataset.v1", "viam.app.datasync.v1")  # covered by test_data_isolation.py
METHODS = {
    first.path: (service, first)
    for service, cls in SERVICES.items()
    if not service.startswith(ELSEWHERE)
    for name, first in methods_of(table.SERVICES[service]).items()
    if hasattr(cls, name)
}
TRIES = 25
DESTROYING = ("delete_", "remove_", "rotate_")


@dataclass
class World:
    cloud: MemoryCloud
    clock: Clock
    mine: dict[str, str]
    theirs: dict[str, str] = field(default_factory=dict)

    def rows(self) -> Any:
        """Return all rows of the other organization."""

        def work(sql: Any) -> list[str]:
            names = [table.name for table in tables()]
            results = [json.dumps(row, default=repr) for table in names for row in sql.rows(f"SELECT * FROM {table}")]
            return sorted(row for row in results if WORD in row or any(item in row for item in self.theirs.values()))

        return self.cloud.cloud.store.read(work)


@pytest.fixture
async def world(cloud: MemoryCloud, clock: Clock, machine: str, part: str) -> World:
    first = cloud.first
    created = World(cloud, clock, {"organization": first.organization, "location": first.location, "robot": machine})
    created.mine["part"] = part
    other = await cloud.cloud.store.write(lambda sql: create_owner(sql, WORD, clock()))
    theirs = cloud.client(other.id)
    robot = await theirs.call(APP, "", "new_robot", name=WORD, location=other.location)
    their_part = (await theirs.call(APP, "", "get_robot_parts", robot_id=robot))[0]["id"]
    config = {"components": [{"name": WORD, "api": "rdk:component:motor", "model": "fake"}]}
    for document in ({"before": WORD}, config):
        await theirs.call(APP, "", "update_robot_part", id=their_part, name="", robot_config=document)
    fragment = await theirs.call(
        APP, "", "create_fragment", name=WORD, config=config, organization_id=other.organization
    )
    entry = {"level": "error", "logger_name": WORD, "message": WORD, "host": "h"}
    await theirs.call(ROBOT, "", "log", id=their_part, logs=[entry])
    module = await theirs.call(APP, "", "create_module", organization_id=other.organization, name="ours")
    await theirs.call(APP, "", "update_robot_metadata", id=robot, data={"word": WORD})
    await theirs.call(APP, "", "create_location_secret", location_id=other.location)
    member, guest = f"{WORD}@example.com", f"guest-{WORD}@example.com"
    secret = ""
    for email in (member, guest):
        values = {"organization_id": other.organization, "email": email}
        await theirs.call(APP, "", "create_organization_invite", **values)
        link = await Invitations(cloud.cloud, Author(KEY, other.id)).create_invite_link(**values)
        secret = secret or link.rpartition("/")[2]
    await cloud.cloud.store.write(lambda sql: invites.accept(sql, secret, clock()))
    person = await theirs.call(APP, "", "get_user_id_by_email", email=member)
    task = NewJob(other.organization, WORD, WORD, "1", labels=(WORD,))
    job = await cloud.cloud.store.write(lambda sql: submit(sql, task, Author(KEY, other.id), clock()))
    created.theirs = {
        "job": job,
        "organization": other.organization,
        "location": other.location,
        "robot": robot,
        "part": their_part,
        "key": other.id,
        "fragment": fragment["id"],
        "module": module["module_id"],
        "person": person,
        "email": guest,
    }
    return created


def texts(world: World, chance: random.Random, name: str) -> str:
    """Return a text, mostly an id of the other organization. Destructive calls never get the caller's own ids, because
    the calls after them would all be refused."""
    pool = [*world.theirs.values(), *world.theirs.values(), "", "1", WORD]
    if not name.startswith(DESTROYING):
        pool += world.mine.values()
    return chance.choice(pool)


def value_of(item: FieldDescriptor, world: World, chance: random.Random, name: str, depth: int) -> Any:
    """Return a value for a field, or None to leave it out."""
    if item.message_type is not None and (depth > 2 or item.message_type.file.package.startswith("google.")):
        return None
    if is_map(item):
        return None

    def single() -> Any:
        if item.message_type is not None:
            inner = {each.name: value_of(each, world, chance, name, depth + 1) for each in item.message_type.fields}
            values = {key: value for key, value in inner.items() if value is not None and chance.random() < 0.8}
            kept = set()
            for each in item.message_type.fields:  # at most one field of a oneof
                group = each.containing_oneof
                if each.name in values and group is not None and group.name in kept:
                    del values[each.name]
                elif each.name in values and group is not None:
                    kept.add(group.name)
            return values
        if item.enum_type is not None:
            return chance.choice([each.number for each in item.enum_type.values])
        if item.cpp_type == FieldDescriptor.CPPTYPE_STRING:
            return b"" if item.type == FieldDescriptor.TYPE_BYTES else texts(world, chance, name)
        return chance.random() < 0.5 if item.cpp_type == FieldDescriptor.CPPTYPE_BOOL else chance.randint(0, 3)

    return [single() for _ in range(chance.randint(0, 2))] if item.is_repeated else single()


def arguments(method: Method, world: World, chance: random.Random) -> dict[str, Any]:
    created = {
        name: value_of(first, world, chance, method.name, 0)
        for name, first in method.arguments.items()
        if chance.random() < 0.9
    }
    return {name: value for name, value in created.items() if value is not None}


async def answer(world: World, service: str, method: Method, value: dict[str, Any]) -> str:
    """Return the answer or the error as text."""
    client = world.cloud.client()
    if method.streamed is not None:
        value = {**value, method.streamed.argument: []}
    try:
        if not method.server_streaming:
            return repr(await client.call(service, "", method.name, **value))
        results = []
        with trio.move_on_after(0.01):
            async with aclosing(client.stream(service, "", method.name, **value)) as items:
                results.extend([item async for item in items])
        return repr(results)
    except MachineError as error:
        return str(error)


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let calls that wait for news return soon."""
    monkeypatch.setattr(agent_requests, "REQUEST_WAIT", 0.1)


@pytest.mark.parametrize("path", sorted(METHODS))
async def test_no_call_reads_or_changes_objects_of_another_organization(world: World, path: str) -> None:
    service, method = METHODS[path]
    chance = random.Random(path)
    before = await world.rows()
    assert before
    for _ in range(TRIES):
        passed = arguments(method, world, chance)
        result = await answer(world, service, method, passed)
        said = repr(passed)  # an error may repeat its arguments, and the caller's own objects may have this name
        assert WORD not in result or WORD in said, (passed, result)
    after = await world.rows()
    assert [row for row in before if row not in after] == []
