"""The machine that has started this module: its resources as dependencies, and where the log goes."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, ClassVar, Final, TypeAlias

import structlog
import trio
from grpclib.exceptions import GRPCError

from rpc.api.client import ApiClient
from rpc.client import Channel
from rpc.silence import within
from runtime.apis import base_of
from runtime.host import ResourceHost
from runtime.module.api import own_bases
from runtime.module.logs import MachineSink
from runtime.proxy import Proxied, proxy_of
from runtime.reconfigure import Wanted
from runtime.resource import Attributes, Resource
from schema.errors import ErrorKind, MachineError
from schema.names import ResourceName

NODE: Final = "internal/parent"
NAME_KEY: Final = "modname"  # metadata of every call: which module calls
ASK_LIMIT: Final = 300.0  # seconds from the start until the machine must have asked; reference: 5 min for a start
AGAIN: Final = 1.0  # seconds between two connections to a machine that hangs up at once
FLUSH_LIMIT: Final = 1.5  # seconds for the last entries of the log; reference value

Dial: TypeAlias = "Callable[[str], AbstractAsyncContextManager[tuple[Any, Callable[[], Awaitable[None]]]]]"
"""From an address to a channel, and what returns when nobody is there any more."""


@asynccontextmanager
async def dial(address: str) -> AsyncIterator[tuple[Channel, Callable[[], Awaitable[None]]]]:
    """A channel to the machine at a path or host:port."""
    async with Channel(f"unix:{address}" if "/" in address else address) as channel:
        yield channel, lambda: _gone(channel)


async def _gone(channel: Channel) -> None:
    """Return when a lost connection cannot be made again: the machine has ended."""
    while True:
        begin = trio.current_time()
        try:
            await channel.lost()
        except GRPCError:
            return
        await trio.sleep_until(begin + AGAIN)


class Parent:
    """The machine, from the moment it introduces itself. `gone` is called when it has ended, with the reason."""

    def __init__(self, module: str, sink: MachineSink, gone: Callable[[str], None], dial: Dial = dial) -> None:
        self._module = module
        self._sink = sink
        self._gone = gone
        self._dial = dial
        self._address = ""
        self._introduced = trio.Event()
        self._client: ApiClient | None = None

    def introduce(self, address: str) -> None:
        """The machine has asked, and is at this path or host:port. Only the first one counts: there is one machine."""
        if not self._introduced.is_set() and address:
            self._address = address
            self._introduced.set()

    def client(self) -> ApiClient:
        """For calls to the machine; MachineError (UNAVAILABLE) while it has not introduced itself."""
        if self._client is None:
            raise MachineError("the machine has not introduced itself yet", kind=ErrorKind.UNAVAILABLE)
        return self._client

    async def run(self, deps: Mapping[str, Any], /, *, task_status: trio.TaskStatus[Parent]) -> None:
        """The node's life. Stops after everything else, so that the last messages are sent too."""
        task_status.started(self)
        try:
            await within(ASK_LIMIT, self._introduced.wait)
        except trio.TooSlowError:
            self._gone(f"no machine has asked for this module within {ASK_LIMIT:g} s")
            await trio.sleep_forever()
        async with self._dial(self._address) as (channel, gone):
            client = self._client = ApiClient(channel, metadata={NAME_KEY: self._module})
            try:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._sink.send, self.client)
                    await gone()
                    self._gone("the machine has ended")
                    await trio.sleep_forever()
            finally:
                with trio.move_on_after(FLUSH_LIMIT, shield=True):
                    try:
                        await self._sink.flush(client)
                    except MachineError:
                        pass  # the sink's fallback has them
                self._client = None


class ParentAttributes(Attributes, kw_only=True, frozen=True):
    """What a resource of the machine is built from."""

    parent: Any  # the Parent


class ParentResource(Proxied):
    """A resource of the machine, under its name there. Calls raise MachineError as those of clients do."""

    Config: ClassVar[type[Attributes]] = ParentAttributes

    def remote(self) -> tuple[ApiClient, str]:
        """The machine."""
        return self.attributes.parent.client(), self.name.short


class AnyResource(ParentResource):
    """One whose API has no base class here: methods by name, results as plain values."""

    async def call(self, method: str, **arguments: Any) -> Any:
        """Call a method with one result: `await map.call("get_position")`."""
        client, there = self.remote()
        return await client.call(self.name.api, there, method, **arguments)

    def stream(self, method: str, **arguments: Any) -> AsyncGenerator[Any, None]:
        """Call a method with many results; use it in `contextlib.aclosing`."""
        client, there = self.remote()
        return client.stream(self.name.api, there, method, **arguments)

    async def do_command(self, command: Mapping[str, Any]) -> Mapping[str, Any]:
        """As of every resource."""
        result: Mapping[str, Any] = await self.call("do_command", command=command)
        return result


class ParentHost(ResourceHost):
    """Hands a resource of the machine to those that depend on it. It lives there: nothing to start, nothing to stop."""

    async def run(self, deps: Mapping[str, Any], *, task_status: trio.TaskStatus[ResourceHost]) -> None:
        """Ready at once."""
        self.resource = self._construct(deps)
        task_status.started(self)
        await trio.sleep_forever()


def parent_host(name: ResourceName, parent: Parent, world: Any, hardware: Any) -> ParentHost:
    """The host of the machine's resource `name`, typed by the base class of its API."""
    base: Any = own_bases.get(name.api) or base_of(name.api)
    cls: type[Resource] = AnyResource if base is None else proxy_of(base, ParentResource)
    wanted = Wanted(name=name, path="", model="", version=0, cls=cls, attributes=ParentAttributes(parent=parent))
    log = structlog.get_logger(f"rdk.{name}")
    return ParentHost(wanted, world=world, hardware=hardware, log=log)
