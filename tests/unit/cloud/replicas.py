"""Several replicas of a cloud in memory, some of which receive no events, and a store that counts reads."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import trio
import trio.testing
from grpclib.exceptions import GRPCError

from cloud.domain.organizations.keys import Grant, create_key
from cloud.domain.permissions.authentication import CloudAuthenticator, open_signer
from cloud.server.memory import APP, MemoryCloud
from cloud.services.target import CloudRouter
from cloud.store.events import Events
from cloud.store.sql import Sql, Store, Work
from rpc.access.credential_types import API_KEY
from rpc.api.client import ApiClient
from rpc.api.memory import MemoryChannel
from rpc.carrier import Peer
from schema.errors import ErrorKind, MachineError

LIMIT = 30.0  # seconds; each step takes milliseconds
LIST = "/viam.app.v1.AppService/ListOrganizations"


class Counted:
    """A store that counts reads and can become unavailable."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.reads = 0
        self.away = False
        self.refused = trio.Event()

    async def read(self, work: Work[Any]) -> Any:
        self.reads += 1
        self._there()
        return await self.store.read(work)

    async def write(self, work: Work[Any]) -> Any:
        self._there()
        return await self.store.write(work)

    def _there(self) -> None:
        if self.away:
            self.refused.set()
            raise MachineError("the database is away", kind=ErrorKind.UNAVAILABLE)


class Replica:
    """A replica as clients on the network see it: with tokens instead of identities."""

    def __init__(self, cloud: MemoryCloud, authenticator: CloudAuthenticator, store: Store, events: Events) -> None:
        self.cloud = replace(cloud.cloud, authenticator=authenticator, store=store, events=events)
        self.authenticator = authenticator
        self.router = CloudRouter(self.cloud)
        self._peers = iter(range(1 << 30))

    async def sign_in(self, entity: str, secret: str, kind: str = API_KEY) -> str:
        number = next(self._peers)  # a new address each time, because attempts are counted per address
        peer = Peer((f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}", 1))
        return await self.authenticator.sign_in(entity, kind, secret, peer=peer)

    def client(self, token: str) -> ApiClient:
        identity = self.authenticator.authorize(LIST, {"authorization": f"Bearer {token}"})
        return ApiClient(MemoryChannel(self.router, identity=identity))

    async def call(self, token: str, method: str, **arguments: Any) -> str:
        """Return the result of a call in one word."""
        try:
            await self.client(token).call(APP, "", method, **arguments)
        except GRPCError as error:
            return str(error.status.name).lower()
        except MachineError as error:
            return error.kind.value
        return "ok"


@asynccontextmanager
async def replica(cloud: MemoryCloud, *, hears: bool) -> AsyncIterator[tuple[Replica, Counted]]:
    """Run another replica on the same database. One that receives no events is the worst case."""
    events = cloud.cloud.events if hears else Events()
    store = Counted(cloud.cloud.store)
    authenticator = CloudAuthenticator(await open_signer(store), store, events)
    async with trio.open_nursery() as nursery:
        await nursery.start(authenticator.run)
        yield Replica(cloud, authenticator, store, events), store
        nursery.cancel_scope.cancel()


def operator_key(sql: Sql, cloud: MemoryCloud) -> tuple[str, str]:
    grant = Grant("operator", "organization", cloud.first.organization)
    return create_key(sql, cloud.first.organization, "guard", [grant], cloud.cloud.clock())


def authorization_at(cloud: MemoryCloud, kind: str, subject: str, key: str = "") -> dict[str, str]:
    return {
        "authorization_type": "role",
        "authorization_id": f"{kind}_operator",
        "resource_type": kind,
        "resource_id": subject,
        "identity_id": key,
        "organization_id": cloud.first.organization,
        "identity_type": "api-key",
    }
