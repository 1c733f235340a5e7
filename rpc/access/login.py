"""Login form, which exchanges the id and value of an API key for a token in a cookie."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs

from grpclib.const import Status
from grpclib.exceptions import GRPCError

from rpc.access.auth import Authenticator, of_pages
from rpc.access.credential_types import API_KEY
from rpc.carrier import Identity, Peer
from rpc.http.asgi import Receive, Scope, Send
from schema import ErrorKind, MachineError

COOKIE: Final = "machine_token"
TOKEN_PATH: Final = "/login/token"
"""Path at which a script of a page gets a token for calls."""
CALLS: Final = 600  # seconds until such a token expires; scripts replace it before
SESSION: Final = 24 * 3600  # seconds until a session expires; all servers of the host receive the cookie
MAX_FORM: Final = 4096  # bytes

HTML: Final = b"text/html; charset=utf-8"

_STATUS: Final[Mapping[Status, int]] = {
    Status.INVALID_ARGUMENT: 400,
    Status.UNAUTHENTICATED: 401,
    Status.PERMISSION_DENIED: 403,
    Status.RESOURCE_EXHAUSTED: 429,
}
_PAGE: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title><style>{style}</style></head><body><main class="card"><h1>{title}</h1>
<div class="note is-unhealthy" role="alert"{hidden}><p>{message}</p></div>
<form method="post" action="/login"><input type="hidden" name="next" value="{next}">
<label>Key id <input name="id" value="{entity}" autocomplete="username" required{first}></label>
<label>Key <input name="key" type="password" autocomplete="current-password" required{second}></label>
<div class="actions"><button class="primary">Log in</button></div></form>
<p class="muted small">{hint}</p></main></body></html>
"""


@dataclass(frozen=True, slots=True)
class LoginTexts:
    """Texts of the login form: title, a hint where keys come from, and the command that makes links that log in."""

    title: str = "Log in"
    hint: str = ""
    command: str = "machine open"


@cache
def style() -> str:
    """Return the common style sheet, inlined because static files may need a login."""
    return (Path(__file__).parents[1] / "pages" / "static" / "base.css").read_text("utf-8")


@cache
def policy_for(script: str = "") -> tuple[bytes, bytes]:
    """Return the header with the content security policy of a page with `style` and, unless empty, `script`."""
    scripts = b" script-src 'sha256-%b';" % b64encode(sha256(script.encode()).digest()) if script else b""
    policy = b"default-src 'none';%b style-src 'sha256-%b'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    return b"content-security-policy", policy % (scripts, b64encode(sha256(style().encode()).digest()))


async def login(
    authenticator: Authenticator,
    scope: Scope,
    receive: Receive,
    send: Send,
    peer: Peer,
    secure: bool,
    identity: Identity | None,
    texts: LoginTexts,
) -> None:
    """Answer /login (GET: the form; POST: fields `id`, `key`, `next`) and /logout (POST: revokes the token)."""
    if scope["path"] == "/logout":
        if scope["method"] != "POST":
            await send_text(send, 405, [(b"allow", b"POST")], "Use POST to log out")
            return
        if identity is not None:
            try:
                await authenticator.sign_out(identity)
            except MachineError as error:  # the cookie stays, so that the user can retry
                code = 503 if error.kind is ErrorKind.UNAVAILABLE else 400
                await send_text(send, code, [], f"The logout failed: {error}")
                return
        removed_cookie = _cookie(authenticator.instance, "", secure, remove=True)
        await send_text(send, 303, [(b"location", b"/login"), removed_cookie], "")
    elif scope["method"] in ("GET", "HEAD"):
        query = parse_qs(scope["query_string"].decode("latin-1"))
        await _form(send, 200, texts, local_target(query.get("next", [""])[0]))
    elif scope["method"] == "POST":
        await _post(authenticator, receive, send, peer, secure, texts)
    else:
        await send_text(send, 405, [(b"allow", b"GET, HEAD, POST")], "Use POST to log in")


async def answer_token(authenticator: Authenticator, scope: Scope, send: Send, session: Identity | None) -> None:
    """Answer POST TOKEN with `{"token": text, "seconds": number}`, for the session of a page; 401 without one."""
    token = authenticator.token_for_calls(session, CALLS) if session is not None and of_pages(session) else None
    if token is None:
        await send_text(send, 401, [], "Log in first")
    elif scope["method"] != "POST":
        await send_text(send, 405, [(b"allow", b"POST")], "Use POST to get a token")
    else:
        await send_text(send, 200, [], json.dumps({"token": token, "seconds": CALLS}), b"application/json")


async def _post(
    authenticator: Authenticator, receive: Receive, send: Send, peer: Peer, secure: bool, texts: LoginTexts
) -> None:
    form = await read_form(receive)
    if form is None:
        await _form(send, 413, texts, "/", "The key id or the key is too long.")
        return
    entity, key, target = (form.get(name, "") for name in ("id", "key", "next"))
    target = local_target(target)
    try:
        token = await authenticator.sign_in(entity.strip(), API_KEY, key.strip(), peer=peer, life=SESSION)
    except GRPCError as error:
        await _form(send, status_of(error), texts, target, sentence_of(error), entity.strip()[:100])
        return
    await start_session(authenticator, send, token, secure, target)


async def start_session(authenticator: Authenticator, send: Send, token: str, secure: bool, target: str) -> None:
    """Set the cookie with the token of a session, and redirect to `target`."""
    cookie = _cookie(authenticator.instance, token, secure)
    await send_text(send, 303, [(b"location", target.encode("ascii", "replace")), cookie], "")


async def read_form(receive: Receive) -> dict[str, str] | None:
    """Return the first value of each field of a form sent by POST; None if it is larger than MAX_FORM."""
    body = bytearray()
    more = True
    while more and len(body) <= MAX_FORM:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    if len(body) > MAX_FORM:
        return None
    form = parse_qs(body.decode("latin-1"), keep_blank_values=True, max_num_fields=10)
    return {name: values[0] for name, values in form.items()}


def status_of(error: GRPCError) -> int:
    """Return the HTTP status for a refused login."""
    return _STATUS.get(error.status, 400)


def sentence_of(error: GRPCError) -> str:
    """Return the message of an error as a sentence."""
    text = error.message or ""
    return f"{text[:1].upper()}{text[1:]}."


def local_target(target: str) -> str:
    """Return `target` if it is a path on this server, otherwise "/": a login must not redirect to another site."""
    printable = target.isascii() and target.isprintable() and "\\" not in target
    return target if printable and target.startswith("/") and not target.startswith("//") else "/"


def cookie_name(instance: str, *, secure: bool) -> str:
    """Return the cookie name of the server `instance`; browsers share cookies among all servers of a host.

    With `secure`, the prefix __Host- prevents other hosts of the domain and connections without TLS from setting the
    cookie (RFC 6265bis 4.1.3).
    """
    name = f"{COOKIE}_{instance}" if instance else COOKIE
    return f"__Host-{name}" if secure else name


def _cookie(instance: str, token: str, secure: bool, *, remove: bool = False) -> tuple[bytes, bytes]:
    text = f"{cookie_name(instance, secure=secure)}={token}; Path=/; HttpOnly; SameSite=Strict"
    if secure:
        text += "; Secure"
    if remove:
        text += "; Max-Age=0"
    return b"set-cookie", text.encode("ascii")


async def _form(send: Send, status: int, texts: LoginTexts, target: str, message: str = "", entity: str = "") -> None:
    page = _PAGE.format(
        style=style(),
        title=escape(texts.title),
        hint=escape(texts.hint),
        message=escape(message),
        hidden="" if message else " hidden",
        next=escape(target),
        entity=escape(entity),
        first="" if entity else " autofocus",
        second=" autofocus" if entity else "",
    )
    await send_text(send, status, [policy_for()], page, HTML)


async def send_text(
    send: Send, status: int, headers: list[tuple[bytes, bytes]], text: str, kind: bytes = b"text/plain; charset=utf-8"
) -> None:
    """Send a response, which is not stored by any cache."""
    body = text.encode()
    common = [(b"content-type", kind), (b"content-length", str(len(body)).encode()), (b"cache-control", b"no-store")]
    await send({"type": "http.response.start", "status": status, "headers": [*common, *headers]})
    await send({"type": "http.response.body", "body": body})
