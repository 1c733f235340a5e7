"""Tickets that log a browser in: made for a key, valid once and for a short time.

A ticket is a random text. Servers store only its digest, with the key's entity and fingerprint, so that a session that
it starts is exactly one that the form would start with that key.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from grpclib.const import Status
from grpclib.exceptions import GRPCError

TICKETS_PATH: Final = "/login/links"
"""POST with a token of a key in `authorization: Bearer`: returns `{"ticket": text, "seconds": its life}`."""
LINK: Final = "/login/link"
"""The page of a link. Its fragment is the ticket, which the page sends by POST."""

TICKET_LIFE: Final = 120  # seconds
MAX_WAITING_TICKETS: Final = 20  # tickets of one key that are not used yet
MAX_TICKET: Final = 100  # characters; ours have 32


@dataclass(frozen=True, slots=True)
class Ticket:
    """What a server stores of a ticket: the API key for which it was made, and when it expires."""

    digest: str
    entity: str
    fingerprint: str
    ends: int  # seconds since 1970


class Tickets:
    """Tickets in memory."""

    def __init__(self) -> None:
        self._tickets: dict[str, Ticket] = {}

    def add(self, ticket: Ticket, now: int) -> None:
        """Store a ticket. GRPCError (RESOURCE_EXHAUSTED) if MAX_WAITING of its key are waiting."""
        self._tickets = {digest: other for digest, other in self._tickets.items() if other.ends > now}
        if sum(other.entity == ticket.entity for other in self._tickets.values()) >= MAX_WAITING_TICKETS:
            raise too_many_tickets()
        self._tickets[ticket.digest] = ticket

    def take(self, digest: str) -> Ticket | None:
        """Remove a ticket and return it; None if there is none."""
        return self._tickets.pop(digest, None)


def new_ticket() -> str:
    """Return a new ticket, of 192 random bits."""
    return secrets.token_urlsafe(24)


def too_many_tickets() -> GRPCError:
    """Return the error for a key with MAX_WAITING_TICKETS tickets."""
    text = f"{MAX_WAITING_TICKETS} links of this key are waiting to be used; use one, or wait {TICKET_LIFE} seconds"
    return GRPCError(Status.RESOURCE_EXHAUSTED, text)


def link_with(address: str, ticket: str, target: str = "/") -> str:
    """Return the link to a server at `address` (scheme and host) that logs in and shows the page `target`."""
    query = "" if target == "/" else f"?next={quote(target, safe='/')}"
    return f"{address}{LINK}{query}#{ticket}"


def ticket_in(reply: Mapping[str, object]) -> str:
    """Return the ticket in the reply to POST TICKETS. ValueError if there is none."""
    ticket = reply.get("ticket")
    if not isinstance(ticket, str) or not ticket.isascii() or not 0 < len(ticket) <= MAX_TICKET:
        raise ValueError("the reply contains no ticket")
    return ticket
