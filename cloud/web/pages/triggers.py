"""`/triggers` and below: triggers of all parts; triggers of a part, with tests; their deliveries."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final
from urllib.parse import quote, urlencode

import trio
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.websockets import WebSocket

from cloud.domain.permissions.access import ObjectKind
from cloud.domain.permissions.rules import ROLE_ANYWHERE, AccessRule, operator, owner
from cloud.domain.triggering.deliveries import TOPIC, Delivery, DeliveryState
from cloud.editing.triggering import EMPTY, FIELDS, entry_of, form_of
from cloud.services.common.base import Cloud
from cloud.services.configurations.editing import Editor
from cloud.services.triggers.trigger_messages import Triggers
from cloud.services.triggers.triggers import TriggerService
from cloud.store.events import EVERY
from cloud.web.common.live import FRAME, LivePage, live, news_of
from cloud.web.common.site import author_of, fields, redirect, render, render_macro, status_of, text_of
from cloud.web.views.trigger_view import (
    FORM_CHOICES,
    DryRun,
    TriggerDraft,
    body_of,
    digest_of,
    event_of,
    overview_pieces,
    pieces_of_delivery,
    pieces_of_part,
    reading_in,
    words,
)
from rpc.pages import Patcher, Piece
from schema import ErrorKind, MachineError

PAGE: Final = 30  # deliveries per page
OVERVIEW_PAUSE: Final = 1.0  # seconds between two reads of all machines

ReadPieces = Callable[[LivePage], Awaitable[list[Piece]]]
"""Returns the present pieces of a page."""


@dataclass(frozen=True, slots=True)
class DeliveryFilter:
    """The filter of the delivery log."""

    trigger: str
    state: str
    before: int | None

    @classmethod
    def of(cls, query: Mapping[str, str]) -> DeliveryFilter:
        """Parse a query."""
        return cls(query.get("trigger", ""), query.get("state", ""), _number(query.get("before")))

    def encoded(self, before: int | None) -> str:
        """Return the filter as a query, for deliveries below number `before`."""
        fields = {"trigger": self.trigger, "state": self.state, "before": "" if before is None else str(before)}
        return urlencode({name: value for name, value in fields.items() if value})


_PART: Final = operator(ObjectKind.PART, "part")

RULES: Final[Mapping[str, AccessRule]] = {
    "GET /triggers": ROLE_ANYWHERE,
    "WS /live/triggers": ROLE_ANYWHERE,
    "GET /machines/{part}/triggers": _PART,
    "POST /machines/{part}/triggers": _PART | "testing a reading; sending: owners",
    "WS /live/triggers/{part}": _PART,
    "GET /machines/{part}/triggers/deliveries/{id}": _PART,
    "POST /machines/{part}/triggers/deliveries/{id}": owner(ObjectKind.PART, "part"),
    "WS /live/triggers/{part}/{id}": _PART,
}


def routes(cloud: Cloud) -> list[BaseRoute]:
    """Return the routes of the overview, of a part, and of a delivery, with their live connections."""
    pages = _Pages(cloud)
    path = "/machines/{part}/triggers"
    return [
        Route("/triggers", pages.overview),
        Route(path, pages.show),
        Route(path, pages.act, methods=["POST"]),
        Route(f"{path}/deliveries/{{id}}", pages.delivery),
        Route(f"{path}/deliveries/{{id}}", pages.replay, methods=["POST"]),
        WebSocketRoute("/live/triggers", pages.live_overview),
        WebSocketRoute("/live/triggers/{part}", pages.live_part),
        WebSocketRoute("/live/triggers/{part}/{id}", pages.live_delivery),
    ]


class _Pages:
    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    # ---- all parts

    async def overview(self, request: Request) -> Response:
        """`GET /triggers`."""
        rows = await TriggerService(self._cloud, author_of(request)).overview()
        return render(request, "triggers.html", rows=rows, live="/live/triggers")

    async def live_overview(self, socket: WebSocket) -> None:
        """`/live/triggers`."""

        async def read_pieces(page: LivePage) -> list[Piece]:
            return overview_pieces(await TriggerService(self._cloud, page.author).overview())

        await live(self._cloud, socket, partial(self._follow, read_pieces, EVERY, OVERVIEW_PAUSE))

    # ---- one part

    async def show(self, request: Request) -> Response:
        """`GET /machines/<part>/triggers?trigger=&state=&before=`."""
        return await self._show(request)

    async def _show(
        self,
        request: Request,
        dry: DryRun | None = None,
        error: MachineError | None = None,
        draft: TriggerDraft | None = None,
    ) -> Response:
        service, part = self._service_of(request)
        log_filter = DeliveryFilter.of(request.query_params)
        triggers, log, older = await _read_page(service, part, log_filter)
        place, owner = await service.place(part)
        if draft is None and owner and (edited := request.query_params.get("edit", "")):
            draft = await self._edited(request, part, edited)
        query = urlencode({"trigger": log_filter.trigger, "state": log_filter.state, "rules": digest_of(triggers)})
        return render(
            request,
            "part_triggers.html",
            status_of(error) if error else 400 if (dry and dry.error) or (draft and draft.error) else 200,
            part=part,
            place=place,
            owner=owner,
            triggers=triggers,
            rules=[(trigger, words(trigger)) for trigger in triggers.triggers],
            log=log,
            older=older,
            log_filter=log_filter,
            names=[(name, name) for name in dict.fromkeys(trigger.name for trigger in triggers.triggers)],
            states=[(state.value, state.value) for state in DeliveryState],
            dry=dry,
            draft=draft,
            form=draft.form if draft is not None and draft.form else EMPTY,
            methods=await service.captured_methods(part) if owner else (),
            choices=FORM_CHOICES,
            error=error or "",
            sent=request.query_params.get("sent", ""),
            live="" if log_filter.before is not None else f"/live/triggers/{quote(part, safe='')}?{query}",
        )

    async def live_part(self, socket: WebSocket) -> None:
        """`/live/triggers/<part>?trigger=&state=&rules=`: `rules` is the digest of those that the page shows."""
        subject, log_filter = socket.path_params["part"], DeliveryFilter.of(socket.query_params)
        shown_digest = socket.query_params.get("rules", "")

        async def read_pieces(page: LivePage) -> list[Piece]:
            triggers, log, older = await _read_page(TriggerService(self._cloud, page.author), subject, log_filter)
            narrowed = bool(log_filter.trigger or log_filter.state)
            return pieces_of_part(subject, triggers, shown_digest, log, older, narrowed=narrowed)

        await live(self._cloud, socket, partial(self._follow, read_pieces, subject, FRAME))

    async def act(self, request: Request) -> Response:
        """Handle a button of a trigger, `explain`, `test` or `start`; or the form of one, `trigger`."""
        service, part = self._service_of(request)
        form = await fields(request)
        name, text, action = text_of(form, "trigger"), text_of(form, "reading"), text_of(form, "action")
        if action == "trigger":
            return await self._review(request, form)
        try:
            if action == "explain":
                tried = await service.explain_trigger(part, name, reading_in(text))
                return await self._show(request, DryRun(name, text, tried))
            if action == "test":
                sent = await service.send_test(part, name, text_of(form, "value"), reading_in(text))
                return redirect(f"{_path(part)}?sent={len(sent)}#deliveries")
            if action == "start":
                await service.start_trigger(part, name)
                return redirect(_path(part))
        except MachineError as error:
            if error.kind is ErrorKind.INVALID:
                return await self._show(request, DryRun(name, text, error=str(error)))
            return await self._show(request, error=error)
        raise MachineError(f"there is no action {action[:40]!r}", kind=ErrorKind.INVALID)

    async def _review(self, request: Request, form: FormData) -> Response:
        """Send the form on to the configuration, which shows the change for review; or show what is wrong with it."""
        service, part = self._service_of(request)
        values, old = {field: text_of(form, field) for field in FIELDS}, text_of(form, "old")
        try:
            entry = entry_of(values)
            taken = [trigger.name for trigger in (await service.list_triggers(part)).triggers]
            if entry["name"] in taken and entry["name"] != old:
                raise MachineError(f"there is already a trigger {entry['name']!r}: choose another name")
        except MachineError as error:
            return await self._show(request, draft=TriggerDraft(old, values, str(error)))
        return RedirectResponse(f"/machines/{quote(part, safe='')}/config", 307)  # the browser sends the form again

    async def _edited(self, request: Request, part: str, name: str) -> TriggerDraft:
        editing = await Editor(self._cloud, author_of(request)).editing(part)
        try:
            return TriggerDraft(name, form_of(editing.document, name))
        except MachineError as error:
            return TriggerDraft("", None, str(error))

    # ---- one delivery

    async def delivery(self, request: Request) -> Response:
        """`GET /machines/<part>/triggers/deliveries/<id>`."""
        return await self._delivery(request)

    async def _delivery(self, request: Request, error: MachineError | None = None) -> Response:
        service, part = self._service_of(request)
        delivery, attempts = await service.stored_delivery(part, request.path_params["id"])
        place, owner = await service.place(part)
        return render(
            request,
            "delivery.html",
            status_of(error) if error else 200,
            part=part,
            place=place,
            owner=owner,
            delivery=delivery,
            attempts=attempts,
            event=event_of(delivery),
            body=body_of(delivery),
            error=error or "",
            live=f"/live/triggers/{quote(part, safe='')}/{quote(delivery.id, safe='')}",
        )

    async def live_delivery(self, socket: WebSocket) -> None:
        """`/live/triggers/<part>/<delivery>`."""
        subject, delivery = socket.path_params["part"], socket.path_params["id"]

        async def read_pieces(page: LivePage) -> list[Piece]:
            service = TriggerService(self._cloud, page.author)
            record, attempts = await service.stored_delivery(subject, delivery)
            _, owner = await service.place(subject)
            return pieces_of_delivery(subject, record, attempts, owner)

        await live(self._cloud, socket, partial(self._follow, read_pieces, subject, FRAME))

    async def replay(self, request: Request) -> Response:
        """Send a delivery again."""
        service, part = self._service_of(request)
        subject = request.path_params["id"]
        try:
            await service.replay_delivery(part, subject)
        except MachineError as error:
            if error.kind is not ErrorKind.PRECONDITION:
                raise
            return await self._delivery(request, error)
        return redirect(f"{_path(part)}/deliveries/{quote(subject, safe='')}")

    # ---- shared

    def _service_of(self, request: Request) -> tuple[TriggerService, str]:
        return TriggerService(self._cloud, author_of(request)), request.path_params["part"]

    async def _follow(self, read_pieces: ReadPieces, subject: str, pause: float, page: LivePage) -> None:
        patcher = Patcher(lambda piece: render_macro("triggers_parts.html", piece.macro, *piece.arguments))
        async with news_of(self._cloud, ("part", subject), (TOPIC, subject)) as news:
            while True:
                if patch := patcher.patch(await read_pieces(page)):
                    await page.send(patch=patch)
                await trio.sleep(pause)
                await news.next()


async def _read_page(
    service: TriggerService, part: str, log_filter: DeliveryFilter
) -> tuple[Triggers, list[Delivery], str]:
    """Return a part's triggers, a page of its deliveries, and the query of the next page, empty if there is none."""
    triggers = await service.list_triggers(part)
    log = await service.stored_deliveries(part, log_filter.trigger, log_filter.state, log_filter.before, PAGE + 1)
    older = "?" + log_filter.encoded(log[PAGE - 1].number) if len(log) > PAGE else ""
    return triggers, log[:PAGE], older


def _path(part: str) -> str:
    return f"/machines/{quote(part, safe='')}/triggers"


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 16 else None
