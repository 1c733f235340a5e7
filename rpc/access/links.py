"""Links that log a browser in with a ticket (rpc.access.tickets), so that no one has to paste a key.

The ticket is the fragment of the link. A browser sends no fragment, so that logs of servers and proxies, previews of
links and the header Referer never contain it. The page sends it by POST, once, and removes it from the address.

A link must not log people in with a key of someone else (login CSRF). The page therefore does nothing if another page
opened it; a browser reports that in Sec-Fetch-Site, and `none` means that the user has pasted or opened the link
itself. Without the header, the user has to press the button. The POST must come from this server's own page (guard).
"""

from __future__ import annotations

import json
from html import escape
from typing import Final
from urllib.parse import parse_qs

from grpclib.exceptions import GRPCError

from rpc.access.auth import Authenticator
from rpc.access.login import (
    HTML,
    SESSION,
    LoginTexts,
    local_target,
    policy_for,
    read_form,
    send_text,
    sentence_of,
    start_session,
    status_of,
    style,
)
from rpc.access.tickets import LINK, TICKET_LIFE, TICKETS_PATH
from rpc.carrier import Identity, Peer
from rpc.http.asgi import Receive, Scope, Send
from schema import ErrorKind, MachineError
from support.text.words import capitalize_first

PATHS: Final = (TICKETS_PATH, LINK)
OWN: Final = ("", "none", "same-origin")  # Sec-Fetch-Site of navigations that the user or this server has started

_SCRIPT: Final = """
const form = document.forms[0], ticket = location.hash.slice(1);
if (ticket) {
  history.replaceState(null, "", location.pathname + location.search);
  form.ticket.value = ticket;
  if (form.dataset.now === "yes") form.submit();
}
"""
_PAGE: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title><style>{style}</style></head><body><main class="card"><h1>{title}</h1>
{body}<p class="muted small">{hint}</p></main>{script}</body></html>
"""
_FORM: Final = """<form method="post" action="{action}" data-now="{now}">
<input type="hidden" name="next" value="{next}">
<label>Ticket <span class="muted">the part of the link after #</span>
<input name="ticket" autocomplete="off" spellcheck="false" required autofocus></label>
<div class="actions"><button class="primary">Log in</button></div></form>
"""
_PROBLEM: Final = '<div class="note is-unhealthy" role="alert"><p>{message}</p></div>\n'
_OTHER_PAGE: Final = (
    "Another page or program opened this link, and it could log you in with a key of someone else. "
    "If you made the link yourself, open a new tab and paste it there."
)


async def answer(
    authenticator: Authenticator,
    scope: Scope,
    receive: Receive,
    send: Send,
    *,
    peer: Peer,
    secure: bool,
    bearer: str,
    site: str,
    identity: Identity | None,
    texts: LoginTexts,
) -> None:
    """Answer TICKETS (POST: makes a ticket for the token `bearer`) and LINK (GET: the page; POST: `ticket`, `next`).

    `site` is the header Sec-Fetch-Site; `identity` is that of the caller.
    """
    method = scope["method"]
    if scope["path"] == TICKETS_PATH:
        if identity is None or not bearer:
            text = "send the token of an API key as authorization: Bearer"
            await send_text(send, 401, [(b"www-authenticate", b"Bearer")], text)
        elif method == "POST":
            await _make(authenticator, send, bearer)
        else:
            await send_text(send, 405, [(b"allow", b"POST")], "Use POST to make a link")
    elif method in ("GET", "HEAD"):
        query = parse_qs(scope["query_string"].decode("latin-1"))
        await _page(send, texts, site, local_target(query.get("next", [""])[0]))
    elif method == "POST":
        await _redeem(authenticator, receive, send, peer=peer, secure=secure, identity=identity, texts=texts)
    else:
        await send_text(send, 405, [(b"allow", b"GET, HEAD, POST")], "Use POST to log in")


async def _make(authenticator: Authenticator, send: Send, bearer: str) -> None:
    try:
        ticket = await authenticator.new_ticket(bearer)
    except GRPCError as error:
        await send_text(send, status_of(error), [], error.message or "")
        return
    except MachineError as error:
        await send_text(send, _code(error), [], str(error))
        return
    await send_text(send, 200, [], json.dumps({"ticket": ticket, "seconds": TICKET_LIFE}), b"application/json")


async def _redeem(
    authenticator: Authenticator,
    receive: Receive,
    send: Send,
    *,
    peer: Peer,
    secure: bool,
    identity: Identity | None,
    texts: LoginTexts,
) -> None:
    form = await read_form(receive)
    if form is None:
        await _problem(send, 413, texts, "The ticket is too long.")
        return
    target = local_target(form.get("next", ""))
    try:
        token = await authenticator.redeem_ticket(form.get("ticket", "").strip(), peer=peer, life=SESSION)
    except GRPCError as error:
        here = f'<p>You are logged in: <a href="{escape(target)}">continue</a>.</p>\n' if identity is not None else ""
        await _problem(send, status_of(error), texts, sentence_of(error), here)
        return
    except MachineError as error:
        await _problem(send, _code(error), texts, capitalize_first(str(error)))
        return
    await start_session(authenticator, send, token, secure, target)


async def _page(send: Send, texts: LoginTexts, site: str, target: str) -> None:
    if site not in OWN:
        await _problem(send, 403, texts, _OTHER_PAGE)
        return
    now = "yes" if site == "none" else "no"
    form = _FORM.format(action=LINK, now=now, next=escape(target))
    await _send(send, 200, texts, form, f"The link works once, within {TICKET_LIFE} seconds.", _SCRIPT)


async def _problem(send: Send, status: int, texts: LoginTexts, message: str, more: str = "") -> None:
    body = _PROBLEM.format(message=escape(message)) + more
    hint = f'Make a new link with <code>{escape(texts.command)}</code>, or <a href="/login">log in with a key</a>.'
    await _send(send, status, texts, body, hint)


async def _send(send: Send, status: int, texts: LoginTexts, body: str, hint: str, script: str = "") -> None:
    element = f"<script>{script}</script>" if script else ""
    page = _PAGE.format(title=escape(texts.title), style=style(), body=body, hint=hint, script=element)
    await send_text(send, status, [policy_for(script)], page, HTML)


def _code(error: MachineError) -> int:
    return 503 if error.kind is ErrorKind.UNAVAILABLE else 400
