"""One machine: `/machines/<id>`, where the id is that of the machine or of one of its parts."""

from __future__ import annotations

from urllib.parse import urlencode

import trio
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.websockets import WebSocket

from cloud import watching
from cloud.access import Of, Role, require
from cloud.author import Author
from cloud.fleet import FleetMachine, fleet
from cloud.machines import parts
from cloud.services.app import AppService
from cloud.services.base import Cloud
from cloud.store.sql import Sql
from cloud.tenants import missing
from cloud.web.fleet_view import next_change
from cloud.web.live import FRAME, LivePage, live, news_of
from cloud.web.machine_view import View, pieces, readings, view
from cloud.web.setup import setup_page
from cloud.web.site import author_of, fields, part, render, see, status_of, text_of
from rpc.pages.patches import Patcher
from schema.errors import ErrorKind, MachineError


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
        topics = [(topic, subject) for topic in ("part", "seen", "live")]
        async with news_of(self._cloud, *topics) as news:
            sent: object = None
            while True:
                now = self._cloud.clock()
                machine, shown = await self._view(page.author, subject)
                if patch := patcher.patch(pieces(shown)):
                    await page.send(patch=patch)
                values = readings(shown.snapshot)
                if values != sent and shown.facts.css == "online":
                    sent = values
                    await page.send(sensors=values)
                await trio.sleep(FRAME)
                await news.next(next_change([machine], now))
