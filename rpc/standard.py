"""What every server answers besides its own services: authentication, reflection, health; loaded on first use."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from grpclib.const import Handler

from rpc.call import Fallback, Router, ServerCore
from rpc.carrier import HttpExchange, Identity
from rpc.health import HEALTH, Listen, Serves, health, never

if TYPE_CHECKING:
    from rpc.auth import Authenticator

AUTH: Final = "proto.rpc.v1.AuthService"
STANDARD: Final = (AUTH, HEALTH, "grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection")

ROUTES: Final = ("/viam/api/", "/api/v1/", "/rpc/", "/datasync/v1/", "/packages/v1/")  # of the published API
Admit = Callable[[Identity | None], AbstractAsyncContextManager[Any]]
"""`admit(identity)` is entered for as long as a call of reflection or health lasts; it may refuse or end it."""


class StandardServices:
    """A router in front of `inner`.

    `names` gives the full names of the services of `inner`, `load` loads the messages of one of them, or of all that a
    name of a message may belong to; `pools` gives further descriptors. `serves` and `listen` are those of
    `rpc.health.health`, for the whole server ("") only: its services answer when it does.
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
        self._made: dict[str, Router] = {}

    def get(self, path: str, /) -> Handler | None:
        """As Router."""
        service = path[1 : path.rfind("/")]
        if service not in STANDARD:
            return self._inner.get(path)
        if service not in self._made:
            self._made[service] = self._make(service)
        return self._made[service].get(path)

    def names(self) -> list[str]:
        """Full names of all services, these included."""
        return [*self._names(), *STANDARD]

    def _make(self, service: str) -> Router:
        if service == AUTH:
            from rpc.auth_service import AuthRouter

            return AuthRouter(self._inner, self._authenticator())
        if service == HEALTH:
            serves: Serves = self._serves
            made = health(serves, self._listen, token=lambda: self._authenticator().enabled)
        else:
            from rpc.reflection import reflection

            made = reflection(self.names, load=self._load_any, pools=self._pools)
        return {path: self._admitted(handler) for path, handler in made.items()}

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
            import grpclib.health.v1.health_pb2  # noqa: F401 - puts it into the pool of descriptors
        else:
            self._load(name)


def http_and_json(core: ServerCore, names: Callable[[], Iterable[str]], otherwise: Fallback) -> Fallback:
    """`otherwise`, with the published API by HTTP and JSON before it; loaded with the first request for one."""
    made: list[Fallback] = []

    async def answer(exchange: HttpExchange) -> None:
        if not exchange.path.startswith(ROUTES):
            await otherwise(exchange)
            return
        if not made:
            from rpc.api.gateway import Gateway

            made.append(Gateway(core, names, otherwise))
        await made[0](exchange)

    return answer


def load_services(names: Iterable[str], load: Callable[[str], None], name: str) -> None:
    """Load the service `name`, or each of `names` for a message whose service is not known."""
    services = tuple(names)
    for service in [name] if name in services else services:
        load(service)
