"""`/`: overview of all machines, and the form for a new one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final
from urllib.parse import urlencode

import trio
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.websockets import WebSocket

from cloud.domain.fleet.fleet import FleetMachine
from cloud.domain.fleet.health import STATES
from cloud.domain.fleet.positions import position_text, read_position
from cloud.domain.machines.listed import TOPIC
from cloud.domain.machines.reported import fragment_revision
from cloud.domain.permissions.access import Role
from cloud.domain.permissions.rules import OF_FORM, ROLE_ANYWHERE, AccessRule
from cloud.services.app import AppService
from cloud.services.common.base import Cloud
from cloud.services.fleet.fleet_service import FleetCalls
from cloud.services.machines.fleet import FleetPage, FleetService
from cloud.store.events import EVERY
from cloud.web.common.live import FRAME, LivePage, live, news_of
from cloud.web.common.site import author_of, fields, render, render_macro, status_of, text_of
from cloud.web.views.fleet.fleet_query import COLUMNS, FleetQuery
from cloud.web.views.fleet.fleet_view import PAGE, UPDATE_WORDS, FleetRow, Pager, choices, next_change, row, tiles
from cloud.web.views.setup import install_page
from rpc.pages import Patcher, Piece
from schema import MachineError

SLOW_FRAME: Final = 1.0
"""Least seconds between two updates of a list of more than a page: in a large fleet, something changes all the time."""


RULES: Final[Mapping[str, AccessRule]] = {
    "GET /": ROLE_ANYWHERE,
    "WS /live/machines": ROLE_ANYWHERE,
    "POST /machines": OF_FORM,
}


def routes(cloud: Cloud) -> list[BaseRoute]:
    """Return the routes of the overview, its live connection, and the form for a new machine."""
    pages = MachineListPages(cloud)
    return [
        Route("/", pages.index, methods=["GET"]),
        Route("/machines", pages.create, methods=["POST"]),
        WebSocketRoute("/live/machines", pages.live),
    ]


class MachineListPages:
    """Endpoints of the overview."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    async def index(self, request: Request) -> Response:
        """`GET /?q=&location=&state=&sort=`."""
        return await self._index(request)

    async def _index(self, request: Request, error: MachineError | None = None, name: str = "") -> Response:
        columns = ",".join(request.query_params.getlist("columns"))  # the form without a script sends each singly
        query = FleetQuery.of({**request.query_params, "columns": columns})
        listed = await _page(FleetService(self._cloud, author_of(request)), query)
        owned = [(place.id, place.path) for place in listed.places if place.role is Role.OWNER]
        places = [place for place in listed.places if place.role >= Role.OPERATOR or place.id in listed.used_places]
        return render(
            request,
            "machines.html",
            status_of(error) if error else 200,
            rows=[_row(listed, machine, self._cloud) for machine in listed.machines],
            pager=_pager(listed, query),
            tiles=tiles(listed.counts, query),
            query=query,
            columns=COLUMNS,
            current=urlencode(query.conditions() | query.view()),
            views=await FleetCalls(self._cloud, author_of(request)).list_fleet_views(),
            states=STATES,
            agents=choices(listed.agents, query.agent),
            servers=choices(listed.servers, query.server),
            all_tags=choices(listed.all_tags, ",".join(query.tags)),
            updates=list(UPDATE_WORDS.items()),
            places=[(place.id, place.path) for place in places],
            owned=owned,
            organizations=sorted({place.organization for place in listed.places}),
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
        """Send changed rows. Reports of machines on the page are read singly, everything else with the page."""
        service, clock = FleetService(self._cloud, page.author), self._cloud.clock
        patcher = Patcher(lambda piece: render_macro("machines_parts.html", piece.macro, *piece.arguments))
        async with news_of(self._cloud, *((topic, EVERY) for topic in ("part", "seen", TOPIC))) as news:
            listed = await _page(service, query, live=True)
            while True:
                now = clock()
                rows = [_row(listed, machine, self._cloud) for machine in listed.machines]
                if patch := patcher.patch(_pieces(rows, listed, query)):
                    await page.send(patch=patch)
                due = next_change(listed.machines, now)  # from the rendered time: misses no change during the pause
                await trio.sleep(SLOW_FRAME if listed.counts.total > PAGE else FRAME)
                own_parts = {member.id for machine in listed.machines for member in machine.parts}
                concern: list[tuple[str, str]] = []
                while not concern:
                    heard = await news.next(due)
                    concern = [event for event in heard if event[0] == TOPIC or event[1] in (EVERY, *own_parts)]
                    if not heard:
                        break  # a machine has become silent
                if any(topic != "seen" or subject == EVERY for topic, subject in concern):
                    listed = await _page(service, query, live=True)
                elif concern:
                    listed = _updated(listed, await service.machines([subject for _, subject in concern]))


async def _page(service: FleetService, query: FleetQuery, *, live: bool = False) -> FleetPage:
    after, before = read_position(query.after), read_position(query.before)
    return await service.page(query.filter(), query.sort, PAGE, after=after, before=before, choices=not live)


def _updated(listed: FleetPage, changed: list[FleetMachine]) -> FleetPage:
    by_id = {machine.id: machine for machine in changed}
    return replace(listed, machines=[by_id.get(machine.id, machine) for machine in listed.machines])


def _row(listed: FleetPage, machine: FleetMachine, cloud: Cloud) -> FleetRow:
    names = dict.fromkeys(
        f"{name} {fragment_revision(part.reported, fragment)}".strip()
        for part in machine.parts
        for fragment, name in listed.fragments.get(part.id, ())
    )
    return row(machine, cloud.clock(), listed.tags.get(machine.id, ()), tuple(names))


def _pager(listed: FleetPage, query: FleetQuery) -> Pager:
    before = query.url(before=position_text(listed.before)) if listed.before is not None else ""
    after = query.url(after=position_text(listed.after)) if listed.after is not None else ""
    return Pager(len(listed.machines), listed.matching, listed.counts.total, before, after)


def _pieces(rows: list[FleetRow], listed: FleetPage, query: FleetQuery) -> list[Piece]:
    head, pager = tiles(listed.counts, query), _pager(listed, query)
    return [
        Piece("counts", "counts", (head,), head),
        Piece("machines", "table", (rows, query), tuple(shown_row.id for shown_row in rows)),
        Piece("pager", "paging", (pager,), pager),
        *(Piece(shown_row.dom, "row", (shown_row, query), shown_row, inside="machines") for shown_row in rows),
    ]
