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
from cloud.domain.fleet.health import STATES
from cloud.domain.permissions.access import Role
from cloud.services.app import AppService
from cloud.services.common.base import Cloud
from cloud.services.machines.fleet import FleetService
from cloud.store.events import EVERY
from cloud.web.common.live import FRAME, LivePage, live, news_of
from cloud.web.common.site import author_of, fields, render, render_macro, status_of, text_of
from cloud.web.views.fleet_view import (
    UPDATE_WORDS,
    FleetQuery,
    FleetRow,
    counts,
    matching,
    next_change,
    paged,
    row,
    versions,
)
from cloud.web.views.setup import install_page
from rpc.pages import Patcher, Piece
from schema import MachineError


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
        machines, places = await FleetService(self._cloud, author_of(request)).overview()
        query = FleetQuery.of(request.query_params)
        rows = [row(machine, self._cloud.clock()) for machine in machines]
        used_locations = {item.location_id for item in rows}
        agents, servers = versions(rows, query)
        page_rows, pager = paged(matching(rows, query), query, len(rows))
        return render(
            request,
            "machines.html",
            status_of(error) if error else 200,
            rows=page_rows,
            pager=pager,
            counts=counts(rows),
            query=query,
            states=STATES,
            agents=[(version, version) for version in agents],
            servers=[(version, version) for version in servers],
            updates=list(UPDATE_WORDS.items()),
            places=[
                (place.id, place.path) for place in places if place.role >= Role.OPERATOR or place.id in used_locations
            ],
            owned=[(place.id, place.path) for place in places if place.role is Role.OWNER],
            organizations=sorted({place.organization for place in places}),
            error=error,
            name=name,
            live="/live/machines?" + urlencode(query.fields()),
        )

    async def create(self, request: Request) -> Response:
        """`POST /machines`: create a machine and show how to install its computer."""
        form = await fields(request)
        name = text_of(form, "name")
        service = AppService(self._cloud, author_of(request))
        try:
            machine_id = await service.new_robot(name, text_of(form, "location"))
        except MachineError as error:
            return await self._index(request, error, name)
        part = await FleetService(self._cloud, author_of(request)).main_part(machine_id)
        return await install_page(self._cloud, request, machine_id, name, part, connected=False, new=True)

    # ---- live

    async def live(self, socket: WebSocket) -> None:
        """`/live/machines?q=&location=&state=&sort=`: send rows as they change."""
        query = FleetQuery.of(socket.query_params)

        async def stream(page: LivePage) -> None:
            await self._follow(page, query)

        await live(self._cloud, socket, stream)

    async def _follow(self, page: LivePage, query: FleetQuery) -> None:
        """Send changed rows. Only machines with news are read again; all if one is new, renamed, moved or deleted."""
        service, clock = FleetService(self._cloud, page.author), self._cloud.clock
        patcher = Patcher(lambda piece: render_macro("machines_parts.html", piece.macro, *piece.arguments))
        async with news_of(self._cloud, *((topic, EVERY) for topic in ("part", "seen", "presence"))) as news:
            machines = await _all_machines(service)
            while True:
                now = clock()
                rows = [row(machine, now) for machine in machines.values()]
                if patch := patcher.patch(_pieces(rows, query)):
                    await page.send(patch=patch)
                due = next_change(machines.values(), now)  # from the rendered time: misses no change during the pause
                await trio.sleep(FRAME)
                events = await news.next(due)
                own_parts = {member.id for machine in machines.values() for member in machine.parts}
                subjects = [subject for topic, subject in events if topic == "part" or subject in own_parts]
                if any(subject == EVERY for _, subject in events):
                    machines = await _all_machines(service)
                elif subjects:
                    changed = await service.machines(subjects)
                    changed_by_id = {machine.id: machine for machine in changed}
                    changed_parts = {member.id for machine in changed for member in machine.parts}
                    complete = set(changed_by_id) <= set(machines) and own_parts.intersection(subjects) <= changed_parts
                    if complete and _same_names(machines, changed_by_id):
                        machines.update(changed_by_id)
                    else:
                        machines = await _all_machines(service)


async def _all_machines(service: FleetService) -> dict[str, FleetMachine]:
    machines = await service.machines()
    return {machine.id: machine for machine in machines}


def _same_names(machines: dict[str, FleetMachine], changed: dict[str, FleetMachine]) -> bool:
    """Return whether names and locations are unchanged."""
    pairs = ((machines[id_], machine) for id_, machine in changed.items())
    return all((old.name, old.location) == (new.name, new.location) for old, new in pairs)


def _pieces(rows: Iterable[FleetRow], query: FleetQuery) -> list[Piece]:
    all_rows = list(rows)
    page_rows, pager = paged(matching(all_rows, query), query, len(all_rows))
    head = counts(all_rows)
    return [
        Piece("counts", "counts", (head, query.state), head),
        Piece("machines", "table", (page_rows, query), tuple(shown_row.id for shown_row in page_rows)),
        Piece("pager", "paging", (pager,), pager),
        *(Piece(shown_row.dom, "row", (shown_row,), shown_row, inside="machines") for shown_row in page_rows),
    ]
