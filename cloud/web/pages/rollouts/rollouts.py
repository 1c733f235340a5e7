"""`/rollouts`: open rollouts with their buttons, ended ones, and one rollout with its machines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final
from urllib.parse import urlencode

import trio
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.websockets import WebSocket

from cloud.domain.permissions.access import ObjectKind
from cloud.domain.permissions.rules import ROLE_ANYWHERE, AccessRule, operator, owner
from cloud.domain.rollouts.life import ENDED, MachineState
from cloud.domain.rollouts.records import TOPIC
from cloud.services.common.base import Cloud
from cloud.services.configurations.editing import Editor
from cloud.services.releases.releases import ReleaseService
from cloud.services.rollouts.rollout_messages import StagedRollout
from cloud.services.rollouts.rollouts import RolloutService
from cloud.values.author import Author
from cloud.web.common.live import LivePage, live, news_of
from cloud.web.common.site import author_of, fields, redirect, render, render_macro, status_of, text_of
from rpc.pages import Patcher, Piece
from schema import ErrorKind, MachineError

PAUSE: Final = 0.5  # seconds between two updates of a page
PAGE: Final = 100  # machines on the page of a rollout
OPEN_BY_SHARE: Final = ("active", "paused", "stopped")
"""States of rollouts of versions by share that have not ended."""
HISTORY: Final = 50  # ended rollouts of an organization on the page


@dataclass(frozen=True, slots=True)
class OrganizationRollouts:
    """The rollouts of one organization."""

    id: str
    name: str
    owner: bool
    open: Sequence[StagedRollout]
    ended: Sequence[StagedRollout]
    by_share: int  # open rollouts of versions by share, which commands start


RULES: Final[Mapping[str, AccessRule]] = {
    "GET /rollouts": ROLE_ANYWHERE,
    "WS /live/rollouts": ROLE_ANYWHERE,
    "GET /rollouts/{organization}/{id}": operator(ObjectKind.ORGANIZATION, "organization"),
    "POST /rollouts/{organization}/{id}": owner(ObjectKind.ORGANIZATION, "organization"),
    "WS /live/rollouts/{organization}/{id}": operator(ObjectKind.ORGANIZATION, "organization"),
}


def routes(cloud: Cloud) -> list[BaseRoute]:
    """Return the routes of the list and of one rollout."""
    pages = _Pages(cloud)
    path = "/rollouts/{organization}/{id}"
    return [
        Route("/rollouts", pages.index, methods=["GET"]),
        Route(path, pages.show, methods=["GET"]),
        Route(path, pages.act, methods=["POST"]),
        WebSocketRoute("/live/rollouts", pages.live_list),
        WebSocketRoute(f"/live{path}", pages.live_one),
    ]


class _Pages:
    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    async def _groups(self, author: Author, *, live: bool = False) -> list[OrganizationRollouts]:
        """Return the rollouts of all organizations of a key; with `live`, without the number of those by share."""
        service, groups = RolloutService(self._cloud, author), []
        for organization, may_change in await Editor(self._cloud, author).organizations():
            listed = await service.list_staged_rollouts(organization.id)
            by_share = 0 if live else await self._by_share(author, organization.id)
            groups.append(
                OrganizationRollouts(
                    organization.id,
                    organization.name,
                    may_change,
                    [entry for entry in listed if entry.state not in ENDED],
                    [entry for entry in listed if entry.state in ENDED][:HISTORY],
                    by_share,
                )
            )
        return groups

    async def _by_share(self, author: Author, organization: str) -> int:
        releases = await ReleaseService(self._cloud, author).list_releases(organization)
        return sum(info.state in OPEN_BY_SHARE and not info.staged for info in releases.rollouts)

    async def index(self, request: Request) -> Response:
        """`GET /rollouts`."""
        groups = await self._groups(author_of(request))
        return render(request, "rollouts.html", groups=groups, live="/live/rollouts")

    async def live_list(self, socket: WebSocket) -> None:
        """`/live/rollouts`: send the cards of open rollouts as they change."""
        await live(self._cloud, socket, self._follow_list)

    async def _follow_list(self, page: LivePage) -> None:
        patcher = Patcher(lambda piece: render_macro("rollouts_parts.html", piece.macro, *piece.arguments))
        organizations = [organization.id for organization, _ in await Editor(self._cloud, page.author).organizations()]
        async with news_of(self._cloud, *((TOPIC, subject) for subject in organizations)) as news:
            while True:
                pieces: list[Piece] = []
                for group in await self._groups(page.author, live=True):
                    order = (tuple(entry.id for entry in group.open), tuple(entry.id for entry in group.ended))
                    box = f"rollouts-{group.id}"
                    pieces.append(Piece(box, "group_rollouts", (group,), order))
                    pieces += [
                        Piece(f"rollout-{entry.id}", "card", (entry, group.id, group.owner), entry, inside=box)
                        for entry in group.open
                    ]
                if patch := patcher.patch(pieces):
                    await page.send(patch=patch)
                await trio.sleep(PAUSE)
                await news.next()

    # ---- one rollout

    async def show(self, request: Request) -> Response:
        """`GET /rollouts/<organization>/<id>?state=&page=`."""
        return await self._show(request)

    async def _show(self, request: Request, error: MachineError | None = None) -> Response:
        service, organization, subject = self._of(request)
        state, token = _place(request.query_params)
        reply = await service.get_staged_rollout(organization, subject)
        listed = await service.list_staged_machines(organization, subject, state, token, PAGE)
        path, query = f"/rollouts/{organization}/{subject}", {"state": state, "page": token}
        return render(
            request,
            "staged_rollout.html",
            status_of(error) if error else 200,
            rollout=reply.rollout,
            organization=organization,
            owner=await self._owns(author_of(request), organization),
            events=reply.events,
            machines=listed.machines,
            state=state,
            more=f"{path}?{urlencode({'state': state, 'page': listed.next_page_token})}"
            if listed.next_page_token
            else "",
            error=error,
            live=f"/live{path}?{urlencode(query)}",
        )

    def _of(self, request: Request) -> tuple[RolloutService, str, str]:
        names = request.path_params
        return RolloutService(self._cloud, author_of(request)), names["organization"], names["id"]

    async def _owns(self, author: Author, organization: str) -> bool:
        return any(
            owner for each, owner in await Editor(self._cloud, author).organizations() if each.id == organization
        )

    async def act(self, request: Request) -> Response:
        """`POST /rollouts/<organization>/<id>`: do the `action` of a button, and return to the page `from`."""
        form = await fields(request)
        service, organization, subject = self._of(request)
        try:
            await service.change_staged_rollout(organization, subject, text_of(form, "action"))
        except MachineError as error:
            if error.kind not in (ErrorKind.PRECONDITION, ErrorKind.INVALID):
                raise
            return await self._show(request, error)
        return redirect("/rollouts" if text_of(form, "from") == "list" else f"/rollouts/{organization}/{subject}")

    async def live_one(self, socket: WebSocket) -> None:
        """`/live/rollouts/<organization>/<id>?state=&page=`: send the rollout and its machines as they change."""
        names = socket.path_params
        place = _place(socket.query_params)
        await live(self._cloud, socket, partial(self._follow_one, names["organization"], names["id"], *place))

    async def _follow_one(self, organization: str, subject: str, state: str, token: str, page: LivePage) -> None:
        patcher = Patcher(lambda piece: render_macro("rollouts_parts.html", piece.macro, *piece.arguments))
        service = RolloutService(self._cloud, page.author)
        owner = await self._owns(page.author, organization)
        async with news_of(self._cloud, (TOPIC, organization)) as news:
            while True:
                reply = await service.get_staged_rollout(organization, subject)
                listed = await service.list_staged_machines(organization, subject, state, token, PAGE)
                entry, machines = reply.rollout, tuple(listed.machines)
                pieces = [
                    Piece(f"rollout-{subject}", "card", (entry, organization, owner, state, False), entry),
                    Piece("rollout-machines", "machine_list", (entry, machines), machines),
                    Piece("rollout-events", "event_list", (reply.events,), len(reply.events)),
                ]
                if patch := patcher.patch(pieces):
                    await page.send(patch=patch)
                await trio.sleep(PAUSE)
                await news.next()


def _place(query: Mapping[str, str]) -> tuple[str, str]:
    """Return the state by which machines are filtered, and the token of the page."""
    state = query.get("state", "")
    return state if state in tuple(MachineState) else "", query.get("page", "")
