"""The ASGI application of the cloud's port."""

from __future__ import annotations

from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, WebSocketRoute

from cloud.services.base import Cloud
from cloud.web.push import Push
from rpc.guard import Guard

PUBLIC = ("/healthz",)


def application(cloud: Cloud, *, loopback: bool) -> Any:
    """Everything that is no RPC, behind the guard: no page of another site, and no call without a token."""
    push = Push(cloud)
    inner = Starlette(
        routes=[
            Route("/healthz", _health),
            WebSocketRoute("/machine/v1/follow", push.serve),
        ]
    )
    return Guard(inner, cloud.authenticator, names=() if loopback else None, public=PUBLIC)


async def _health(request: Request) -> Response:
    return JSONResponse({"status": "ok"})
