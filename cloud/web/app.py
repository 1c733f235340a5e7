"""The ASGI application of the cloud's port."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from functools import partial
from importlib import import_module
from typing import Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route, WebSocketRoute

from cloud.domain.permissions.authentication import author_of
from cloud.services.common.base import Cloud
from cloud.services.machines.fleet import FleetService
from cloud.store.turns import working_for
from cloud.web import pages
from cloud.web.api import (
    authorities,
    connectivity,
    installation,
    packages,
    releases,
    series,
)
from cloud.web.api.metrics import machine_families, process_families, segment_families
from cloud.web.api.push import Push
from cloud.web.api.serve import Serve
from cloud.web.common import site
from cloud.web.pages.machine import pages_of_main_part
from cloud.web.permissions import PUBLIC, PUBLIC_BELOW, guarded_routes
from rpc import Statistics
from rpc.access import API_KEY, METRICS_PATH, Guard, LoginTexts, identity_of
from rpc.pages import Compress, Protect, exposed
from schema import MachineError
from support import Worker
from telemetry.metrics import loop_passes

LOGIN_TEXTS = LoginTexts(
    "Log in to the cloud",
    "machine-cloud printed the key of its owner at its first start. Owners create keys for others on the page Keys.",
    "machine cloud open",
)


def application(cloud: Cloud, *, loopback: bool, url: str = "", statistics: Statistics | None = None) -> Any:
    """Return the application for everything except RPC, behind a guard against other sites and calls without a token.

    `url` is where clients reach the cloud if that differs from the listening address. `statistics` are those of the
    port.
    """
    push = Push(cloud)
    counters = statistics or Statistics()

    async def metrics(request: Request) -> Response:
        """`GET /metrics`, for Prometheus."""
        machines, sealed = await FleetService(cloud, site.author_of(request)).figures()
        worker = Worker("metrics")
        async with worker.opened():
            families = await worker.run(partial(machine_families, machines, cloud.clock()))
            if sealed is not None:
                own = loop_passes().families("machine_cloud")
                families += [*process_families(counters), *segment_families(sealed), *own]
            return await exposed(families, request, worker.run, process=sealed is not None)

    async def machine_error(request: Request, error: Exception) -> Response:
        main_part_page = await pages_of_main_part(cloud, request, error)
        return await site.machine_error(request, error) if main_part_page is None else site.redirect(main_part_page)

    routes = [
        Route("/healthz", _health),
        Route("/static/{file}", site.static),
        Route(METRICS_PATH, metrics),
        WebSocketRoute("/machine/v1/follow", push.serve),
        WebSocketRoute("/machine/v1/serve", Serve(cloud).serve),
        *authorities.routes(cloud),
        *connectivity.routes(cloud),
        *installation.routes(cloud),
        *packages.routes(cloud),
        *releases.routes(cloud),
        *_pages(cloud),
    ]
    inner = Starlette(
        routes=guarded_routes(cloud, routes),
        middleware=[Middleware(Protect), Middleware(Compress), Middleware(OrganizationShares, cloud=cloud)],
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
        keyed={**installation.KEYED, **dict.fromkeys(series.KEYED, (API_KEY,))},
        texts=LOGIN_TEXTS,
        public_url=url,
    )


class OrganizationShares:
    """Middleware that assigns all transactions of a request to the caller's organization, for fair scheduling."""

    def __init__(self, app: Any, cloud: Cloud) -> None:
        self._app = app
        self._cloud = cloud

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Handle a request; see ASGI 3."""
        identity = identity_of(scope)
        author = author_of(identity)
        with working_for("" if identity is None else await self._cloud.homes.of(self._cloud.store, author)):
            await self._app(scope, receive, send)


def _pages(cloud: Cloud) -> Iterator[BaseRoute]:
    """Yield the routes of all modules in `cloud.web.pages`, sorted by module name."""
    for module_name in sorted(module.name for module in pkgutil.iter_modules(pages.__path__)):
        yield from import_module(f"{pages.__name__}.{module_name}").routes(cloud)


async def _health(request: Request) -> Response:
    return JSONResponse({"status": "ok"})
