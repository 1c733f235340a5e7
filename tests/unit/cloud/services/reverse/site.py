"""A cloud that listens on loopback, machines that serve the echo service through it, and its callers."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import trio
import trio.testing

from cloud.domain.machines.hosts import MachineHosts
from cloud.server.memory import MemoryCloud
from cloud.services.reverse.calls import PART, MachineCalls
from cloud.values.author import PART as PART_SECRET
from cloud.web.app import application
from rpc.access.credential_types import API_KEY
from rpc.call import ServerCore
from rpc.carrier import Identity, Peer
from rpc.client.channel import Channel
from rpc.client.credentials import ApiKey
from rpc.http2.server import serve_http2
from rpc.limits import Limits
from rpc.network.listeners import names_of
from rpc.server.port import serve
from rpc.server.standard import http_and_json
from runtime.parts.cloud.calls import CloudCalls
from runtime.parts.data.files.disk import InlineDisk
from tests.unit.rpc.echo import EchoService, Stub
from uplink.configuration import CloudSource
from uplink.dial import CloudAddress

DOMAIN: Final = "machines.test"
LIMIT: Final = 30.0  # seconds; each step takes milliseconds


class Machine:
    """A machine-server whose only service is the echo service."""

    def __init__(self, url: str, part: str, secret: str, home: Path, kind: str = PART_SECRET) -> None:
        address = CloudAddress(url, part, part, kind, secret)
        own = {"cloud": {"id": part, "secret": secret, "app_address": url}}
        self.part = part
        self.service = EchoService()
        self.core = ServerCore(self.service.__mapping__())
        self.calls = CloudCalls(address)
        self.source = CloudSource(address, json.dumps(own).encode(), home, InlineDisk())  # type: ignore[arg-type]
        self.source.answer_calls(self.calls.requested)
        self.callers: list[Identity] = []
        self.raw = b""  # sent instead of HTTP/2
        self.serving: list[trio.CancelScope] = []  # of the connections for calls

    async def run(self) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.calls.run, self._serve)
            async with self.source.readings():
                await trio.sleep_forever()

    async def _serve(self, stream: trio.abc.Stream, caller: Identity) -> None:
        self.callers.append(caller)
        self.serving.append(trio.CancelScope())
        if self.raw:
            await stream.send_all(self.raw)
            while await stream.receive_some():
                pass
            return
        with self.serving[-1]:
            await serve_http2(stream, self.core, peer=Peer(("cloud",)), identity=caller)


class Site:
    """A cloud on a port of loopback."""

    def __init__(self, cloud: MemoryCloud, url: str, nursery: trio.Nursery, home: Path) -> None:
        self.cloud = cloud
        self.url = url
        self._nursery = nursery
        self._home = home

    async def machine(self, part: str) -> Machine:
        """Start the machine of a part, and return when it is connected."""
        secret = await self.secret_of(part)
        machine = Machine(self.url, part, secret, self._home / part)
        self._nursery.start_soon(machine.run)
        while not self.cloud.cloud.reverses.follows(part):
            await trio.testing.wait_all_tasks_blocked(0.01)
        return machine

    async def impostor(self, part: str, secret: str, kind: str) -> Machine:
        """Start a program that logs in as a part with other credentials; return when its push channel is open."""
        machine = Machine(self.url, part, secret, self._home / "impostor", kind)
        self._nursery.start_soon(machine.run)
        while not machine.source.fetched:
            await trio.testing.wait_all_tasks_blocked(0.01)
        return machine

    async def secret_of(self, part: str) -> str:
        rows = await self.cloud.cloud.store.read(
            lambda sql: sql.rows("SELECT secret FROM part_secrets WHERE part_id = ?", part)
        )
        return str(rows[0]["secret"])

    @asynccontextmanager
    async def caller(
        self,
        part: str,
        key: tuple[str, str] | None = None,
        *,
        kind: str = API_KEY,
        host: str = "",
        limits: Limits | None = None,
    ) -> AsyncIterator[Stub]:
        """Yield a stub for calls to a part, by default with the owner's key; with `host`, addressed by that name."""
        credentials = ApiKey(*(key or (self.cloud.first.id, self.cloud.first.key)), type=kind)
        port = int(self.url.rpartition(":")[2])
        channel = Channel(
            f"http://{host}:{port}" if host else self.url,
            credentials=credentials,
            connect=partial(trio.open_tcp_stream, "127.0.0.1", port),
            headers=() if host else ((PART, part),),
            limits=limits,
        )
        async with channel:
            stub = Stub(channel)
            stub.channel = channel  # type: ignore[attr-defined]
            yield stub


@asynccontextmanager
async def site(cloud: MemoryCloud, home: Path, *, replica: bool = False, **changes: Any) -> AsyncIterator[Site]:
    """Serve a cloud on loopback while the context is open; with `replica`, it has an address for machines."""
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    url = f"http://{names_of(listeners)[0]}"
    cloud.cloud = replace(cloud.cloud, hosts=MachineHosts(DOMAIN), replica_address=url if replica else "", **changes)
    own = type(cloud.router)(cloud.cloud)
    calls, authorize = MachineCalls(cloud.cloud), cloud.cloud.authenticator.authorize
    core = ServerCore(own, route=calls.route, route_fields=(PART,), authorize=authorize)
    core.gateway = lambda pages: calls.gateway(core, http_and_json(core, own.names, pages))
    async with trio.open_nursery() as nursery:
        await nursery.start(partial(serve, listeners, core, app=application(cloud.cloud, loopback=True)))
        with trio.fail_after(LIMIT):
            async with trio.open_nursery() as machines:
                yield Site(cloud, url, machines, home)
                machines.cancel_scope.cancel()
        nursery.cancel_scope.cancel()
