"""Machines, callers and jobs for the tests of machine.cloud.v1.FleetService."""

from __future__ import annotations

import json
from typing import Any

from cloud.domain.configurations import configurations
from cloud.domain.machines import machines
from cloud.domain.organizations.keys import Grant, create_key
from cloud.server.memory import MemoryCloud
from cloud.services.fleet.runner import run_next
from cloud.store.sql import Sql
from rpc.api.cloud_v1 import FLEET

SPEED = {"kind": "set_value", "path": "components.arm.attributes.speed", "value_json": "3"}
ARM = {"components": [{"name": "arm", "api": "rdk:component:arm", "model": "fake", "attributes": {"speed": 1}}]}


async def call(cloud: MemoryCloud, name: str, /, caller: str = "", **arguments: Any) -> Any:
    """Make a call as the owner, or as another key."""
    return await cloud.client(caller).call(FLEET, "", name, **arguments)


async def fill(cloud: MemoryCloud, count: int, document: Any = None, location: str = "") -> list[str]:
    """Create machines `m000`, `m001` ... with a configuration; return their ids."""

    def work(sql: Sql) -> list[str]:
        ids = []
        for number in range(count):
            place = location or cloud.first.location
            subject = machines.create_machine(sql, place, f"m{number:03}", cloud.cloud.clock())
            ids.append(subject)
        return ids

    ids: list[str] = await cloud.cloud.store.write(work)
    for subject in ids if document is not None else []:
        part = await main_part(cloud, subject)
        await cloud.app("update_robot_part", id=part, robot_config_json=json.dumps(document))
    return ids


async def main_part(cloud: MemoryCloud, machine: str) -> str:
    parts = await cloud.cloud.store.read(lambda sql: machines.parts(sql, machine))
    return parts[0].id


async def configuration(cloud: MemoryCloud, machine: str) -> Any:
    part = await main_part(cloud, machine)
    return (await cloud.cloud.store.read(lambda sql: configurations.current(sql, part)))[1]


async def finish(cloud: MemoryCloud) -> None:
    """Work until no job is left."""
    while await run_next(cloud.cloud, pace=0):
        pass


async def outcomes(cloud: MemoryCloud, job: str) -> dict[str, tuple[str, str]]:
    """Return outcome and reason by the name of the machine."""
    reply = await call(cloud, "get_fleet_job", id=job, limit=1000)
    return {each["name"]: (each["state"], each["reason"]) for each in reply["machines"]}


async def key_with(cloud: MemoryCloud, *grants: tuple[str, str, str]) -> str:
    """Create a key of the first organization with roles; return its id."""

    def work(sql: Sql) -> str:
        roles = [Grant(*grant) for grant in grants]
        return create_key(sql, cloud.first.organization, "limited", roles, cloud.cloud.clock())[0]

    created: str = await cloud.cloud.store.write(work)
    return created
