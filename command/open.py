"""`machine open`: opens the pages of a machine or a cloud in the browser, logged in by a link with a ticket."""

from __future__ import annotations

import json
import os
import webbrowser
from collections.abc import Mapping
from typing import Final

import click

from command.connection import Connection, target_of, tls_context
from command.http import short_exchange
from rpc.access import TICKET_LIFE, TICKETS_PATH, link_with, ticket_in
from schema import ErrorKind, MachineError

DISPLAYS: Final = ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY")
"""Variables of the environment without which there is no browser with windows."""

_KINDS: Final = {
    401: ErrorKind.UNAUTHENTICATED,
    403: ErrorKind.PERMISSION,
    429: ErrorKind.EXHAUSTED,
    503: ErrorKind.UNAVAILABLE,
}


async def link_to(connection: Connection, path: str = "/") -> str:
    """Return a link to a page of the server of `connection` that logs in with its key.

    On a server without keys, it is the address of the page. Raises Unreachable, or MachineError if the key is refused.
    """
    target = target_of(connection)
    if target.path:
        raise click.UsageError("a browser cannot open a Unix socket: give --address HOST:PORT")
    address = f"{'https' if tls_context(connection) else 'http'}://{target.authority}"
    status, content = await short_exchange(connection, "POST", TICKETS_PATH)
    if status in (404, 405):  # a machine without keys
        return f"{address}{path}"
    if status != 200:
        text = content[:200].decode(errors="replace").strip()
        raise MachineError(text or f"HTTP status {status}", kind=_KINDS.get(status, ErrorKind.INTERNAL))
    try:
        return link_with(address, ticket_in(json.loads(content)), path)
    except (ValueError, AttributeError):
        text = f"{connection.address} is not a machine-server or machine-cloud with links to log in"
        raise MachineError(text, kind=ErrorKind.UNSUPPORTED, remedy="check its address and version") from None


def show(link: str, environment: Mapping[str, str] = os.environ, *, only_print: bool = False) -> None:
    """Open a link in the browser of this user, or print it: with `only_print`, or if there is no browser."""
    if not only_print and any(environment.get(name) for name in DISPLAYS) and webbrowser.open(link):
        click.echo("opened in the browser")
        return
    click.echo(link)
    if "#" in link:
        click.echo(f"(the link logs in once, within {TICKET_LIFE} seconds; everyone who has it can use it)", err=True)
