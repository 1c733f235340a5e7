"""`/machines/<part>/statistics`: processor, memory, disk, temperature and network, read from the machine itself."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from cloud.domain.machines.online import Presence, presence
from cloud.domain.permissions.access import ObjectKind
from cloud.domain.permissions.rules import AccessRule, operator
from cloud.services.common.base import Cloud
from cloud.services.machines.fleet import FleetService
from cloud.services.reverse.statistics import statistics
from cloud.web.common.site import author_of, render, status_of
from cloud.web.views.log_view import time_of
from rpc.pages import STATISTICS, plot_props
from schema import ErrorKind, MachineError

HOUR: Final = 3_600_000  # milliseconds


RULES: Final[Mapping[str, AccessRule]] = {
    "GET /machines/{id}/statistics": operator(ObjectKind.PART, "id"),
    "GET /machines/{id}/statistics/series": operator(ObjectKind.PART, "id"),
}


def routes(cloud: Cloud) -> list[BaseRoute]:
    """Return the routes."""

    async def show(request: Request) -> Response:
        """`GET`: the plots; without them, why there are none."""
        part = await FleetService(cloud, author_of(request)).part(request.path_params["id"])
        seen = presence(part.seen, cloud.clock(), online=part.online, gone=part.gone)
        source = f"/machines/{part.id}/statistics/series"
        return render(
            request,
            "statistics.html",
            part=part,
            online=seen is Presence.ONLINE,
            source=source,
            props=plot_props(source, "statistics", longest=STATISTICS),
            now=cloud.clock(),
        )

    async def series(request: Request) -> Response:
        """`GET ?from=&to=&points=`: the numbers as JSON, by default of the last hour; errors are JSON, too."""
        try:
            start, end, points = _range(request.query_params)
            answer = await statistics(cloud, author_of(request), request.path_params["id"], start, end, points)
        except MachineError as error:
            return JSONResponse({"error": str(error)}, status_of(error))
        return Response(answer, media_type="application/json")

    path = "/machines/{id}/statistics"
    return [Route(path, show), Route(f"{path}/series", series)]


def _range(asked: Mapping[str, str]) -> tuple[int, int, int]:
    """Return start and end in milliseconds since 1970, and the number of points. MachineError (INVALID)."""
    end = _milliseconds(asked, "to") or time.time_ns() // 1_000_000
    start = _milliseconds(asked, "from") or max(0, end - HOUR)
    points = asked.get("points", "") or "720"
    if start > end or not points.isascii() or not points.isdigit() or not 2 <= int(points[:7]) <= 1_000_000:
        raise MachineError(
            "the range of the statistics is not valid",
            kind=ErrorKind.INVALID,
            remedy="use times such as 2026-01-31T12:00:00Z, `from` before `to`, and a number of points",
        )
    return start, end, int(points[:7])


def _milliseconds(asked: Mapping[str, str], name: str) -> int:
    """Return a time of a query in milliseconds since 1970; 0 if it is missing. INVALID if it is not a time."""
    moment = time_of(asked.get(name, "")[:40].strip(), name)
    return 0 if moment is None else max(0, int(1000 * moment.timestamp()))
