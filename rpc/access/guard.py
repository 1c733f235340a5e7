"""ASGI middleware that protects the pages of a port.

Pages have controls, and any web site can make a browser send requests here. A request that changes something, and every
WebSocket, must therefore come from this server's own pages (Origin) or from no page. A server bound to loopback accepts
only host names that mean this computer, against DNS rebinding. No page may be framed. If the server has keys, pages
need a token as well: in `authorization: Bearer` or in the cookie of the login form. `scope["state"]` has `identity`
(Identity or None) and `authentication` (bool: keys are configured).
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from http.cookies import CookieError, SimpleCookie
from typing import Any, Final
from urllib.parse import quote_from_bytes, urlsplit

from grpclib.exceptions import GRPCError

from rpc.access import links
from rpc.access.auth import Authenticator, bearer, of_pages
from rpc.access.credential_types import API_KEY
from rpc.access.login import TOKEN_PATH, LoginTexts, answer_token, cookie_name, login
from rpc.access.origins import Origins, same_origin
from rpc.carrier import Identity, Peer
from rpc.http.asgi import RECOGNIZE, ASGIApp, Message, Receive, Scope, Send, plain_response

SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})  # RFC 9110 9.2.1
METRICS_PATH: Final = "/metrics"
"""Path where scrapers use HTTP basic authentication (RFC 7617) with id and value of an API key."""
MAX_BASIC: Final = 4096  # characters of a basic authentication header
_NO_PATHS: Final[Mapping[str, Collection[str]]] = {}
_PROTECTION: Final = (
    (b"x-frame-options", b"DENY"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),
)
_STRICT: Final = (b"strict-transport-security", b"max-age=31536000")
"""Makes browsers use https only, for a year (RFC 6797)."""


@dataclass(frozen=True, slots=True)
class RequestFacts:
    """Properties of a request that decide whether it is allowed."""

    method: str
    path: str
    scheme: str  # "http" or "https"
    host: str  # Host header, as sent
    origin: str  # "" if absent
    site: str  # Sec-Fetch-Site, "" if absent
    bearer: str  # token of the authorization header, "" if absent
    cookie: str  # the cookie header
    key: tuple[str, str]  # id and key of HTTP basic authentication or of the headers for them, "" if absent
    html: bool  # a browser requests a page
    peer: Peer = field(default_factory=Peer)

    @classmethod
    def of(cls, scope: Scope) -> RequestFacts:
        """Read an ASGI scope of HTTP or WebSocket."""
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in reversed(scope["headers"])}
        return cls(
            method=scope.get("method", "WEBSOCKET"),
            path=scope["path"],
            scheme="https" if scope["scheme"] in ("https", "wss") else "http",
            host=headers.get("host", ""),
            origin=headers.get("origin", ""),
            site=headers.get("sec-fetch-site", ""),
            bearer=bearer(headers.get("authorization", "")),
            cookie=headers.get("cookie", ""),
            key=_key(headers),
            html="text/html" in headers.get("accept", ""),
            peer=Peer(scope.get("client")),
        )

    @property
    def same_origin(self) -> bool:
        """True if the request comes from a page of this server or from no page."""
        if self.origin:
            return same_origin(self.origin, self.scheme, self.host)
        return self.site in ("", "same-origin", "none")


class Guard:
    """ASGI middleware around `app`.

    `names` are additional host names of a server that is bound to loopback only, None if it is not. `origins` replaces
    them for a server whose keys and names may change.

    `public` paths need no token, nor do paths below the folders `public_below`, such as /files/. With keys, /login,
    /login/token, /logout and the paths of `rpc.access.links` are always answered here. `keyed` are paths, with the
    types of their credentials, that can be read with id and key instead of a token: by HTTP basic authentication, or in
    the headers `key_id` and `key`. `texts` has the texts of the login form. `public_url` is the address at which
    clients reach the server. If it starts with https://, requests to that host count as HTTPS, because a proxy in front
    of the server terminates TLS.
    """

    def __init__(
        self,
        app: ASGIApp,
        authenticator: Authenticator,
        *,
        names: Collection[str] | None = (),
        origins: Callable[[], Origins] | None = None,
        public: Collection[str] = ("/healthz",),
        public_below: Collection[str] = (),
        keyed: Mapping[str, Collection[str]] = _NO_PATHS,
        texts: LoginTexts = LoginTexts(),  # noqa: B008 - frozen
        public_url: str = "",
    ) -> None:
        self._app = app
        address = urlsplit(public_url)
        self._public_host = address.netloc.lower().removesuffix(":443") if address.scheme == "https" else ""
        self._texts = texts
        self._authenticator = authenticator
        own = (*(names or ()), address.hostname or "")
        fixed = Origins(loopback=names is not None, names=tuple(name for name in own if name))
        self._origins = origins or (lambda: fixed)
        self._public = frozenset(public)
        self._keyed = {METRICS_PATH: (API_KEY,), **keyed}
        if wrong := [path for path in public_below if len(path) < 3 or not path.endswith("/")]:
            raise ValueError(f"{wrong} would open more than the paths below one folder: write a folder such as /files/")
        self._public_below = tuple(public_below)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle an ASGI 3 connection."""
        facts = RequestFacts.of(scope)
        websocket = scope["type"] == "websocket"
        if self._public_host and facts.host.lower().removesuffix(":443") == self._public_host:
            facts = replace(facts, scheme="https")
            scope = {**scope, "scheme": "wss" if websocket else "https"}
        protected = _protecting(send, (*_PROTECTION, _STRICT) if _is_strict(facts) else _PROTECTION)
        if wrong := self._origins().wrong_host(facts.host):
            await _answer(scope, protected, 421, wrong)
            return
        if (websocket or facts.method not in SAFE) and not facts.same_origin:
            await _answer(scope, protected, 403, "this request must come from the server's own pages")
            return
        identity = await self._identified(facts)
        state: dict[str, Any] = scope.setdefault("state", {})
        state["identity"] = identity
        if recognize := scope.get(RECOGNIZE):
            recognize(key=identity is not None)
        state["authentication"] = self._authenticator.enabled
        if self._authenticator.enabled:
            if facts.path in ("/login", "/logout") and not websocket:
                secure = facts.scheme == "https"
                await login(self._authenticator, scope, receive, protected, facts.peer, secure, identity, self._texts)
                return
            if facts.path == TOKEN_PATH and not websocket:
                await answer_token(self._authenticator, scope, protected, identity)
                return
            if facts.path in links.PATHS and not websocket:
                await links.answer(
                    self._authenticator,
                    scope,
                    receive,
                    protected,
                    peer=facts.peer,
                    secure=facts.scheme == "https",
                    bearer=facts.bearer,
                    site=facts.site,
                    identity=identity,
                    texts=self._texts,
                )
                return
            if identity is None and facts.path not in self._public and not facts.path.startswith(self._public_below):
                await self._unauthenticated(scope, protected, facts)
                return
        await self._app(scope, receive, protected)

    async def _identified(self, facts: RequestFacts) -> Identity | None:
        """Return the identity of the request's token. A session token is accepted only in this server's own cookie."""
        if any(facts.key) and facts.method in SAFE and facts.path in self._keyed:
            for kind in self._keyed[facts.path]:
                try:
                    token = await self._authenticator.sign_in(facts.key[0], kind, facts.key[1], peer=facts.peer)
                except GRPCError:
                    continue
                return await self._authenticator.identified(token)
            return None
        name = cookie_name(self._authenticator.instance, secure=facts.scheme == "https")
        identity = await self._authenticator.identified(facts.bearer or _cookie(facts.cookie, name))
        return None if identity is not None and facts.bearer and of_pages(identity) else identity

    async def _unauthenticated(self, scope: Scope, send: Send, facts: RequestFacts) -> None:
        if facts.html and facts.method in SAFE:
            target = scope["raw_path"] + (b"?" + scope["query_string"] if scope["query_string"] else b"")
            location = b"/login?next=" + quote_from_bytes(target, safe="/").encode()
            await _answer(scope, send, 303, "log in first", (b"location", location))
        else:
            text = "this server needs an API key: authenticate and send the token as authorization: Bearer"
            if facts.path in self._keyed:
                text = "this needs an API key: send its id and key by HTTP basic authentication"
            await _answer(scope, send, 401, text, (b"www-authenticate", b"Bearer"))


def identity_of(scope: Scope) -> Identity | None:
    """Return the identity that Guard has stored; None on an open server and for a public page without token."""
    identity: Identity | None = scope.get("state", {}).get("identity")
    return identity


def _key(headers: Mapping[str, str]) -> tuple[str, str]:
    basic = _basic(headers.get("authorization", ""))
    return basic if any(basic) else (headers.get("key_id", ""), headers.get("key", ""))


def _basic(header: str) -> tuple[str, str]:
    """Return id and key of an `authorization: Basic` header; both are empty for any other header."""
    scheme, _, encoded = header.partition(" ")
    if scheme.lower() != "basic" or len(header) > MAX_BASIC:
        return "", ""
    try:
        subject, _, key = base64.b64decode(encoded.strip(), validate=True).decode().partition(":")
    except ValueError:
        return "", ""
    return subject, key


def _cookie(header: str, name: str) -> str:
    try:
        morsel = SimpleCookie(header).get(name)
    except CookieError:
        return ""
    return morsel.value if morsel else ""


def _is_strict(facts: RequestFacts) -> bool:
    """Return whether the host of a request is served over TLS only.

    The header holds for all ports of a host. So it is sent on the default port only: a host that has this server on
    another port often serves the pages of machines over http. Browsers ignore it for addresses and for `localhost`.
    """
    host = facts.host.lower().removesuffix(":443")
    return facts.scheme == "https" and ":" not in host and "." in host and not host.replace(".", "").isdigit()


def _protecting(send: Send, fields: Sequence[tuple[bytes, bytes]]) -> Send:
    async def protected(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = list(message.get("headers", ()))
            present = {bytes(name).lower() for name, _ in headers}
            message = {**message, "headers": [*headers, *(item for item in fields if item[0] not in present)]}
        await send(message)

    return protected


async def _answer(scope: Scope, send: Send, status: int, text: str, *extra: tuple[bytes, bytes]) -> None:
    fields, body = plain_response(text)
    prefix = "websocket.http.response" if scope["type"] == "websocket" else "http.response"
    headers = [*((name.encode(), value.encode()) for name, value in fields), (b"cache-control", b"no-store"), *extra]
    await send({"type": f"{prefix}.start", "status": status, "headers": headers})
    await send({"type": f"{prefix}.body", "body": body})
