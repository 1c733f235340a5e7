"""Response to a metrics scraper, shared by machine and cloud."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from starlette.requests import Request
from starlette.responses import Response

from telemetry.metrics import Family, expose

RunInThread: TypeAlias = Callable[[Callable[[], tuple[bytes, str]]], Awaitable[tuple[bytes, str]]]
"""Function that runs a callable in a worker thread."""


async def exposed(families: Sequence[Family], request: Request, run: RunInThread, *, process: bool = True) -> Response:
    """Return `families` in a format that the request accepts; `run` keeps the formatting off the event loop."""
    accept = request.headers.get("accept", "")
    body, content_type = await run(lambda: expose(families, accept, process=process))
    return Response(body, headers={"content-type": content_type, "cache-control": "no-store"})
