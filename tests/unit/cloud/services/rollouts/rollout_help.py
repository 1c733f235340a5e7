"""Machines that follow their configurations and report, for the tests of machine.cloud.v1.RolloutService."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from typing import Any

from cloud.domain.machines import machines
from cloud.domain.rollouts import stepping
from cloud.server.memory import MemoryCloud
from cloud.services.machines.following import Following
from cloud.services.machines.robot import RobotService
from cloud.store.sql import Sql
from cloud.values.author import PART, Author
from rpc.api.cloud_v1 import ROLLOUTS

ARM = {"components": [{"name": "arm", "api": "rdk:component:arm", "model": "fake"}]}


async def call(cloud: MemoryCloud, name: str, /, caller: str = "", **arguments: Any) -> Any:
    """Make a call as the owner, or as another key."""
    return await cloud.client(caller).call(ROLLOUTS, "", name, **arguments)


async def proceed(cloud: MemoryCloud) -> None:
    """Look at machines until none is due."""
    while await cloud.cloud.store.write(lambda sql: stepping.step(sql, cloud.cloud.clock())):
        pass


def document(speed: int) -> str:
    return json.dumps(ARM | {"log": [{"pattern": f"speed{speed}", "level": "info"}]})


class Machine:
    """A machine that fetches its configuration by the published service, and reports what it runs as a machine does."""

    def __init__(self, cloud: MemoryCloud, part: str, name: str, *, breaks: bool = False) -> None:
        self._cloud = cloud
        self.part = part
        self.name = name
        self.breaks = breaks
        self.revision = ""
        self._following = Following(cloud.cloud, Author(PART, part), part)

    async def follow(self, bad: str = "") -> str:
        """Fetch the configuration and report; problems if it has the fragment in the revision `bad` and `breaks`."""
        reply = await RobotService(self._cloud.cloud, Author(PART, self.part)).config(self.part)
        self.revision = reply["revision"]
        failing = self.breaks and bool(bad) and self.has == bad
        await self._following.keep({"revision": self.revision, "unhealthy": int(failing), "rejected": ""}, None)
        return self.has

    @property
    def has(self) -> str:
        """The revision of the fragment in the configuration."""
        return self.revision.rpartition("-")[2]

    async def report(self, **values: Any) -> None:
        """Report the revision and other values, such as `rejected`."""
        await self._following.keep({"revision": self.revision} | values, None)

    async def stop(self) -> None:
        """Stop orderly: it is offline from now on."""
        await self._following.end()


async def fleet(
    cloud: MemoryCloud, count: int, uses: Any, *, breaking: Sequence[int] = (), location: str = ""
) -> list[Machine]:
    """Create machines `m000`, `m001` ... that are online and use a fragment."""

    def add(sql: Sql, name: str) -> tuple[str, str]:
        subject = machines.create_machine(sql, location or cloud.first.location, name, cloud.cloud.clock())
        return machines.parts(sql, subject)[0].id, name

    # in transactions of their own, as in life: 200 at once are read in another way
    created = [await cloud.cloud.store.write(partial(add, name=f"m{number:03}")) for number in range(count)]
    for part, _ in created:
        await cloud.app("update_robot_part", id=part, robot_config_json=json.dumps({"fragments": [uses]}))
    result = [Machine(cloud, part, name, breaks=number in breaking) for number, (part, name) in enumerate(created)]
    for machine in result:
        await machine.follow()
    return result


async def fragment(cloud: MemoryCloud) -> str:
    """Create a fragment; return its id."""
    created = await cloud.app(
        "create_fragment", name="arms", organization_id=cloud.first.organization, config=json.loads(document(1))
    )
    return str(created["id"])


async def save(cloud: MemoryCloud, subject: str, speed: int = 2) -> str:
    """Save a revision for a rollout; return its number."""
    new: str = await call(
        cloud, "update_fragment_for_rollout", fragment_id=subject, fragment_config_json=document(speed)
    )
    return new


def plan(subject: str, revision: str, *shares: float, **more: Any) -> dict[str, Any]:
    stages = [{"percent": share} for share in shares or (5, 25, 100)]
    return {"kind": "fragment", "subject": subject, "revision": revision, "stages": stages, "soak_seconds": 300, **more}
