"""Services that every server provides: authentication, reflection and health. Each is loaded on first use."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from grpclib.const import Handler

from rpc.api import cloud_v1
from rpc.call import Fallback, Router, ServerCore
from rpc.carrier import HttpExchange, Identity
from rpc.health import HEALTH, Listen, Serves, health, never

if TYPE_CHECKING:
    from rpc.access.auth import Authenticator

AUTH: Final = "proto.rpc.v1.AuthService"
STANDARD: Final = (AUTH, HEALTH, "grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection")

ROUTES: Final = (
    "/viam/api/",
    "/api/v1/",
    "/rpc/",
    "/datasync/v1/",
    "/packages/v1/",
    f"/{cloud_v1.PACKAGE}.",
)
"""Beginnings of the paths of calls over HTTP with JSON: published ones, and those of our own services."""
Admit = Callable[[Identity | None], AbstractAsyncContextManager[Any]]
"""`admit(identity)` is entered for the duration of each reflection or health call; it may reject or cancel the call."""


class StandardServices:
    """Router that adds the standard services to `inner`.

    `names` returns the full names of the services of `inner`. `load` is called with a service or message name and loads
    the messages it may belong to. `pools` returns additional descriptor pools. `serves` and `listen` are those of
    `rpc.health.health`, but for the whole server ("") only: each service has the health of the server.
    """

    def __init__(
        self,
        inner: Router,
        authenticator: Callable[[], Authenticator],
        *,
        names: Callable[[], Iterable[str]],
        load: Callable[[str], None],
        pools: Callable[[], Sequence[Any]] = tuple,
        serves: Callable[[], bool] = lambda: True,
        listen: Listen = never,
        admit: Admit = nullcontext,
    ) -> None:
        self._inner = inner
        self._authenticator = authenticator
        self._names = names
        self._load = load
        self._pools = pools
        self._serves_all = serves
        self._listen = listen
        self._admit = admit
        self._routers: dict[str, Router] = {}

    def get(self, path: str, /) -> Handler | None:
        """Return the handler of `/package.Service/Method`, or None."""
        service = path[1 : path.rfind("/")]
        if service not in STANDARD:
            return self._inner.get(path)
        if service not in self._routers:
            self._routers[service] = self._make(service)
        return self._routers[service].get(path)

    def names(self) -> list[str]:
        """Return the full names of all services, including the standard ones."""
        return [*self._names(), *STANDARD]

    def _make(self, service: str) -> Router:
        if service == AUTH:
            from rpc.server.auth_service import AuthRouter

            return AuthRouter(self._inner, self._authenticator())
        if service == HEALTH:
            serves: Serves = self._serves
            handlers = health(serves, self._listen, token=lambda: self._authenticator().enabled)
        else:
            from rpc.server.server_reflection import reflection

            handlers = reflection(self.names, load=self._load_any, pools=self._pools)
        return {path: self._admitted(handler) for path, handler in handlers.items()}

    def _admitted(self, handler: Handler) -> Handler:
        return handler._replace(func=partial(self._answer, handler.func))

    async def _answer(self, answer: Callable[[Any], Awaitable[None]], stream: Any) -> None:
        async with self._admit(stream.identity):
            await answer(stream)

    def _serves(self, service: str) -> bool | None:
        return self._serves_all() if not service or service in self.names() else None

    def _load_any(self, name: str) -> None:
        if name.startswith("proto.rpc.v1."):
            from rpc.api import messages

            messages.auth()
        elif name.startswith("grpc.health."):
            import grpclib.health.v1.health_pb2  # noqa: F401 - registers the file in the descriptor pool
        else:
            self._load(name)


def http_and_json(core: ServerCore, names: Callable[[], Iterable[str]], otherwise: Fallback) -> Fallback:
    """Return a fallback that serves calls over HTTP with JSON and delegates other paths to `otherwise`.

    The gateway is loaded on the first request for an API path.
    """
    gateways: list[Fallback] = []

    async def answer(exchange: HttpExchange) -> None:
        if not exchange.path.startswith(ROUTES):
            await otherwise(exchange)
            return
        if not gateways:
            from rpc.api.gateway import Gateway

            gateways.append(Gateway(core, names, otherwise))
        await gateways[0](exchange)

    return answer


def load_services(names: Iterable[str], load: Callable[[str], None], name: str) -> None:
    """Load the service `name`; if `name` is not in `names`, such as a message name, load all of `names`."""
    services = tuple(names)
    for service in [name] if name in services else services:
        load(service)
