"""The Starlette application of machine-server: pages, their data, live updates, health."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

import msgspec
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route, WebSocketRoute

from engine.views import LEVELS, MachineStatus, PageSource
from rpc.access import METRICS_PATH, TOKEN_PATH, LoginTexts
from rpc.pages import STATISTICS, STATUS, TITLES, Assets, Compress, Protect, plot_props, wants_json, wants_page
from runtime.parts.web import health, pieces
from runtime.parts.web.arranging import Arranging
from runtime.parts.web.controls import Called, Controls
from runtime.parts.web.forgery import COOKIE, Forgery, give_cookie
from runtime.parts.web.live import Live
from runtime.parts.web.logs import LogStream
from runtime.parts.web.logview import Filter, newest
from runtime.parts.web.render import STATIC, Renderer
from schema import ErrorKind, MachineError
from support.text import words

Endpoint = Callable[[Request], Awaitable[Response]]


PUBLIC: Final = ("/", "/healthz", "/restart_status")
"""Paths that `rpc.access.guard` allows without a token, for supervisors. `/` answers programs with a line of text."""
PICTURES: Final = frozenset({"image/jpeg", "image/png", "image/webp", "image/gif", "image/bmp"})  # SVG may contain code
HOUR: Final = 3_600_000  # milliseconds
CARDS: Final = "/control/cards"
LOGIN_TEXTS: Final = LoginTexts(
    "Log in to the machine",
    "Use a key from its configuration (auth), or from the cloud that it has joined.",
)


def build(
    source: PageSource,
    *,
    shared: Path | None = None,
    webrtc: bool = False,
    arranging: Arranging | None = None,
    debug: Endpoint | None = None,
    metrics: Endpoint | None = None,
) -> Starlette:
    """Return the application for one machine. It has no lifespan.

    `shared` is a folder with further static files. With `webrtc`, the machine answers offers of its pages. `arranging`
    keeps the arrangement of cards; without it, browsers do.
    """
    pages = Pages(source, shared, arranging, webrtc=webrtc)
    controls = Controls(source, pages.forgery, pages.show_resource)
    answered = pages.answered
    return Starlette(
        routes=[
            Route("/", answered(pages.overview)),
            Route("/healthz", answered(pages.healthz)),
            Route("/restart_status", answered(pages.restart_status)),
            Route("/static/{file}", answered(pages.static)),
            Route("/status.json", answered(pages.status_json)),
            Route("/control", answered(pages.control)),
            *([Route(CARDS, answered(arranging.arrange), methods=["POST"])] if arranging is not None else []),
            Route("/statistics", answered(pages.statistics)),
            Route("/statistics/series", answered(pages.series)),
            Route("/logs", answered(pages.logs)),
            Route("/logs.json", answered(pages.logs_json)),
            Route("/stop-all", answered(controls.stop_all), methods=["POST"]),
            Route("/resources/{name:path}/call/{method}", answered(controls.call), methods=["POST"]),
            Route("/resources/{name:path}/image", answered(pages.image)),
            Route("/resources/{name:path}.json", answered(pages.resource_json)),
            Route("/resources/{name:path}", answered(pages.resource)),
            *([Route(METRICS_PATH, answered(metrics))] if metrics is not None else []),
            *([Route("/debug/{what:path}", answered(debug))] if debug is not None else []),
            WebSocketRoute("/live", Live(source, pages.renderer).serve),
            WebSocketRoute("/logs/stream", LogStream(source).serve),
        ],
        middleware=[Middleware(Protect), Middleware(Compress)],
        exception_handlers={404: pages.not_found, 405: pages.wrong_method},
    )


class Pages:
    """The endpoints of pages and data."""

    def __init__(
        self,
        source: PageSource,
        shared: Path | None = None,
        arranging: Arranging | None = None,
        *,
        webrtc: bool = False,
    ) -> None:
        self._source = source
        self._arranging = arranging
        self._webrtc = webrtc
        self._assets = Assets(STATIC, *([shared] if shared is not None else []))
        self.renderer = Renderer(self._assets)
        self.forgery = Forgery()

    # ---- errors

    def answered(self, endpoint: Endpoint) -> Endpoint:
        """Wrap an endpoint so that a MachineError becomes an error page or JSON."""

        async def answer(request: Request) -> Response:
            try:
                return await endpoint(request)
            except MachineError as error:
                return self._error(request, error)

        return answer

    def _error(self, request: Request, error: MachineError) -> Response:
        code = STATUS.get(error.kind, 500)
        if wants_page(request.headers) and not wants_json(request.headers):
            return self._page(
                request, "error.html", code, title=TITLES.get(code, "The request failed"), message=str(error)
            )
        return JSONResponse({"error": str(error)}, status_code=code)

    async def not_found(self, request: Request, _: Exception) -> Response:
        """Return the answer for an unknown path."""
        return self._error(request, MachineError(f"there is no page {request.url.path}", kind=ErrorKind.NOT_FOUND))

    async def wrong_method(self, request: Request, _: Exception) -> Response:
        """Return the answer for a method that the path does not support."""
        response = self._error(
            request, MachineError(f"{request.url.path} does not support {request.method}", kind=ErrorKind.INVALID)
        )
        response.status_code = 405
        return response

    def _page(self, request: Request, template: str, code: int = 200, **context: Any) -> Response:
        cookie = request.cookies.get(COOKIE) or secrets.token_urlsafe(24)
        shown: dict[str, Any] = {"status": None, "live": "", "here": "", "version": "", **context}
        status: MachineStatus | None = shown["status"]
        html = self.renderer.page(
            template,
            host=status.name if status else request.url.hostname or "machine",
            csrf=self.forgery.token(cookie),
            signed_in=request.scope.get("state", {}).get("identity") is not None,
            **(shown | {"version": status.version if status else ""}),
        )
        response = Response(html, code, media_type="text/html")
        if COOKIE not in request.cookies:
            give_cookie(response, request, cookie)
        return response

    # ---- pages

    async def overview(self, request: Request) -> Response:
        """`GET /`: the overview for browsers, a line of text for other programs."""
        status = self._source.status()
        if not wants_page(request.headers):
            return PlainTextResponse(health.answer(status))
        state = request.scope.get("state", {})
        if state.get("authentication") and state.get("identity") is None:
            return RedirectResponse("/login?next=/", 303)
        return self._page(
            request,
            "overview.html",
            status=status,
            resources=pieces.resources(status),
            failing=pieces.failing(status),
            modules=pieces.modules(status),
            internal=pieces.parts(status),
            drawing=pieces.drawing(status),
            here="overview",
            live="/live?view=overview",
        )

    async def control(self, request: Request) -> Response:
        """`GET /control`: a card for each resource. Scripts of the page call the machine like any other client."""
        status = self._source.status()
        keys = request.scope.get("state", {}).get("authentication", False)
        props = {
            "name": status.name,
            "part": "",
            "token": TOKEN_PATH if keys else "",
            "webrtc": self._webrtc,
            "resource_pages": True,
            "cards": await self._arranging.cards() if self._arranging is not None else "",
            "arrange": CARDS if self._arranging is not None else "",
        }
        return self._page(request, "control.html", status=status, here="control", props=json.dumps(props))

    async def statistics(self, request: Request) -> Response:
        """`GET /statistics`: plots of the machine's own statistics."""
        status = self._source.status()
        props = plot_props("/statistics/series", "statistics", longest=STATISTICS)
        return self._page(request, "statistics.html", status=status, here="statistics", props=props)

    async def series(self, request: Request) -> Response:
        """`GET /statistics/series?from=&to=&points=`: the numbers, by default of the last hour."""
        asked = request.query_params
        end = _time(asked, "to") or time.time_ns() // 1_000_000
        start = _time(asked, "from") or end - HOUR
        points = asked.get("points", "") or "720"
        if start > end or not points.isascii() or not points.isdigit() or len(points) > 6:
            raise MachineError(
                "the range of the statistics is not valid",
                kind=ErrorKind.INVALID,
                remedy="use times such as 2026-01-31T12:00:00Z, `from` before `to`, and a number of points",
            )
        return _json(await self._source.statistics(start, end, int(points)))

    async def resource(self, request: Request) -> Response:
        """`GET /resources/<name>`: the page of a resource."""
        return self.show_resource(request, request.path_params["name"], None)

    def show_resource(self, request: Request, name: str, called: Called | None) -> Response:
        """Return the page of a resource, with the outcome of a call that was submitted without script."""
        status = self._source.status()
        node = self._node(status, name)
        methods = self._source.methods(node.name)
        attributes = self._source.attributes(node.name)
        names = {method.name for method in methods}
        return self._page(
            request,
            "resource.html",
            called.outcome.status if called else 200,
            status=status,
            node=node,
            dependencies=pieces.links(status, node.dependencies),
            dependents=pieces.links(status, node.dependents),
            methods=methods,
            attributes=None if attributes is None else words.pretty(attributes),
            stoppable=self._source.is_actuator(node.name),
            readable="get_readings" in names,
            camera="get_images" in names,
            called=called,
            live="/live?" + urlencode({"view": "resource", "name": node.name}),
        )

    async def logs(self, request: Request) -> Response:
        """`GET /logs?level=&resource=&text=`: the page of log lines."""
        log_filter = Filter.of(request.query_params)
        entries = self._source.logs()
        last = entries[-1].seq if entries else 0
        query = {"level": log_filter.level, "resource": log_filter.resource, "text": log_filter.text}
        return self._page(
            request,
            "logs.html",
            status=self._source.status(),
            entries=newest(entries, log_filter),
            filter=log_filter,
            levels=LEVELS,
            last=last,
            here="logs",
            live="/live?" + urlencode({"view": "logs", "since": last, **query}),
        )

    def _node(self, status: MachineStatus, name: str) -> pieces.NodePiece:
        node = pieces.find(status, name)
        if node is None:
            raise MachineError(
                f"there is no resource {name!r}", kind=ErrorKind.NOT_FOUND, remedy="the overview lists all resources"
            )
        return node

    # ---- data

    async def status_json(self, _: Request) -> Response:
        """`GET /status.json`: everything the overview shows."""
        return _json(self._source.status())

    async def resource_json(self, request: Request) -> Response:
        """`GET /resources/<name>.json`: state, attributes and methods of one resource."""
        node = self._node(self._source.status(), request.path_params["name"])
        return _json(
            {
                **msgspec.to_builtins(node),
                "attributes": words.plain(self._source.attributes(node.name)),
                "methods": self._source.methods(node.name),
            }
        )

    async def logs_json(self, request: Request) -> Response:
        """`GET /logs.json?since=&level=&resource=&text=`: stored lines after number `since`, and the last number."""
        since = request.query_params.get("since", "0")
        if not since.isdigit():
            raise MachineError(
                f"since={since!r} is not a number",
                kind=ErrorKind.INVALID,
                remedy="use the number `last` of an earlier answer",
            )
        entries = self._source.logs(int(since))
        log_filter = Filter.of({"level": "debug", **request.query_params})
        last = entries[-1].seq if entries else int(since)
        return _json({"last": last, "entries": [entry for entry in entries if log_filter.admits(entry)]})

    async def image(self, request: Request) -> Response:
        """`GET /resources/<name>/image`: the newest image of a camera."""
        picture = await self._source.picture(request.path_params["name"])
        if picture.mime_type not in PICTURES:
            raise MachineError(
                f"the camera sent {picture.mime_type}, which cannot be shown", kind=ErrorKind.UNSUPPORTED
            )
        return Response(picture.data, media_type=picture.mime_type)

    async def healthz(self, _: Request) -> Response:
        """`GET /healthz`: 200 if everything works, 503 with the reasons if not."""
        healthy, facts = health.health(self._source.status())
        return JSONResponse(facts, status_code=200 if healthy else 503)

    async def restart_status(self, request: Request) -> Response:
        """`GET /restart_status`: whether a restart is allowed, for processes on this computer."""
        client = request.scope.get("client")
        if not health.is_here(client):
            raise MachineError(
                "only processes on this machine may read this", kind=ErrorKind.PERMISSION, remedy="use localhost"
            )
        await self._source.ask_maintenance()
        return JSONResponse(health.restart_status(self._source.status(), self._source.module_server()))

    async def static(self, request: Request) -> Response:
        """`GET /static/<file>?v=<digest>`: a static file."""
        response = await self._assets.respond(request, request.path_params["file"])
        return response if response is not None else await self.not_found(request, KeyError())


def _json(value: object) -> Response:
    return Response(msgspec.json.encode(value), media_type="application/json")


def _time(asked: Mapping[str, str], name: str) -> int:
    """Return a time of a query in milliseconds since 1970; 0 if it is missing. INVALID if it is not a time."""
    text = asked.get(name, "")[:40]
    if not text:
        return 0
    try:
        when = datetime.fromisoformat(text)
        return int(1000 * (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp())
    except (ValueError, OverflowError):
        raise MachineError(
            f"{name} is not a time: {text!r}", kind=ErrorKind.INVALID, remedy="write it like 2026-01-31T12:00:00Z"
        ) from None
