"""`/machines/<part>/logs`: the log of a machine."""

from __future__ import annotations

from urllib.parse import urlencode

import trio
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.websockets import WebSocket

from cloud.domain.machines.logs import RETENTION
from cloud.services.common.base import Cloud
from cloud.services.machines.fleet import FleetService
from cloud.web.common import site
from cloud.web.common.live import FRAME, LivePage, live, news_of
from cloud.web.common.site import author_of, render
from cloud.web.views.log_view import LEVELS, Wanted, field_of, line, page


def routes(cloud: Cloud) -> list[BaseRoute]:
    """Return the routes of the page and its live connection."""
    pages = LogPages(cloud)
    return [Route("/machines/{id}/logs", pages.show), WebSocketRoute("/live/logs/{id}", pages.live)]


class LogPages:
    """Endpoints of logs."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    async def show(self, request: Request) -> Response:
        """`GET /machines/<part>/logs?level=&text=&logger=&from=&to=&before=`."""
        author, subject = author_of(request), request.path_params["id"]
        wanted = Wanted.of(request.query_params)

        found, entries, newest = await FleetService(self._cloud, author).log(subject, wanted.search())
        lines, before = page(entries)
        query = wanted.query()
        here = f"/machines/{subject}/logs"
        return render(
            request,
            "logs.html",
            found=found,
            part=subject,
            lines=lines,
            levels=LEVELS,
            wanted=wanted,
            start=field_of(wanted.start),
            end=field_of(wanted.end),
            days=RETENTION.days,
            older=f"{here}?{urlencode({**query, 'before': before})}" if before else "",
            newest=f"{here}?{urlencode(query)}" if wanted.before is not None else "",
            live=f"/live/logs/{subject}?{urlencode({**query, 'since': newest})}" if wanted.live else "",
        )

    async def live(self, socket: WebSocket) -> None:
        """`/live/logs/<part>?level=&text=&logger=&from=&since=`: send lines after line number `since`."""
        subject, query = socket.path_params["id"], dict(socket.query_params)
        wanted = Wanted.of(query)
        text = query.get("since", "")
        since = int(text) if text.isascii() and text.isdigit() and len(text) < 19 else -1

        async def stream(shown: LivePage) -> None:
            await self._follow(shown, subject, wanted, since)

        await live(self._cloud, socket, stream)

    async def _follow(self, shown: LivePage, subject: str, wanted: Wanted, since: int) -> None:
        service = FleetService(self._cloud, shown.author)
        async with news_of(self._cloud, ("logs", subject)) as news:
            since = await service.newest_log(subject) if since < 0 else since
            while True:
                while found := await service.arrived_logs(subject, since):
                    since = found[-1].number
                    if chosen := [line(one) for one in found if wanted.admits(one)]:
                        await shown.send(log=[site.part("logs_parts.html", "log_line", one) for one in chosen])
                        await trio.sleep(FRAME)
                await news.next()
