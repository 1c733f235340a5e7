"""One machine: `/machines/<id>`, where the id is that of the machine or of one of its parts."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urlencode

import trio
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.websockets import WebSocket

from cloud import logs, watching
from cloud.access import Of, Role, require
from cloud.author import Author
from cloud.fleet import FleetMachine, fleet
from cloud.logs import LogQuery, LogRecord
from cloud.machines import parts
from cloud.services.app import AppService
from cloud.services.base import Cloud
from cloud.store.sql import Sql
from cloud.tenants import missing
from cloud.web.fleet_view import next_change
from cloud.web.live import FRAME, LivePage, live, news_of
from cloud.web.log_view import Line, line
from cloud.web.machine_view import View, pieces, readings, view
from cloud.web.setup import setup_page
from cloud.web.site import author_of, fields, part, render, see, status_of, text_of
from rpc.pages.patches import Patcher
from schema.errors import ErrorKind, MachineError

LAST_LINES: Final = 10  # log lines on the page of a machine that is offline

_PAGE_OF_MACHINE: Final = re.compile(r"/machines/(?P<machine>[^/]+)/(?P<page>[a-z]+)")


def routes(cloud: Cloud) -> list[BaseRoute]:
    """The page of a machine, what its buttons do, and its live connection."""
    pages = MachinePages(cloud)
    return [
        Route("/machines/{id}", pages.show, methods=["GET"]),
        Route("/machines/{id}/rename", pages.rename, methods=["POST"]),
        Route("/machines/{id}/restart", pages.restart, methods=["POST"]),
        Route("/machines/{id}/setup", pages.setup, methods=["POST"]),
        Route("/machines/{id}/delete", pages.delete, methods=["POST"]),
        Route("/machines/{id}/parts", pages.add_part, methods=["POST"]),
        WebSocketRoute("/live/machines/{id}", pages.live),
    ]


async def pages_of_main_part(cloud: Cloud, request: Request, error: Exception) -> str | None:
    """Return where `/machines/<machine>/<page>` is found: at the machine's main part; None for any other request.

    Pages are addressed by part. `error` is why the page was refused; only NOT_FOUND is looked into.
    """
    match = _PAGE_OF_MACHINE.fullmatch(request.url.path)
    if not isinstance(error, MachineError) or error.kind is not ErrorKind.NOT_FOUND or not match:
        return None
    if request.method != "GET":
        return None
    author, subject = author_of(request), match["machine"]

    def work(sql: Sql) -> str:
        require(sql, author, Role.OPERATOR, Of.ROBOT, subject)
        return parts(sql, subject)[0].id

    try:
        main = await cloud.store.read(work)
    except MachineError:
        return None
    query = f"?{request.url.query}" if request.url.query else ""
    return f"/machines/{main}/{match['page']}{query}"


class MachinePages:
    """The endpoints."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    async def show(self, request: Request) -> Response:
        """`GET /machines/<id>`."""
        return await self._show(request)

    async def _show(self, request: Request, error: MachineError | None = None, at: str = "") -> Response:
        author = author_of(request)
        machine, shown = await self._view(author, request.path_params["id"])
        lines = await self._last_lines(author, shown.facts.id) if shown.facts.css == "offline" else []
        return render(
            request,
            "machine.html",
            status_of(error) if error else 200,
            shown=shown,
            owner=machine.role is Role.OWNER,
            part=shown.facts.id,
            restarted="restarted" in request.query_params,
            error=error,
            at=at,
            lines=lines,
            live=f"/live/machines/{shown.facts.id}",
        )

    async def _view(self, author: Author, subject: str) -> tuple[FleetMachine, View]:
        """NOT_FOUND for a machine that is not there, or not the caller's."""

        def work(sql: Sql) -> tuple[FleetMachine, View]:
            some = [subject]
            try:
                require(sql, author, Role.OPERATOR, Of.PART, subject)
            except MachineError:
                require(sql, author, Role.OPERATOR, Of.ROBOT, subject)
                some = [one.id for one in parts(sql, subject)]
            found = fleet(sql, author, some)
            if not found:
                raise missing("machine", subject)
            chosen = subject if some == [subject] else some[0]
            return found[0], view(found[0], chosen, watching.told(sql, chosen), self._cloud.clock())

        return await self._cloud.store.read(work)

    async def _last_lines(self, author: Author, subject: str) -> list[Line]:
        """Read the last log lines of a part, the oldest of them first."""

        def work(sql: Sql) -> list[LogRecord]:
            require(sql, author, Role.OPERATOR, Of.PART, subject)
            return logs.query(sql, subject, LogQuery(limit=LAST_LINES))

        return [line(one) for one in reversed(await self._cloud.store.read(work))]

    # ---- buttons

    async def rename(self, request: Request) -> Response:
        """`POST /machines/<id>/rename`, field `name`: of the machine."""
        service, form = AppService(self._cloud, author_of(request)), await fields(request)
        name, subject = text_of(form, "name"), request.path_params["id"]
        if not name:
            empty = MachineError("a machine needs a name", kind=ErrorKind.INVALID)
            return await self._show(request, empty, "rename")
        try:
            await service.update_robot(subject, name)
        except MachineError as error:
            return await self._show(request, error, "rename")
        return see(f"/machines/{subject}")

    async def restart(self, request: Request) -> Response:
        """`POST /machines/<part>/restart`."""
        subject = request.path_params["id"]
        await AppService(self._cloud, author_of(request)).mark_part_for_restart(subject)
        return see(f"/machines/{subject}?" + urlencode({"restarted": "yes"}))

    async def setup(self, request: Request) -> Response:
        """`POST /machines/<part>/setup`: the credentials file of a part."""
        machine, shown = await self._view(author_of(request), request.path_params["id"])
        return await setup_page(self._cloud, request, machine.id, part=shown.facts.id)

    async def add_part(self, request: Request) -> Response:
        """`POST /machines/<id>/parts`, field `name`: one more computer of the machine."""
        service, form = AppService(self._cloud, author_of(request)), await fields(request)
        try:
            made = await service.new_robot_part(request.path_params["id"], text_of(form, "name"))
        except MachineError as error:
            return await self._show(request, error, "parts")
        return await setup_page(self._cloud, request, request.path_params["id"], part=made, new=True)

    async def delete(self, request: Request) -> Response:
        """`POST /machines/<id>/delete`, field `name`: only with the machine's name, typed by hand."""
        author, form, subject = author_of(request), await fields(request), request.path_params["id"]
        machine, _ = await self._view(author, subject)
        if text_of(form, "name") != machine.name:
            error = MachineError(
                "that is not the machine's name", kind=ErrorKind.INVALID, remedy=f"type {machine.name} to delete it"
            )
            return await self._show(request, error, "delete")
        await AppService(self._cloud, author).delete_robot(machine.id)
        return see("/")

    # ---- live

    async def live(self, socket: WebSocket) -> None:
        """`/live/machines/<part>`: while it is open, the machine is asked to tell how it is."""
        subject = socket.path_params["id"]

        async def look(page: LivePage) -> None:
            await self._view(page.author, subject)  # who may not see it does not make it talk
            while True:
                await self._cloud.store.write(lambda sql: watching.watch(sql, subject, self._cloud.clock()))
                await trio.sleep(watching.RENEWED.total_seconds())

        async def follow(page: LivePage) -> None:
            await self._follow(page, subject)

        await live(self._cloud, socket, look, follow)

    async def _follow(self, page: LivePage, subject: str) -> None:
        patcher = Patcher(lambda piece: part("machine_parts.html", piece.macro, *piece.arguments))
        topics = [(topic, subject) for topic in ("part", "seen", "presence", "live")]
        async with news_of(self._cloud, *topics) as news:
            sent: object = None
            while True:
                now = self._cloud.clock()
                machine, shown = await self._view(page.author, subject)
                if patch := patcher.patch(pieces(shown)):
                    await page.send(patch=patch)
                values = readings(shown.snapshot)
                if values != sent:
                    sent = values
                    await page.send(sensors=values)
                await trio.sleep(FRAME)
                await news.next(next_change([machine], now))
