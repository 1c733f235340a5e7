"""What a machine has logged: `/machines/<part>/logs`."""

from __future__ import annotations

from urllib.parse import urlencode

import trio
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.websockets import WebSocket

from cloud import logs
from cloud.access import Of, Role, require
from cloud.logs import RETENTION, LogRecord
from cloud.machines import PartRecord, part
from cloud.services.base import Cloud
from cloud.store.sql import Sql
from cloud.web import site
from cloud.web.live import FRAME, LivePage, live, news_of
from cloud.web.log_view import LEVELS, Wanted, field_of, line, page
from cloud.web.site import author_of, render


def routes(cloud: Cloud) -> list[BaseRoute]:
    """The page and its live connection."""
    pages = LogPages(cloud)
    return [Route("/machines/{id}/logs", pages.show), WebSocketRoute("/live/logs/{id}", pages.live)]


class LogPages:
    """The endpoints."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    async def show(self, request: Request) -> Response:
        """`GET /machines/<part>/logs?level=&text=&logger=&from=&to=&before=`."""
        author, subject = author_of(request), request.path_params["id"]
        wanted = Wanted.of(request.query_params)

        def work(sql: Sql) -> tuple[PartRecord, list[LogRecord], int]:
            require(sql, author, Role.OPERATOR, Of.PART, subject)
            return part(sql, subject), logs.query(sql, subject, wanted.search()), logs.newest(sql)

        found, entries, newest = await self._cloud.store.read(work)
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
        """`/live/logs/<part>?level=&text=&logger=&from=&since=`: lines that came after the one numbered `since`."""
        subject, query = socket.path_params["id"], dict(socket.query_params)
        wanted = Wanted.of(query)
        text = query.get("since", "")
        since = int(text) if text.isascii() and text.isdigit() and len(text) < 19 else -1

        async def stream(shown: LivePage) -> None:
            await self._follow(shown, subject, wanted, since)

        await live(self._cloud, socket, stream)

    async def _follow(self, shown: LivePage, subject: str, wanted: Wanted, since: int) -> None:
        store = self._cloud.store

        def work(sql: Sql) -> list[LogRecord]:
            require(sql, shown.author, Role.OPERATOR, Of.PART, subject)
            return logs.arrived(sql, subject, since)

        async with news_of(self._cloud, ("logs", subject)) as news:
            since = await store.read(logs.newest) if since < 0 else since
            while True:
                while found := await store.read(work):
                    since = found[-1].number
                    if chosen := [line(one) for one in found if wanted.admits(one)]:
                        await shown.send(log=[site.part("logs_parts.html", "log_line", one) for one in chosen])
                        await trio.sleep(FRAME)
                await news.next()
