"""Connects to the machine that started this module, for its resources (as dependencies) and its log."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, ClassVar, Final, TypeAlias

import structlog
import trio
from grpclib.exceptions import GRPCError

from engine import Attributes, Proxied, Resource, ResourceHost, base_of, proxy_of
from engine.planning import PlannedResource
from rpc import within
from rpc.api import ApiClient
from rpc.client import Channel
from runtime.sdk.api import own_bases
from runtime.sdk.logs import MachineSink
from schema import ErrorKind, MachineError, ResourceName

NODE: Final = "internal/parent"
NAME_KEY: Final = "modname"  # metadata key of every call: the name of the calling module
ASK_LIMIT: Final = 300.0  # seconds for the machine to call Ready; reference: 5 min for a start
RECONNECT_INTERVAL: Final = 1.0  # seconds between connections to a machine that disconnects immediately
FLUSH_LIMIT: Final = 1.5  # seconds for the last log entries; reference value

Dial: TypeAlias = "Callable[[str], AbstractAsyncContextManager[tuple[Any, Callable[[], Awaitable[None]]]]]"
"""Connects to an address; yields a channel, and a function that waits until the other side has ended."""


@asynccontextmanager
async def dial(address: str) -> AsyncIterator[tuple[Channel, Callable[[], Awaitable[None]]]]:
    """Connect to the machine at a path or host:port."""
    async with Channel(f"unix:{address}" if "/" in address else address) as channel:
        yield channel, lambda: _machine_ended(channel)


async def _machine_ended(channel: Channel) -> None:
    """Return when a lost connection cannot be re-established, which means that the machine has ended."""
    while True:
        begin = trio.current_time()
        try:
            await channel.lost()
        except GRPCError:
            return
        await trio.sleep_until(begin + RECONNECT_INTERVAL)


class Parent:
    """The machine, once it has introduced itself. `gone` is called with a reason when it has ended."""

    def __init__(self, module: str, sink: MachineSink, on_ended: Callable[[str], None], dial: Dial = dial) -> None:
        self._module = module
        self._sink = sink
        self._on_ended = on_ended
        self._dial = dial
        self._address = ""
        self._introduced = trio.Event()
        self._client: ApiClient | None = None

    def introduce(self, address: str) -> None:
        """Set the address of the machine, a path or host:port. Calls after the first are ignored."""
        if not self._introduced.is_set() and address:
            self._address = address
            self._introduced.set()

    def client(self) -> ApiClient:
        """Return the client for calls to the machine; raises MachineError (UNAVAILABLE) if it is not connected."""
        if self._client is None:
            raise MachineError("the machine has not introduced itself yet", kind=ErrorKind.UNAVAILABLE)
        return self._client

    async def run(self, deps: Mapping[str, Any], /, *, task_status: trio.TaskStatus[Parent]) -> None:
        """Run the node. It stops after all others, so that the last log messages are sent too."""
        task_status.started(self)
        try:
            await within(ASK_LIMIT, self._introduced.wait)
        except trio.TooSlowError:
            self._on_ended(f"no machine has connected to this module within {ASK_LIMIT:g} s")
            await trio.sleep_forever()
        async with self._dial(self._address) as (channel, wait_until_ended):
            client = self._client = ApiClient(channel, metadata={NAME_KEY: self._module})
            try:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._sink.send, self.client)
                    await wait_until_ended()
                    self._on_ended("the machine has ended")
                    await trio.sleep_forever()
            finally:
                with trio.move_on_after(FLUSH_LIMIT, shield=True):
                    try:
                        await self._sink.flush(client)
                    except MachineError:
                        pass  # the sink will write them to its fallback
                self._client = None


class ParentAttributes(Attributes, kw_only=True, frozen=True):
    """Attributes of ParentResource."""

    parent: Any  # the Parent


class ParentResource(Proxied):
    """A resource of the machine, with its name there. Calls raise MachineError, like those of other clients."""

    Config: ClassVar[type[Attributes]] = ParentAttributes

    def remote(self) -> tuple[ApiClient, str]:
        """Return the client of the machine, and the name."""
        return self.attributes.parent.client(), self.name.short


class AnyResource(ParentResource):
    """A resource whose API has no base class here: methods are called by name and return plain values."""

    async def call(self, method: str, **arguments: Any) -> Any:
        """Call a unary method: `await map.call("get_position")`."""
        client, name = self.remote()
        return await client.call(self.name.api, name, method, **arguments)

    def stream(self, method: str, **arguments: Any) -> AsyncGenerator[Any, None]:
        """Call a streaming method; use the result in `contextlib.aclosing`."""
        client, name = self.remote()
        return client.stream(self.name.api, name, method, **arguments)

    async def do_command(self, command: Mapping[str, Any]) -> Mapping[str, Any]:
        """Run a command of the resource."""
        result: Mapping[str, Any] = await self.call("do_command", command=command)
        return result


class ParentHost(ResourceHost):
    """Provides a resource of the machine to its dependents. The machine starts and stops the resource itself."""

    async def run(self, deps: Mapping[str, Any], *, task_status: trio.TaskStatus[ResourceHost]) -> None:
        """Become ready immediately, and run until cancelled."""
        self.resource = self._construct(deps)
        task_status.started(self)
        await trio.sleep_forever()


def parent_host(name: ResourceName, parent: Parent, world: Any, hardware: Any) -> ParentHost:
    """Return the host of the machine's resource `name`, with the base class of its API if there is one."""
    base: Any = own_bases.get(name.api) or base_of(name.api)
    cls: type[Resource] = AnyResource if base is None else proxy_of(base, ParentResource)
    planned = PlannedResource(
        name=name, path="", model="", version=0, cls=cls, attributes=ParentAttributes(parent=parent)
    )
    log = structlog.get_logger(f"rdk.{name}")
    return ParentHost(planned, world=world, hardware=hardware, log=log)
