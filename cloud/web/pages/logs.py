"""`/machines/<part>/logs`: the log of a machine."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final
from urllib.parse import urlencode

import trio
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.websockets import WebSocket

from cloud.domain.machines.log_counts import KEPT, MAX_POINTS
from cloud.domain.machines.logs import RETENTION
from cloud.domain.permissions.access import ObjectKind
from cloud.domain.permissions.rules import AccessRule, operator
from cloud.services.common.base import Cloud
from cloud.services.machines.fleet import FleetService
from cloud.values.cursor import cursor
from cloud.web.common import site
from cloud.web.common.live import FRAME, LivePage, live, news_of
from cloud.web.common.site import author_of, render, status_of
from cloud.web.views.log_view import LEVELS, PAGE, LogFilter, field_of, line, page, rates, sources, time_of
from rpc.pages import plot_props
from schema import ErrorKind, MachineError

DAY: Final = timedelta(days=1)
EARLIEST: Final = datetime.min.replace(tzinfo=UTC)


_BY_ID: Final = operator(ObjectKind.PART, "id")

RULES: Final[Mapping[str, AccessRule]] = {
    "GET /machines/{id}/logs": _BY_ID,
    "GET /machines/{id}/logs/rates": _BY_ID,
    "WS /live/logs/{id}": _BY_ID,
}


def routes(cloud: Cloud) -> list[BaseRoute]:
    """Return the routes of the page and its live connection."""
    pages = LogPages(cloud)
    return [
        Route("/machines/{id}/logs", pages.show),
        Route("/machines/{id}/logs/rates", pages.rates),
        WebSocketRoute("/live/logs/{id}", pages.live),
    ]


class LogPages:
    """Endpoints of logs."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    async def show(self, request: Request) -> Response:
        """`GET /machines/<part>/logs?level=&text=&logger=&from=&to=&before=&around=`."""
        author, subject = author_of(request), request.path_params["id"]
        log_filter = LogFilter.of(request.query_params)

        if log_filter.around:
            service = FleetService(self._cloud, author)
            record, entries = await service.log_around(subject, log_filter.around, PAGE // 2 - 1)
            newest = 0
        else:
            record, entries, newest = await FleetService(self._cloud, author).log(subject, log_filter.search())
        lines, before = page(entries)
        if log_filter.around:
            before = cursor(entries[-1].position, entries[-1].number)
        fields = log_filter.fields()
        path = f"/machines/{subject}/logs"
        return render(
            request,
            "logs.html",
            record=record,
            part=subject,
            lines=lines,
            levels=LEVELS,
            log_filter=log_filter,
            start=field_of(log_filter.start),
            end=field_of(log_filter.end),
            days=RETENTION.days,
            rates=plot_props(f"{path}/rates", "log lines", lines=path, shortest=DAY, longest=KEPT),
            older=f"{path}?{urlencode({**fields, 'before': before})}" if before else "",
            newest=f"{path}?{urlencode(fields)}" if log_filter.before is not None or log_filter.around else "",
            sources=sources(lines) if not log_filter.logger else [],
            links=path,
            fields=fields,
            without=lambda query, name: urlencode({key: value for key, value in query.items() if key != name}),
            with_source=lambda query, logger: urlencode({**query, "logger": logger}),
            live=f"/live/logs/{subject}?{urlencode({**fields, 'since': newest})}" if log_filter.live else "",
        )

    async def rates(self, request: Request) -> Response:
        """`GET /machines/<part>/logs/rates?from=&to=&points=`: counts of lines, as plots read them; errors are JSON."""
        asked = request.query_params
        try:
            end = time_of(asked.get("to", ""), "to") or self._cloud.clock()
            start = time_of(asked.get("from", ""), "from") or end - min(DAY, end - EARLIEST)
            points = asked.get("points", "") or "600"
            if start >= end or not (points.isascii() and points.isdigit() and 2 <= int(points[:9]) <= MAX_POINTS):
                raise MachineError(
                    "the range of the plot is not valid",
                    kind=ErrorKind.INVALID,
                    remedy=f"use a time `from` before `to`, and 2 to {MAX_POINTS} points",
                )
            service = FleetService(self._cloud, author_of(request))
            counts = await service.log_counts(request.path_params["id"], start, end, int(points[:9]))
        except MachineError as error:
            return JSONResponse({"error": str(error)}, status_of(error))
        return JSONResponse(rates(counts))

    async def live(self, socket: WebSocket) -> None:
        """`/live/logs/<part>?level=&text=&logger=&from=&since=`: send lines after line number `since`."""
        subject, query = socket.path_params["id"], dict(socket.query_params)
        log_filter = LogFilter.of(query)
        text = query.get("since", "")
        since = int(text) if text.isascii() and text.isdigit() and len(text) < 19 else -1

        async def stream(live_page: LivePage) -> None:
            await self._follow(live_page, subject, log_filter, since)

        await live(self._cloud, socket, stream)

    async def _follow(self, live_page: LivePage, subject: str, log_filter: LogFilter, since: int) -> None:
        service = FleetService(self._cloud, live_page.author)
        async with news_of(self._cloud, ("logs", subject)) as news:
            since = await service.newest_log(subject) if since < 0 else since
            while True:
                while records := await service.arrived_logs(subject, since):
                    since = records[-1].number
                    if matching := [line(record) for record in records if log_filter.admits(record)]:
                        await live_page.send(
                            log=[site.render_macro("logs_parts.html", "log_line", record) for record in matching]
                        )
                        await trio.sleep(FRAME)
                await news.next()
