"""An organization with a machine, and a guest organization."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from cloud.domain.organizations.first import create_owner
from cloud.domain.organizations.keys import Grant, create_key
from cloud.domain.permissions.access import ObjectKind
from cloud.server.memory import APP, MemoryCloud
from rpc.api.client import ApiClient
from schema.errors import ErrorKind, MachineError
from tests.unit.cloud.captured import START


@dataclass
class World:
    """The first organization has `location` with a machine; `guest` is another organization."""

    cloud: MemoryCloud
    ids: dict[ObjectKind, str]
    guest: str  # id of the guest organization
    owner: str  # key of an owner
    operator: str

    def by(self, key: str) -> ApiClient:
        return self.cloud.client(key)

    async def share(self, location: str = "") -> None:
        await self.cloud.app(
            "share_location", location_id=location or self.ids[ObjectKind.LOCATION], organization_id=self.guest
        )

    async def unshare(self, location: str = "") -> None:
        await self.cloud.app(
            "unshare_location", location_id=location or self.ids[ObjectKind.LOCATION], organization_id=self.guest
        )


@pytest.fixture
async def world(cloud: MemoryCloud, machine: str, part: str) -> World:
    owner = await cloud.cloud.store.write(lambda sql: create_owner(sql, "Guest", START))
    grant = Grant("operator", "organization", owner.organization)
    operator = await cloud.cloud.store.write(lambda sql: create_key(sql, owner.organization, "op", [grant], START)[0])
    ids = {
        ObjectKind.ORGANIZATION: cloud.first.organization,
        ObjectKind.LOCATION: cloud.first.location,
        ObjectKind.ROBOT: machine,
        ObjectKind.PART: part,
    }
    return World(cloud, ids, owner.organization, owner.id, operator)


async def outcome(client: ApiClient, method: str, **fields: Any) -> ErrorKind | None:
    try:
        await client.call(APP, "", method, **fields)
    except MachineError as error:
        return error.kind
    return None
