"""`/`: overview of all machines, and the form for a new one."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlencode

import trio
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.websockets import WebSocket

from cloud.domain.fleet.fleet import FleetMachine
from cloud.domain.permissions.access import Role
from cloud.services.app import AppService
from cloud.services.common.base import Cloud
from cloud.services.machines.fleet import FleetService
from cloud.store.events import EVERY
from cloud.web.common.live import FRAME, LivePage, live, news_of
from cloud.web.common.site import author_of, fields, part, render, status_of, text_of
from cloud.web.views.fleet_view import STATES, Row, Wanted, chosen, counts, next_change, paged, row
from cloud.web.views.setup import setup_page
from rpc.pages.patches import Patcher, Piece
from schema.errors import MachineError


def routes(cloud: Cloud) -> list[BaseRoute]:
    """Return the routes of the overview, its live connection, and the form for a new machine."""
    pages = Machines(cloud)
    return [
        Route("/", pages.index, methods=["GET"]),
        Route("/machines", pages.create, methods=["POST"]),
        WebSocketRoute("/live/machines", pages.live),
    ]


class Machines:
    """Endpoints of the overview."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    async def index(self, request: Request) -> Response:
        """`GET /?q=&location=&state=&sort=`."""
        return await self._index(request)

    async def _index(self, request: Request, error: MachineError | None = None, name: str = "") -> Response:
        found, places = await FleetService(self._cloud, author_of(request)).overview()
        wanted = Wanted.of(request.query_params)
        rows = [row(one, self._cloud.clock()) for one in found]
        seen = {one.location_id for one in rows}
        shown, pager = paged(chosen(rows, wanted), wanted, len(rows))
        return render(
            request,
            "machines.html",
            status_of(error) if error else 200,
            rows=shown,
            pager=pager,
            counts=counts(rows),
            wanted=wanted,
            states=STATES,
            places=[(one.id, one.path) for one in places if one.role >= Role.OPERATOR or one.id in seen],
            owned=[(one.id, one.path) for one in places if one.role is Role.OWNER],
            organizations=sorted({one.organization for one in places}),
            error=error,
            name=name,
            live="/live/machines?" + urlencode(wanted.query()),
        )

    async def create(self, request: Request) -> Response:
        """`POST /machines`: create a machine and show how to connect its machine-server."""
        form = await fields(request)
        name = text_of(form, "name")
        service = AppService(self._cloud, author_of(request))
        try:
            made = await service.new_robot(name, text_of(form, "location"))
        except MachineError as error:
            return await self._index(request, error, name)
        return await setup_page(self._cloud, request, made, new=True)

    # ---- live

    async def live(self, socket: WebSocket) -> None:
        """`/live/machines?q=&location=&state=&sort=`: send rows as they change."""
        wanted = Wanted.of(socket.query_params)

        async def stream(page: LivePage) -> None:
            await self._follow(page, wanted)

        await live(self._cloud, socket, stream)

    async def _follow(self, page: LivePage, wanted: Wanted) -> None:
        """Send changed rows. Only machines with news are read again; all if one is new, renamed, moved or deleted."""
        service, clock = FleetService(self._cloud, page.author), self._cloud.clock
        patcher = Patcher(lambda piece: part("machines_parts.html", piece.macro, *piece.arguments))
        async with news_of(self._cloud, *((topic, EVERY) for topic in ("part", "seen", "presence"))) as news:
            known = await _whole(service)
            while True:
                now = clock()
                rows = [row(one, now) for one in known.values()]
                if patch := patcher.patch(_pieces(rows, wanted)):
                    await page.send(patch=patch)
                due = next_change(known.values(), now)  # from the rendered time: misses no change during the pause
                await trio.sleep(FRAME)
                heard = await news.next(due)
                mine = {one.id for machine in known.values() for one in machine.parts}
                subjects = [subject for topic, subject in heard if topic == "part" or subject in mine]
                if any(subject == EVERY for _, subject in heard):
                    known = await _whole(service)
                elif subjects:
                    again = await service.machines(subjects)
                    new = {one.id: one for one in again}
                    told = {one.id for machine in again for one in machine.parts}
                    if set(new) <= set(known) and mine.intersection(subjects) <= told and _same(known, new):
                        known.update(new)
                    else:
                        known = await _whole(service)


async def _whole(service: FleetService) -> dict[str, FleetMachine]:
    found = await service.machines()
    return {one.id: one for one in found}


def _same(known: dict[str, FleetMachine], new: dict[str, FleetMachine]) -> bool:
    """Return whether names and locations are unchanged."""
    return all((one.name, one.location) == (known[one.id].name, known[one.id].location) for one in new.values())


def _pieces(rows: Iterable[Row], wanted: Wanted) -> list[Piece]:
    every = list(rows)
    shown, pager = paged(chosen(every, wanted), wanted, len(every))
    head = counts(every)
    return [
        Piece("counts", "counts", (head,), head),
        Piece("machines", "table", (shown, wanted), tuple(one.id for one in shown)),
        Piece("pager", "paging", (pager,), pager),
        *(Piece(one.dom, "row", (one,), one, inside="machines") for one in shown),
    ]
