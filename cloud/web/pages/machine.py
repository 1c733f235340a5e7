"""`/machines/<id>`: a machine, by its id or the id of one of its parts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlencode

import trio
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.websockets import WebSocket

from cloud.domain.fleet.fleet import FleetMachine
from cloud.domain.fleet.watching import RENEWED
from cloud.domain.machines.install_codes import TOPIC as CODE
from cloud.domain.machines.logs import LogQuery
from cloud.domain.permissions.access import ObjectKind, Role
from cloud.domain.permissions.rules import AccessRule, home_owner, operator, owner
from cloud.domain.releases.agent_report import version_problems
from cloud.domain.releases.reports import TOPIC as REPORT
from cloud.domain.releases.requests import TOPIC as REQUEST
from cloud.services.agents.agent_service import AgentService
from cloud.services.agents.installation import InstallationService
from cloud.services.app import AppService
from cloud.services.common.base import Cloud
from cloud.services.configurations.editing import Editor
from cloud.services.fleet.fleet_service import FleetCalls
from cloud.services.machines.fleet import FleetService
from cloud.values.author import Author
from cloud.web.common.live import FRAME, LivePage, live, news_of
from cloud.web.common.site import author_of, fields, redirect, render, render_macro, status_of, text_of
from cloud.web.views.agent_view import agent_view
from cloud.web.views.fleet.fleet_view import next_change
from cloud.web.views.log_view import ShownLine, line
from cloud.web.views.machine_view import PartView, pieces, readings, view
from cloud.web.views.setup import install_page, setup_page, stage_of
from rpc.pages import Patcher, Piece
from schema import ErrorKind, MachineError

LAST_LINES: Final = 10  # log lines on the page of an offline machine

_PAGE_OF_MACHINE: Final = re.compile(r"/machines/(?P<machine>[^/]+)/(?P<page>[a-z]+)")


_PART_OR_MACHINE: Final = operator(ObjectKind.PART, "id", ObjectKind.ROBOT)
_BY_ID: Final = operator(ObjectKind.PART, "id")

RULES: Final[Mapping[str, AccessRule]] = {
    "GET /machines/{id}": _PART_OR_MACHINE,
    "WS /live/machines/{id}": _PART_OR_MACHINE,
    "POST /machines/{id}/rename": owner(ObjectKind.ROBOT, "id", ObjectKind.PART),
    "POST /machines/{id}/tags": owner(ObjectKind.ROBOT, "id"),
    "POST /machines/{id}/restart": _BY_ID,
    "POST /machines/{id}/agent/update": _BY_ID,
    "POST /machines/{id}/agent/check": _BY_ID,
    "POST /machines/{id}/setup": home_owner(ObjectKind.PART, "id", ObjectKind.ROBOT),
    "GET /machines/{id}/install": _PART_OR_MACHINE,
    "WS /live/machines/{id}/install": _PART_OR_MACHINE,
    "POST /machines/{id}/install": home_owner(ObjectKind.PART, "id", ObjectKind.ROBOT),
    "POST /machines/{id}/delete": home_owner(ObjectKind.PART, "id", ObjectKind.ROBOT),
    "POST /machines/{id}/parts": home_owner(ObjectKind.ROBOT, "id", ObjectKind.PART),
}


def routes(cloud: Cloud) -> list[BaseRoute]:
    """Return the routes of the page, its buttons, and its live connection."""
    pages = MachinePages(cloud)
    return [
        Route("/machines/{id}", pages.show, methods=["GET"]),
        Route("/machines/{id}/rename", pages.rename, methods=["POST"]),
        Route("/machines/{id}/tags", pages.tag, methods=["POST"]),
        Route("/machines/{id}/restart", pages.restart, methods=["POST"]),
        Route("/machines/{id}/agent/update", pages.update_agent, methods=["POST"]),
        Route("/machines/{id}/agent/check", pages.check_agent, methods=["POST"]),
        Route("/machines/{id}/setup", pages.setup, methods=["POST"]),
        Route("/machines/{id}/install", pages.install, methods=["GET", "POST"]),
        WebSocketRoute("/live/machines/{id}/install", pages.live_install),
        Route("/machines/{id}/delete", pages.delete, methods=["POST"]),
        Route("/machines/{id}/parts", pages.add_part, methods=["POST"]),
        WebSocketRoute("/live/machines/{id}", pages.live),
    ]


async def pages_of_main_part(cloud: Cloud, request: Request, error: Exception) -> str | None:
    """Return the path of `/machines/<machine>/<page>` at the machine's main part; None for any other request.

    Pages are addressed by part. `error` is the error of the original request; only NOT_FOUND is redirected.
    """
    match = _PAGE_OF_MACHINE.fullmatch(request.url.path)
    if not isinstance(error, MachineError) or error.kind is not ErrorKind.NOT_FOUND or not match:
        return None
    if request.method != "GET":
        return None
    try:
        main = await FleetService(cloud, author_of(request)).main_part(match["machine"])
    except MachineError:
        return None
    query = f"?{request.url.query}" if request.url.query else ""
    return f"/machines/{main}/{match['page']}{query}"


class MachinePages:
    """Endpoints of the machine page."""

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
            tags=await FleetCalls(self._cloud, author).list_machine_tags(machine.id),
            owner=machine.role is Role.OWNER,
            part=shown.facts.id,
            restarted="restarted" in request.query_params,
            requested=request.query_params.get("requested", ""),
            error=error,
            at=at,
            lines=lines,
            live=f"/live/machines/{shown.facts.id}",
        )

    async def _view(self, author: Author, subject: str) -> tuple[FleetMachine, PartView]:
        """Return a machine and its view; NOT_FOUND if it is absent or not accessible to the caller."""

        result = await FleetService(self._cloud, author).machine(subject)
        now = self._cloud.clock()
        reported = next(part.reported for part in result.machine.parts if part.id == result.part)
        agent = agent_view(result.report, result.outcomes, now, result.requests, version_problems(reported))
        return result.machine, view(result.machine, result.part, result.snapshot, agent, now)

    async def _last_lines(self, author: Author, subject: str) -> list[ShownLine]:
        """Return the last log lines of a part, oldest first."""
        _, entries, _ = await FleetService(self._cloud, author).log(subject, LogQuery(limit=LAST_LINES))
        return [line(record) for record in reversed(entries)]

    # ---- buttons

    async def rename(self, request: Request) -> Response:
        """`POST /machines/<id>/rename`, with the machine's new name in field `name`."""
        service, form = AppService(self._cloud, author_of(request)), await fields(request)
        name, subject = text_of(form, "name"), request.path_params["id"]
        if not name:
            empty = MachineError("a machine needs a name", kind=ErrorKind.INVALID)
            return await self._show(request, empty, "rename")
        try:
            await service.update_robot(subject, name)
        except MachineError as error:
            return await self._show(request, error, "rename")
        return redirect(f"/machines/{subject}")

    async def tag(self, request: Request) -> Response:
        """`POST /machines/<id>/tags`: add the tags in field `add`, and remove the one in field `remove`."""
        calls, form = FleetCalls(self._cloud, author_of(request)), await fields(request)
        subject, removed = request.path_params["id"], text_of(form, "remove")
        try:
            if removed:
                await calls.remove_machine_tags(subject, [removed])
            else:
                tags = [tag for tag in (part.strip() for part in text_of(form, "add").split(",")) if tag]
                await calls.add_machine_tags(subject, tags)
        except MachineError as error:
            return await self._show(request, error, "tags")
        return redirect(f"/machines/{subject}#tags")

    async def restart(self, request: Request) -> Response:
        """`POST /machines/<part>/restart`."""
        subject = request.path_params["id"]
        await AppService(self._cloud, author_of(request)).mark_part_for_restart(subject)
        return redirect(f"/machines/{subject}?" + urlencode({"restarted": "yes"}))

    async def update_agent(self, request: Request) -> Response:
        """`POST /machines/<part>/agent/update`, with the program in field `program`: update it now."""
        form, subject = await fields(request), request.path_params["id"]
        service = AgentService(self._cloud, author_of(request))
        try:
            await service.mark_agent_for_update(subject, text_of(form, "program"))
        except MachineError as error:
            return await self._show(request, error, "agent")
        return redirect(f"/machines/{subject}?requested=update#requested")

    async def check_agent(self, request: Request) -> Response:
        """`POST /machines/<part>/agent/check`: ask for settings and versions now."""
        subject = request.path_params["id"]
        try:
            await AgentService(self._cloud, author_of(request)).mark_agent_for_check(subject)
        except MachineError as error:
            return await self._show(request, error, "agent")
        return redirect(f"/machines/{subject}?requested=check#requested")

    async def setup(self, request: Request) -> Response:
        """`POST /machines/<part>/setup`: show the credentials file of a part."""
        machine, shown = await self._view(author_of(request), request.path_params["id"])
        return await setup_page(self._cloud, request, machine.id, part=shown.facts.id)

    async def install(self, request: Request) -> Response:
        """`GET /machines/<part>/install`: how far the installation is; `POST`: a new line that installs the part."""
        machine, shown = await self._view(author_of(request), request.path_params["id"])
        facts = shown.facts
        return await install_page(self._cloud, request, machine.id, machine.name, facts.id, facts.connected)

    async def add_part(self, request: Request) -> Response:
        """`POST /machines/<id>/parts`, with field `name`: add a computer to the machine."""
        service, form = AppService(self._cloud, author_of(request)), await fields(request)
        try:
            part_id = await service.new_robot_part(request.path_params["id"], text_of(form, "name"))
        except MachineError as error:
            return await self._show(request, error, "parts")
        return await setup_page(self._cloud, request, request.path_params["id"], part=part_id, new=True)

    async def delete(self, request: Request) -> Response:
        """`POST /machines/<id>/delete`; field `name` must repeat the machine's name."""
        author, form, subject = author_of(request), await fields(request), request.path_params["id"]
        machine, _ = await self._view(author, subject)
        if text_of(form, "name") != machine.name:
            error = MachineError(
                "that is not the machine's name", kind=ErrorKind.INVALID, remedy=f"type {machine.name} to delete it"
            )
            return await self._show(request, error, "delete")
        await AppService(self._cloud, author).delete_robot(machine.id)
        return redirect("/")

    # ---- live

    async def live(self, socket: WebSocket) -> None:
        """`/live/machines/<part>`: send changes, and have the machine report its live state while this is open."""
        subject = socket.path_params["id"]

        async def keep_watched(page: LivePage) -> None:
            await self._view(page.author, subject)  # without access, the machine must not be asked for reports
            while True:
                await Editor(self._cloud, page.author).watch(subject)
                await trio.sleep(RENEWED.total_seconds())

        async def follow(page: LivePage) -> None:
            await self._follow(page, subject)

        await live(self._cloud, socket, keep_watched, follow)

    async def live_install(self, socket: WebSocket) -> None:
        """`/live/machines/<part>/install`: send how far the installation is."""
        subject = socket.path_params["id"]

        async def follow(page: LivePage) -> None:
            patcher = Patcher(lambda piece: render_macro("install_parts.html", piece.macro, *piece.arguments))
            topics = [(topic, subject) for topic in ("part", "seen", "presence", CODE)]
            async with news_of(self._cloud, *topics) as news:
                while True:
                    machine, shown = await self._view(page.author, subject)
                    info = await InstallationService(self._cloud, page.author).get_install_state(subject)
                    stage = stage_of(info, connected=shown.facts.connected)
                    if patch := patcher.patch([Piece("stage", "progress", (subject, machine.name, stage), stage)]):
                        await page.send(patch=patch)
                    await trio.sleep(FRAME)
                    await news.next(next_change([machine], self._cloud.clock()))

        await live(self._cloud, socket, follow)

    async def _follow(self, page: LivePage, subject: str) -> None:
        patcher = Patcher(lambda piece: render_macro("machine_parts.html", piece.macro, *piece.arguments))
        topics = [(topic, subject) for topic in ("part", "seen", "presence", "live", REPORT, REQUEST)]
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
