"""`/fleet`: work on many machines: choosing it, its preview, jobs with their outcomes; and saved views."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode

import trio
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.websockets import WebSocket

from cloud.domain.fleet import jobs
from cloud.domain.fleet.work import PROGRAMS, WorkKind
from cloud.domain.permissions.access import Role
from cloud.domain.permissions.rules import OWN_JOBS, ROLE_ANYWHERE, AccessRule, signed_in
from cloud.services.app import AppService
from cloud.services.common.base import Cloud
from cloud.services.fleet import fleet_messages as m
from cloud.services.fleet.fleet_service import FleetCalls
from cloud.services.machines.fleet import FleetService
from cloud.values.author import Author
from cloud.web.common.live import LivePage, live, news_of
from cloud.web.common.site import author_of, fields, redirect, render, render_macro, status_of, text_of
from cloud.web.views.fleet.fleet_query import FleetQuery
from rpc.pages import Patcher, Piece
from schema import ErrorKind, MachineError

PAUSE: Final = 0.5  # seconds between two updates of the page of a job
PAGE: Final = 100  # machines on the page of a job
KINDS: Final = {
    WorkKind.SET_VALUE: "Set a value in the configuration",
    WorkKind.REMOVE_VALUE: "Remove a value from the configuration",
    WorkKind.ADD_FRAGMENT: "Apply a fragment",
    WorkKind.REMOVE_FRAGMENT: "Remove a fragment",
    WorkKind.PIN_VERSION: "Pin the version of a program",
    WorkKind.ADD_TAGS: "Add tags",
    WorkKind.REMOVE_TAGS: "Remove tags",
    WorkKind.MOVE: "Move to another location",
    WorkKind.RESTART: "Restart machine-server",
}
_ARGUMENTS: Final = ("kind", "fragment", "fragment_version", "path", "value", "program", "version", "tags", "place")


RULES: Final[Mapping[str, AccessRule]] = {
    "GET /fleet": OWN_JOBS,
    "POST /fleet/new": ROLE_ANYWHERE,
    "POST /fleet/preview": signed_in("machines that the caller owns in its own organization"),
    "POST /fleet/start": signed_in("machines that the caller owns in its own organization"),
    "GET /fleet/{id}": OWN_JOBS,
    "POST /fleet/{id}/{action}": OWN_JOBS,
    "WS /live/fleet/{id}": OWN_JOBS,
    "POST /fleet/views": signed_in("the caller's own views; shared ones: owners of the organization"),
    "POST /fleet/views/{id}/delete": signed_in("the caller's own views; shared ones: owners of the organization"),
}


def routes(cloud: Cloud) -> list[BaseRoute]:
    """Return the routes of jobs and of saved views."""
    pages = FleetPages(cloud)
    return [
        Route("/fleet", pages.index, methods=["GET"]),
        Route("/fleet/new", pages.choose, methods=["POST"]),
        Route("/fleet/preview", pages.preview, methods=["POST"]),
        Route("/fleet/start", pages.start, methods=["POST"]),
        Route("/fleet/views", pages.save_view, methods=["POST"]),
        Route("/fleet/views/{id}/delete", pages.delete_view, methods=["POST"]),
        Route("/fleet/{id}", pages.job, methods=["GET"]),
        Route("/fleet/{id}/{action}", pages.act, methods=["POST"]),
        WebSocketRoute("/live/fleet/{id}", pages.live),
    ]


@dataclass(frozen=True, slots=True)
class Selection:
    """The machines of a form: some with ids, or all that match the query of a list."""

    ids: tuple[str, ...]
    every: bool
    query: str

    @classmethod
    def of(cls, form: FormData) -> Selection:
        """Read a form: ids in fields `machine`, unless the field `all` is set; the query in `query`."""
        every = bool(text_of(form, "all"))
        ids = () if every else tuple(str(each) for each in form.getlist("machine"))
        if not ids and not every:
            raise MachineError(
                "no machine is selected", kind=ErrorKind.INVALID, remedy="go back, and tick machines in the list"
            )
        return cls(ids, every, text_of(form, "query"))

    def arguments(self) -> dict[str, Any]:
        """Return the selection as arguments of calls."""
        if self.ids:
            return {"machine_ids": self.ids}
        query = FleetQuery.of(dict(parse_qsl(self.query)))
        if not query.conditions():
            return {"every": True}
        chosen = m.FleetFilter(
            query.text,
            query.location,
            query.state,
            query.agent,
            query.server,
            query.update,
            query.problems,
            list(query.tags),
            query.fragment,
        )
        return {"filter": chosen}


class FleetPages:
    """Endpoints of jobs and saved views."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def _calls(self, request: Request) -> FleetCalls:
        return FleetCalls(self._cloud, author_of(request))

    # ---- choosing work

    async def choose(self, request: Request) -> Response:
        """`POST /fleet/new`: choose work for machines, in the fields `machine`, or with `all` those of `query`."""
        form = await fields(request)
        return await self._choose(request, form, Selection.of(form))

    async def preview(self, request: Request) -> Response:
        """`POST /fleet/preview`: show what the work would change."""
        form = await fields(request)
        selection = Selection.of(form)
        try:
            shown = await self._calls(request).preview_fleet_job(**selection.arguments(), work=_work(form))
        except MachineError as error:
            return await self._choose(request, form, selection, error)
        return await self._choose(request, form, selection, shown=shown)

    async def start(self, request: Request) -> Response:
        """`POST /fleet/start`: start the work; `expected` is the number of machines of the preview."""
        form = await fields(request)
        selection, expected = Selection.of(form), text_of(form, "expected")
        number = int(expected) if expected.isascii() and expected.isdigit() and len(expected) < 9 else None
        calls = self._calls(request)
        try:
            job = await calls.start_fleet_job(**selection.arguments(), work=_work(form), expected=number)
        except MachineError as error:
            return await self._choose(request, form, selection, error)
        return redirect(f"/fleet/{job}")

    async def _choose(
        self,
        request: Request,
        form: FormData,
        selection: Selection,
        error: MachineError | None = None,
        shown: m.PreviewFleetJobResponse | None = None,
    ) -> Response:
        author = author_of(request)
        places = [place for place in await FleetService(self._cloud, author).locations() if place.role is Role.OWNER]
        return render(
            request,
            "fleet_new.html",
            status_of(error) if error else 200,
            selection=selection,
            kinds=[(kind.value, text) for kind, text in KINDS.items()],
            programs=[(program, program) for program in PROGRAMS],
            places=[(place.id, place.path) for place in places],
            fragments=await self._fragments(author),
            values={name: text_of(form, name) for name in _ARGUMENTS},
            paths=await self._calls(request).suggested_paths(**selection.arguments()),
            shown=shown,
            error=error,
        )

    async def _fragments(self, author: Author) -> list[tuple[str, str]]:
        service, listed = AppService(self._cloud, author), list[tuple[str, str]]()
        for organization in await service.list_organizations():
            try:
                listed += [(each.id, each.name) for each in (await service.list_fragments(organization.id)).fragments]
            except MachineError as error:
                if error.kind not in (ErrorKind.NOT_FOUND, ErrorKind.PERMISSION):
                    raise
        return listed

    # ---- jobs

    async def index(self, request: Request) -> Response:
        """`GET /fleet`: jobs, newest first."""
        return render(request, "fleet.html", jobs=await self._calls(request).list_fleet_jobs())

    async def job(self, request: Request) -> Response:
        """`GET /fleet/<id>?state=&after=`."""
        return await self._job(request)

    async def _job(self, request: Request, error: MachineError | None = None) -> Response:
        query, subject = _JobQuery.of(request.query_params), request.path_params["id"]
        reply = await self._calls(request).get_fleet_job(subject, query.state, query.after, PAGE + 1)
        return render(
            request,
            "fleet_job.html",
            status_of(error) if error else 200,
            job=reply.job,
            machines=reply.machines[:PAGE],
            query=query,
            more=query.url(subject, reply.machines[PAGE - 1].position) if len(reply.machines) > PAGE else "",
            error=error,
            live=f"/live/fleet/{subject}?{urlencode({'state': query.state, 'after': query.after})}",
        )

    async def act(self, request: Request) -> Response:
        """`POST /fleet/<id>/stop|undo`."""
        subject, action = request.path_params["id"], request.path_params["action"]
        calls = self._calls(request)
        try:
            if action == "stop":
                await calls.stop_fleet_job(subject)
            elif action == "undo":
                return redirect(f"/fleet/{await calls.revert_fleet_job(subject)}")
            else:
                raise MachineError(f"there is no action {action[:40]!r} for jobs", kind=ErrorKind.NOT_FOUND)
        except MachineError as error:
            if error.kind not in (ErrorKind.PRECONDITION, ErrorKind.EXHAUSTED):
                raise
            return await self._job(request, error)
        return redirect(f"/fleet/{subject}")

    async def live(self, socket: WebSocket) -> None:
        """`/live/fleet/<id>?state=&after=`: send progress and outcomes as they change."""
        query = _JobQuery.of(socket.query_params)
        await live(self._cloud, socket, partial(self._follow, socket.path_params["id"], query))

    async def _follow(self, subject: str, query: _JobQuery, page: LivePage) -> None:
        patcher = Patcher(lambda piece: render_macro("fleet_parts.html", piece.macro, *piece.arguments))
        calls = FleetCalls(self._cloud, page.author)
        async with news_of(self._cloud, (jobs.TOPIC, subject)) as news:
            while True:
                reply = await calls.get_fleet_job(subject, query.state, query.after, PAGE)
                pieces = [
                    Piece("job-state", "job_state", (reply.job, query.state), reply.job),
                    Piece("job-machines", "machine_list", (reply.machines, reply.job), tuple(reply.machines)),
                ]
                if patch := patcher.patch(pieces):
                    await page.send(patch=patch)
                await trio.sleep(PAUSE)
                await news.next()

    # ---- saved views

    async def save_view(self, request: Request) -> Response:
        """`POST /fleet/views`: save the list's `query` with a `name`, for everyone if `shared`."""
        form = await fields(request)
        query = FleetQuery.of(dict(parse_qsl(text_of(form, "query"))))
        text = urlencode(query.conditions() | query.view())
        await self._calls(request).set_fleet_view(text_of(form, "name"), text, bool(text_of(form, "shared")))
        return redirect(f"/?{text}")

    async def delete_view(self, request: Request) -> Response:
        """`POST /fleet/views/<id>/delete`."""
        await self._calls(request).delete_fleet_view(request.path_params["id"])
        return redirect("/")


@dataclass(frozen=True, slots=True)
class _JobQuery:
    state: str
    after: int

    @classmethod
    def of(cls, query: Mapping[str, str]) -> _JobQuery:
        after, state = query.get("after", ""), query.get("state", "")
        number = int(after) if after.isascii() and after.isdigit() and len(after) < 9 else 0
        return cls(state if state in (*jobs.OUTCOMES, jobs.WAITING) else "", number)

    def url(self, subject: str, after: int) -> str:
        fields_ = {"state": self.state, "after": str(after)}
        return f"/fleet/{subject}?{urlencode({key: value for key, value in fields_.items() if value})}"


def _work(form: FormData) -> m.FleetWork:
    return m.FleetWork(
        kind=text_of(form, "kind"),
        fragment_id=text_of(form, "fragment"),
        fragment_version=text_of(form, "fragment_version"),
        path=text_of(form, "path"),
        value_json=text_of(form, "value"),
        program=text_of(form, "program"),
        version=text_of(form, "version"),
        tags=[tag for tag in (part.strip() for part in text_of(form, "tags").split(",")) if tag],
        location_id=text_of(form, "place"),
    )
