"""A cloud without process and port, for tests and experiments: SQLite in memory, files in a temporary folder."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import trio

from cloud.blobs.folder import FolderBlobs
from cloud.domain.organizations.first import FirstKey, create_owner
from cloud.domain.permissions.authentication import CloudAuthenticator, open_signer
from cloud.domain.permissions.links import Links, open_secret
from cloud.domain.queries.query_process import QueryProcesses
from cloud.domain.upkeep.identity import bind
from cloud.services.common.base import Cloud
from cloud.services.target import CloudRouter
from cloud.store.events import Events
from cloud.store.postgres import PostgresStore
from cloud.store.sql import Store
from cloud.store.sqlite import SqliteStore
from cloud.values.times import Clock, now
from rpc import Identity
from rpc.access import API_KEY
from rpc.api import ApiClient, MemoryChannel

APP = "viam.app.v1.AppService"
ROBOT = "viam.app.v1.RobotService"
URL = "http://cloud.test"


class MemoryCloud:
    """A cloud with one organization; use `open_cloud` to create it."""

    def __init__(self, cloud: Cloud, first: FirstKey) -> None:
        self.cloud = cloud
        self.first = first
        self.router = CloudRouter(cloud)

    def client(self, entity: str = "", kind: str = API_KEY) -> ApiClient:
        """Return a client authenticated as `entity`, by default the owner; `kind` is one of rpc.access.auth.TYPES."""
        return ApiClient(MemoryChannel(self.router, identity=Identity(entity or self.first.id, kind)))

    async def app(self, method: str, /, **arguments: Any) -> Any:
        """Call a method of AppService as the owner."""
        return await self.client().call(APP, "", method, **arguments)


@asynccontextmanager
async def open_cloud(clock: Clock = now, postgres: str = "") -> AsyncIterator[MemoryCloud]:
    """Run a cloud while the context is open; `postgres` is the URL of an empty database to use instead of SQLite."""
    events = Events()
    async with AsyncExitStack() as stack:
        database = PostgresStore(postgres, events) if postgres else SqliteStore(":memory:", events)
        store: Store = await stack.enter_async_context(database.opened())
        folder = stack.enter_context(TemporaryDirectory(prefix="machine-cloud-"))
        blobs = await stack.enter_async_context(FolderBlobs(Path(folder)).opened())
        await bind(store, blobs)
        nursery = await stack.enter_async_context(trio.open_nursery())
        first = await store.write(lambda sql: create_owner(sql, "Test", clock()))
        authenticator = CloudAuthenticator(await open_signer(store), store, events)
        await nursery.start(authenticator.run)
        links = Links(await store.write(open_secret), lambda: URL)
        scratch = stack.enter_context(TemporaryDirectory(prefix="machine-cloud-queries-"))
        queries = await stack.enter_async_context(QueryProcesses(Path(scratch)).opened())
        cloud = Cloud(store, events, authenticator, blobs, links, clock, queries=queries)
        await stack.enter_async_context(cloud.room.opened())
        await stack.enter_async_context(cloud.checks.opened())
        nursery.start_soon(cloud.seen.run, store)
        yield MemoryCloud(cloud, first)
        nursery.cancel_scope.cancel()
