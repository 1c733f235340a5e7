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

from cloud.services.base import Cloud
from cloud.triggering import http
from cloud.web import history_api, members_api, pages, site
from cloud.web.push import Push
from rpc.guard import Guard
from rpc.login import Entrance
from rpc.pages.headers import Protect
from schema.errors import MachineError

PUBLIC = ("/healthz", "/ca.pem")
PUBLIC_BELOW = ("/packages/", "/files/", "/invites/", "/static/")  # signed links, invitations; scripts and styles
ENTRANCE = Entrance(
    "Log in to the cloud",
    "The first start of machine-cloud printed the key of its owner. Owners make keys for others on the page Keys.",
)


def application(cloud: Cloud, *, loopback: bool, url: str = "") -> Any:
    """Everything that is no RPC, behind the guard: no page of another site, and no call without a token.

    `url` is where clients reach it, if that is elsewhere than where it listens.
    """
    push = Push(cloud)
    inner = Starlette(
        routes=[
            Route("/healthz", _health),
            Route("/static/{file}", site.static),
            WebSocketRoute("/machine/v1/follow", push.serve),
            *http.routes(cloud),
            *members_api.routes(cloud),
            *history_api.routes(cloud),
            *_pages(cloud),
        ],
        middleware=[Middleware(Protect)],
        exception_handlers={
            404: site.not_found,
            405: site.wrong_method,
            MachineError: site.machine_error,
            Exception: site.failed,
        },
    )
    return Guard(
        inner,
        cloud.authenticator,
        names=() if loopback else None,
        public=PUBLIC,
        public_below=PUBLIC_BELOW,
        entrance=ENTRANCE,
        outside=url,
    )


def _pages(cloud: Cloud) -> Iterator[BaseRoute]:
    """The routes of every room, in order of their names."""
    for room in sorted(module.name for module in pkgutil.iter_modules(pages.__path__)):
        yield from import_module(f"{pages.__name__}.{room}").routes(cloud)


async def _health(request: Request) -> Response:
    return JSONResponse({"status": "ok"})
