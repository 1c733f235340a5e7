"""The ASGI application of the cloud's port."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route, WebSocketRoute

from cloud.authentication import author_of
from cloud.metrics import machine_families, process_families, runs_the_cloud
from cloud.services.base import Cloud
from cloud.store.turns import working_for
from cloud.triggering import http
from cloud.web import history_api, members_api, pages, site
from cloud.web.pages.machine import pages_of_main_part
from cloud.web.permissions import PUBLIC, PUBLIC_BELOW, guarded_routes
from cloud.web.push import Push
from rpc.guard import METRICS, Guard, identity_of
from rpc.login import Entrance
from rpc.pages.headers import Protect
from rpc.pages.scrape import exposed
from rpc.statistics import Statistics
from schema.errors import MachineError
from support.worker import Worker

ENTRANCE = Entrance(
    "Log in to the cloud",
    "The first start of machine-cloud printed the key of its owner. Owners make keys for others on the page Keys.",
)


def application(cloud: Cloud, *, loopback: bool, url: str = "", statistics: Statistics | None = None) -> Any:
    """Everything that is no RPC, behind the guard: no page of another site, and no call without a token.

    `url` is where clients reach it, if that is elsewhere than where it listens. `statistics` are those of the port.
    """
    push = Push(cloud)
    counted = statistics or Statistics()

    async def metrics(request: Request) -> Response:
        """`GET /metrics`: for Prometheus."""
        author, now = site.author_of(request), cloud.clock()
        found, whole = await cloud.store.read(
            lambda sql: (machine_families(sql, author, now), runs_the_cloud(sql, author))
        )
        families = [*found, *(process_families(counted) if whole else ())]
        worker = Worker("metrics")
        async with worker.opened():
            return await exposed(families, request, worker.run, process=whole)

    async def machine_error(request: Request, error: Exception) -> Response:
        at_part = await pages_of_main_part(cloud, request, error)
        return await site.machine_error(request, error) if at_part is None else site.see(at_part)

    routes = [
        Route("/healthz", _health),
        Route("/static/{file}", site.static),
        Route(METRICS, metrics),
        WebSocketRoute("/machine/v1/follow", push.serve),
        *http.routes(cloud),
        *members_api.routes(cloud),
        *history_api.routes(cloud),
        *_pages(cloud),
    ]
    inner = Starlette(
        routes=guarded_routes(cloud, routes),
        middleware=[Middleware(Protect), Middleware(InTurn, cloud=cloud)],
        exception_handlers={
            404: site.not_found,
            405: site.wrong_method,
            MachineError: machine_error,
            Exception: site.failed,
        },
    )
    inner.state.room = cloud.room
    return Guard(
        inner,
        cloud.authenticator,
        names=() if loopback else None,
        public=PUBLIC,
        public_below=PUBLIC_BELOW,
        entrance=ENTRANCE,
        outside=url,
    )


class InTurn:
    """Whatever a request does, until its answer has been sent, is done in the line of who asks."""

    def __init__(self, app: Any, cloud: Cloud) -> None:
        self._app = app
        self._cloud = cloud

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """As ASGI 3."""
        identity = identity_of(scope)
        author = author_of(identity)
        with working_for("" if identity is None else await self._cloud.homes.of(self._cloud.store, author)):
            await self._app(scope, receive, send)


def _pages(cloud: Cloud) -> Iterator[BaseRoute]:
    """The routes of every room, in order of their names."""
    for room in sorted(module.name for module in pkgutil.iter_modules(pages.__path__)):
        yield from import_module(f"{pages.__name__}.{room}").routes(cloud)


async def _health(request: Request) -> Response:
    return JSONResponse({"status": "ok"})
