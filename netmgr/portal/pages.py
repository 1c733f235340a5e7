"""The captive portal: pages that need no script, on HTTP, in the hotspot only.

Requests for other hosts, such as the connectivity tests of phones and computers, are redirected to the portal, which
makes them show it. `/captive-portal/api` is the API of RFC 8908.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl

import structlog
import trio
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from netmgr.model.facts import Cipher
from netmgr.model.network import ssid_text
from netmgr.portal.access import Visitors
from netmgr.portal.backend import PortalActions
from netmgr.portal.entries import document_of, network_of_form, plain
from netmgr.portal.state import CredentialsEntry, PortalState
from rpc.pages import STATUS, Assets, Protect, template_environment
from schema import MachineError

HERE: Final = Path(__file__).parent
API: Final = "/captive-portal/api"
MAX_FIELDS: Final = 20
MAX_FORM: Final = 32 * 1024  # bytes; credentials of 16 KiB, quoted
CIPHERS: Final[Mapping[Cipher, str]] = {
    "open": "open",
    "owe": "open, encrypted",
    "wep": "WEP, not supported",
    "wpa1": "WPA, not supported",
    "wpa2": "password",
    "wpa3": "password",
    "wpa2-wpa3": "password",
    "enterprise": "account",
}
"""What a person needs for a network."""

_log = structlog.get_logger("netmgr.portal")


class PortalPages:
    """The pages of one hotspot."""

    def __init__(
        self, backend: PortalActions, visitors: Visitors, *, clock: Callable[[], float] = trio.current_time
    ) -> None:
        self._backend, self._visitors, self._clock = backend, visitors, clock
        self._assets = Assets(HERE / "static")
        self._templates = template_environment([HERE / "templates"], self._assets)
        self._templates.globals.update(ssid_text=ssid_text, ciphers=CIPHERS)

    def application(self) -> ASGIApp:
        """Return the ASGI application."""
        routes = [
            Route("/", self._home),
            Route("/save", self._save, methods=["POST"]),
            Route("/status", self._status),
            Route("/scan", self._scan, methods=["POST"]),
            Route("/state", self._state),
            Route("/static/{file}", self._static),
            Route(API, self._captive),
        ]
        inner = Starlette(routes=routes, middleware=[Middleware(Protect)])
        return _Here(inner, self._visitors)

    async def _home(self, request: Request) -> Response:
        return self._page(request, self._backend.state())

    async def _status(self, request: Request) -> Response:
        return self._render("status.html", self._backend.state())

    async def _state(self, request: Request) -> Response:
        return JSONResponse(_json(self._backend.state()))

    async def _captive(self, request: Request) -> Response:
        body = {"captive": True, "user-portal-url": f"http://{self._visitors.hosts[0]}/"}
        return JSONResponse(body, media_type="application/captive+json")

    async def _static(self, request: Request) -> Response:
        response = await self._assets.respond(request, request.path_params["file"])
        return response if response is not None else Response("no such file\n", 404, media_type="text/plain")

    async def _scan(self, request: Request) -> Response:
        try:
            await self._form(request)
        except MachineError as error:
            return self._page(request, self._backend.state(), error)
        self._backend.interacted()
        self._backend.scan()
        return RedirectResponse("/", 303)

    async def _save(self, request: Request) -> Response:
        try:
            form = await self._form(request)
            self._backend.interacted()
            entry, document = network_of_form(form), document_of(form.get("viamconfig", ""))
            if document:
                await self._backend.enter_credentials(
                    CredentialsEntry(document=document, proof=form.get("proof", "").strip())
                )
            if entry is not None:
                self._backend.enter_network(entry)
        except MachineError as error:
            return self._page(request, self._backend.state(), error)
        if entry is None and not document:
            return RedirectResponse("/", 303)
        self._backend.leave()
        return RedirectResponse("/status", 303)

    async def _form(self, request: Request) -> dict[str, str]:
        """Return the fields of a form of this portal. PERMISSION if it is from elsewhere."""
        body = bytearray()
        async with aclosing(request.stream()) as pieces:
            async for piece in pieces:
                body += piece
                if len(body) > MAX_FORM:
                    raise MachineError(f"the form has more than {MAX_FORM >> 10} KiB", remedy="enter less")
        try:
            pairs = parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=MAX_FIELDS)
        except ValueError:
            raise MachineError("the form has too many fields", remedy="load the page again") from None
        form = dict(pairs)
        host, origin = request.headers.get("host", ""), request.headers.get("origin")
        self._visitors.check_form(_client(request), form.get("token", ""), host, origin, self._clock())
        return form

    def _page(self, request: Request, state: PortalState, error: MachineError | None = None) -> Response:
        token = self._visitors.token(_client(request), self._clock())
        status = 200 if error is None else STATUS.get(error.kind, 400)
        return self._render("home.html", state, token=token, error=plain(error) if error else "", status=status)

    def _render(self, template: str, state: PortalState, *, status: int = 200, **values: object) -> Response:
        page = self._templates.get_template(template).render(state=state, **values)
        return HTMLResponse(page, status)


class _Here:
    """ASGI middleware that sends requests for other hosts to the portal."""

    def __init__(self, app: ASGIApp, visitors: Visitors) -> None:
        self._app, self._visitors = app, visitors

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app: ASGIApp = self._app
        if scope["type"] == "http":
            host = next((value for name, value in scope["headers"] if name == b"host"), b"").decode("latin-1")
            if not self._visitors.serves(host):
                headers = {"cache-control": "no-store"}
                app = RedirectResponse(f"http://{self._visitors.hosts[0]}/", 302, headers=headers)
        await app(scope, receive, send)


def _client(request: Request) -> str:
    return request.client.host if request.client is not None else ""


def _json(state: PortalState) -> dict[str, Any]:
    """Return what the script of the page updates."""
    return {
        "networks": [
            {
                "id": network.ssid.hex(),
                "name": ssid_text(network.ssid),
                "needs": CIPHERS[network.cipher],
                "percent": network.percent,
                "error": network.last_error,
            }
            for network in state.networks
        ],
        "scanned": state.scanned_ago,
        "progress": state.attempt.progress if state.attempt is not None else "",
        "text": state.attempt.text if state.attempt is not None else "",
        "next": state.next_text,
    }
