"""A module: its offers, its graph, and the services on its port."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from functools import partial
from typing import Any, Final

import trio
from grpclib.const import Handler

from engine import BASES
from hal import Hardware
from hal.sim import World
from nursery_graph import Graph, Node, Overdue, Restart
from rpc import Limits, ServerCore
from rpc.api import ApiRouter, CallInfo
from rpc.server import serve
from runtime.sdk.api import own_bases
from runtime.sdk.logs import MachineSink
from runtime.sdk.offers import OfferedDrivers
from runtime.sdk.parent import NODE as PARENT
from runtime.sdk.parent import Dial, Parent, dial
from runtime.sdk.resources import Resources
from runtime.sdk.service import SERVICE, ModuleService
from schema.document import ResourceEntry

RPC: Final = "internal/rpc"
STOP_LIMIT: Final = 8.0  # seconds for the whole shutdown; machines wait 10 s between SIGTERM and SIGKILL
DRAIN_LIMIT: Final = 5.0  # seconds for closing the port


class RunningModule:
    """A running module; call `run` with listeners, or use `router` directly without any.

    `configured` is called with all entries whenever they change.
    """

    def __init__(
        self,
        offers: OfferedDrivers,
        name: str,
        sink: MachineSink,
        *,
        world: World,
        hardware: Hardware,
        dial: Dial = dial,
        configured: Callable[[Sequence[ResourceEntry]], None] = lambda entries: None,
        on_overdue: Callable[[Overdue], None] | None = None,
        jitter: Callable[[], float] | None = None,
    ) -> None:
        more: dict[str, Any] = {} if jitter is None else {"jitter": jitter}
        self.graph = Graph(shutdown_timeout=STOP_LIMIT, on_overdue=on_overdue, **more)
        self.parent = Parent(name, sink, self.stop, dial)
        self.resources = Resources(
            self.graph,
            offers,
            self.parent,
            world=world,
            hardware=hardware,
            changed=lambda: configured(self.resources.entries),
        )
        self._service = ModuleService(self.parent, self.resources)
        bases = {api: own_bases.get(api) or BASES[api] for api in offers.apis}
        self.router = ModuleRouter(ApiRouter(self, bases=bases, services={SERVICE: ModuleService}))

    def call(self, request: CallInfo) -> AbstractAsyncContextManager[Any]:
        """Return a context manager that limits a call to the lifetime of its resource; see Target."""
        if request.api is None:
            return nullcontext(self._service)
        return self.resources.find(f"{request.api}/{request.name}").use()

    def stop(self, reason: str) -> None:
        """Stop everything in order and make `run` return; resources that are not ready yet fail immediately."""
        self.resources.give_up(reason)
        self.graph.stop(reason)

    async def run(self, listeners: Iterable[trio.SocketListener] = ()) -> None:
        """Run until cancelled, until `stop`, or until the machine has ended; then stop everything in order."""
        nodes = [Node(PARENT, self.parent.run, restart=Restart(kind="permanent", intensity=1_000_000))]
        if opened := list(listeners):
            nodes.append(Node(RPC, partial(self._serve, opened), requires={PARENT}))
        self.resources.others = tuple(nodes)
        self.resources.apply()
        await self.graph.run()

    async def _serve(
        self, listeners: list[Any], deps: Mapping[str, Any], /, *, task_status: trio.TaskStatus[Any]
    ) -> None:
        await serve(
            listeners,
            ServerCore(self.router, limits=Limits(drain_timeout=DRAIN_LIMIT)),
            app=None,
            tls=None,
            task_status=task_status,
        )


class ModuleRouter:
    """Routes calls to the services of a module and to gRPC reflection."""

    def __init__(self, inner: ApiRouter) -> None:
        self._inner = inner
        self._reflection: Mapping[str, Handler] | None = None

    def get(self, path: str, /) -> Handler | None:
        """Return the handler of a path, or None; see Router."""
        if not path.startswith("/grpc.reflection."):
            return self._inner.get(path)
        if self._reflection is None:
            from rpc.server import reflection

            self._reflection = reflection(self._inner.service_names, load=self._load)
        return self._reflection.get(path)

    def _load(self, name: str) -> None:
        names = self._inner.service_names()
        for service in [name] if name in names else names:
            self._inner.load(service)
