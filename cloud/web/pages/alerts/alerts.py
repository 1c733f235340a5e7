"""`/alerts`: what is wrong now, buttons for it, and what has happened."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final
from urllib.parse import quote

import trio
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.websockets import WebSocket

from cloud.domain.alerts.states import TOPIC
from cloud.domain.permissions.access import ObjectKind
from cloud.domain.permissions.rules import AT_ALERTS, OF_FORM, AccessRule, operator
from cloud.services.alerts.alert_messages import Alert
from cloud.services.alerts.alerts import AlertService
from cloud.services.common.base import Cloud
from cloud.web.common.live import LivePage, live, news_of
from cloud.web.common.site import author_of, fields, redirect, render, render_macro, status_of, text_of
from cloud.web.views.alert_view import plot_link, shown_events
from rpc.pages import Patcher, Piece
from schema import ErrorKind, MachineError

PAUSE: Final = 1.0  # seconds between two reads of all alerts
PAGE: Final = 30  # events on a page
CARDS: Final = 50  # alerts on a page: more would be too much to read, and to render
MORNING: Final = 8  # hour of the day at which "until tomorrow" ends


RULES: Final[Mapping[str, AccessRule]] = {
    "GET /alerts": AT_ALERTS,
    "WS /live/alerts": AT_ALERTS,
    "POST /alerts/silences": OF_FORM | "operators of the organization that the form names",
    "GET /alerts/count": AT_ALERTS,
    "GET /alerts/{alert}": operator(ObjectKind.ALERT, "alert"),
    "POST /alerts/{alert}": operator(ObjectKind.ALERT, "alert"),
}


def routes(cloud: Cloud) -> list[BaseRoute]:
    """Return the routes."""
    pages = _Pages(cloud)
    return [
        Route("/alerts", pages.index),
        Route("/alerts/count", pages.count),
        Route("/alerts/silences", pages.end_silence, methods=["POST"]),
        Route("/alerts/{alert}", pages.show),
        Route("/alerts/{alert}", pages.act, methods=["POST"]),
        WebSocketRoute("/live/alerts", pages.live),
    ]


class _Pages:
    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    async def index(self, request: Request) -> Response:
        """`GET /alerts?before=`."""
        service = AlertService(self._cloud, author_of(request))
        before = request.query_params.get("before", "")
        number = int(before) if before.isascii() and before.isdigit() and len(before) < 16 else 0
        listed, page = await service.overview(CARDS), await service.list_alert_events("", number, PAGE)
        organization, silences = await service.list_own_silences()
        return render(
            request,
            "alerts.html",
            overview=listed,
            alerts=_with_plots(listed.alerts),
            organization=organization,
            silences=silences,
            events=shown_events(page.events),
            older=page.next,
            live="" if number else "/live/alerts",
        )

    async def live(self, socket: WebSocket) -> None:
        """`/live/alerts`."""
        await live(self._cloud, socket, self._follow)

    async def _follow(self, page: LivePage) -> None:
        patcher = Patcher(lambda piece: render_macro("alerts_parts.html", piece.macro, *piece.arguments))
        service = AlertService(self._cloud, page.author)
        async with news_of(self._cloud, (TOPIC, "")) as news:
            while True:
                listed, events = await service.overview(CARDS), await service.list_alert_events("", 0, PAGE)
                organization, silences = await service.list_own_silences()
                shown = (listed, _with_plots(listed.alerts), organization, silences)
                pieces = [
                    Piece("board", "board", shown, (listed, silences)),
                    Piece("history", "history", (shown_events(events.events),), events.events),
                ]
                if patch := patcher.patch(pieces):
                    await page.send(patch=patch)
                await trio.sleep(PAUSE)
                await news.next()

    async def count(self, request: Request) -> Response:
        """`GET /alerts/count`: the number of alerts that fire, for the navigation."""
        return JSONResponse({"firing": await AlertService(self._cloud, author_of(request)).firing()})

    async def show(self, request: Request) -> Response:
        """`GET /alerts/<id>`."""
        return await self._show(request)

    async def _show(self, request: Request, error: MachineError | None = None) -> Response:
        service, subject = AlertService(self._cloud, author_of(request)), request.path_params["alert"]
        alert = await service.get_alert(subject)
        page = await service.list_alert_events(subject)
        return render(
            request,
            "alert.html",
            status_of(error) if error else 200,
            alert=alert,
            organization=(await service.list_own_silences())[0],
            plot=plot_link(alert),
            events=shown_events(page.events),
            error=error or "",
        )

    async def act(self, request: Request) -> Response:
        """`POST /alerts/<id>`: `acknowledge`, `silence` with `for` or `until`, or `unsilence`.

        With `of` (rule or machine), all alerts of its rule or its machine are silenced.
        """
        service, subject = AlertService(self._cloud, author_of(request)), request.path_params["alert"]
        form = await fields(request)
        action = text_of(form, "action")
        try:
            if action == "acknowledge":
                await service.acknowledge_alert(subject)
            elif action == "silence" and (of := text_of(form, "of")):
                alert, until = await service.get_alert(subject), _until(form, self._cloud.clock())
                chosen = {"rule_id": alert.rule_id} if of == "rule" else {"machine_id": alert.machine_id}
                await service.silence_alerts(text_of(form, "organization"), **chosen, until=until)
            elif action == "silence":
                await service.silence_alert(subject, _until(form, self._cloud.clock()))
            elif action == "unsilence":
                await service.silence_alert(subject)
            else:
                raise MachineError(f"there is no action {action[:40]!r}", kind=ErrorKind.INVALID)
        except MachineError as error:
            if error.kind not in (ErrorKind.INVALID, ErrorKind.PRECONDITION):
                raise
            return await self._show(request, error)
        return redirect(f"/alerts/{quote(subject, safe='')}" if text_of(form, "stay") else "/alerts")

    async def end_silence(self, request: Request) -> Response:
        """`POST /alerts/silences`: end the silence of a `rule` or a `machine`."""
        service, form = AlertService(self._cloud, author_of(request)), await fields(request)
        await service.silence_alerts(text_of(form, "organization"), text_of(form, "rule"), text_of(form, "machine"))
        return redirect("/alerts")


def _with_plots(listed: list[Alert]) -> list[tuple[Alert, str]]:
    return [(alert, plot_link(alert)) for alert in listed]


def _until(form: FormData, now: datetime) -> datetime:
    """Return the end of a silence. `offset` is the difference of the browser's time to UTC, in minutes."""
    offset_text = text_of(form, "offset")
    digits = offset_text.removeprefix("-")
    valid = digits.isascii() and digits.isdigit() and len(digits) < 5
    offset = timedelta(minutes=int(offset_text)) if valid else timedelta(0)
    chosen = text_of(form, "for")
    if chosen == "tomorrow":
        local = (now + offset).replace(hour=MORNING, minute=0, second=0, microsecond=0) + timedelta(days=1)
        return local - offset
    if chosen in ("1", "4"):
        return now + timedelta(hours=int(chosen))
    try:
        return datetime.fromisoformat(text_of(form, "until")).replace(tzinfo=UTC) - offset
    except (ValueError, OverflowError):
        raise MachineError("the time is not valid", kind=ErrorKind.INVALID, remedy="choose a day and a time") from None
