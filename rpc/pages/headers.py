"""Response headers of pages, HTTP status of errors, and the content type that a request accepts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from schema import ErrorKind

HEADERS: Final[Mapping[str, str]] = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}

STATUS: Final[Mapping[ErrorKind, int]] = {
    ErrorKind.INVALID: 400,
    ErrorKind.UNAUTHENTICATED: 401,
    ErrorKind.PERMISSION: 403,
    ErrorKind.NOT_FOUND: 404,
    ErrorKind.EXISTS: 409,
    ErrorKind.PRECONDITION: 409,
    ErrorKind.EXHAUSTED: 429,
    ErrorKind.UNSUPPORTED: 501,
    ErrorKind.UNAVAILABLE: 503,
    ErrorKind.TIMEOUT: 504,
}
"""HTTP status of each error kind; other kinds are 500."""

TITLES: Final[Mapping[int, str]] = {
    400: "Invalid request",
    401: "Log in first",
    403: "Not permitted",
    404: "Not found",
    409: "Conflict",
    503: "Not available now",
}


class Protect:
    """ASGI middleware that adds missing security headers to every HTTP response, without buffering."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: D102 - ASGI 3
        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, guarded if scope["type"] == "http" else send)


def wants_page(headers: Headers) -> bool:
    """Return True if the request accepts HTML, as browsers do and most programs do not."""
    return "text/html" in headers.get("accept", "")


def wants_json(headers: Headers) -> bool:
    """Return True if the request accepts JSON."""
    return "application/json" in headers.get("accept", "")
