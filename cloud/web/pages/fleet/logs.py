"""`/logs`: the logs of all machines that the caller may see, or of those that match, newest entry first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter
from typing import Final
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from cloud.domain.fleet.fleet_logs import BUDGET, MAX_PARTS, FleetLog
from cloud.domain.fleet.listing import FleetFilter, MachinePart
from cloud.domain.machines.logs import RETENTION
from cloud.domain.permissions.rules import FILTERED, AccessRule
from cloud.services.common.base import Cloud
from cloud.services.machines.fleet import FleetService
from cloud.values.cursor import cursor
from cloud.values.times import moment_of
from cloud.web.common.site import author_of, render
from cloud.web.views.fleet.fleet_query import FleetQuery
from cloud.web.views.log_view import LEVELS, PAGE, LogFilter, ShownLine, collapsed, field_of, line

PATH: Final = "/logs"


@dataclass(frozen=True, slots=True)
class MachineLine:
    """A line of a log with its machine; equal lines of a machine that follow each other are one."""

    part: MachinePart
    line: ShownLine


RULES: Final[Mapping[str, AccessRule]] = {
    "GET /logs": FILTERED,
}


def routes(cloud: Cloud) -> list[BaseRoute]:
    """Return the route."""

    async def show(request: Request) -> Response:
        """`GET /logs` with the conditions of the list of machines, and those of the log of a machine."""
        query = request.query_params
        fleet, log_filter = FleetQuery.of(query), LogFilter.of(query)
        result, parts = await FleetService(cloud, author_of(request)).search_logs(
            fleet.filter(), replace(log_filter.search(), limit=PAGE)
        )
        fields = {**fleet.conditions(), **log_filter.fields()}
        return render(
            request,
            "fleet_logs.html",
            lines=lines_of(result, parts),
            result=result,
            machines=len({part.machine_id for part in parts.values()}),
            others=len(parts) >= MAX_PARTS,
            fleet=fleet,
            hidden={name: value for name, value in fleet.conditions().items() if name not in ("q", "tag")},
            chosen=fleet.filter() != FleetFilter(),
            levels=LEVELS,
            log_filter=log_filter,
            start=field_of(log_filter.start),
            end=field_of(log_filter.end),
            days=RETENTION.days,
            budget=BUDGET,
            searched=moment_of(result.after[0]) if result.after else None,
            older=f"{PATH}?{urlencode({**fields, 'before': cursor(moment_of(result.after[0]), result.after[1])})}"
            if result.after
            else "",
            newest=f"{PATH}?{urlencode(fields)}" if log_filter.before is not None else "",
            list_of_machines=fleet.url(),
        )

    return [Route(PATH, show)]


def lines_of(result: FleetLog, parts: Mapping[str, MachinePart]) -> list[MachineLine]:
    """Return the lines of entries, in their order."""
    lines: list[MachineLine] = []
    for part, entries in groupby(result.entries, key=itemgetter(0)):
        shown = collapsed([line(record) for _, record in entries][::-1])
        lines += (MachineLine(parts[part], each) for each in reversed(shown))
    return lines
