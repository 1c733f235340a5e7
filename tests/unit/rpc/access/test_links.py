"""Links that log a browser in: who makes tickets, who may use them, and where they must not appear."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlencode

import pytest
from grpclib.const import Status
from grpclib.exceptions import GRPCError

from rpc.access.auth import Authenticator, Credential, of_pages
from rpc.access.credential_types import API_KEY, LOCATION_SECRET
from rpc.access.guard import Guard
from rpc.access.login import SESSION
from rpc.access.tickets import MAX_WAITING_TICKETS, TICKET_LIFE, Ticket, Tickets, link_with, ticket_in
from rpc.access.tokens import Signer
from tests.unit.rpc.access.test_guard import HTML, KEY, PAGES
from tests.unit.rpc.http1.support import PEER, Response, Server, serving

OWN = ("origin", "http://localhost:8080")
OTHER = Credential(API_KEY, "other", "the-other-key")


class Clock:
    """Seconds since 1970."""

    now = 1_700_000_000

    def __call__(self) -> float:
        return self.now


class Opened:
    """A server with two keys."""

    def __init__(self, server: Server, gate: Authenticator, clock: Clock) -> None:
        self.server, self.gate, self.clock = server, gate, clock

    def token(self, key: Credential = KEY, life: int = 0) -> str:
        return self.gate.authenticate(key.entity, key.type, key.payload, peer=PEER, life=life)

    async def made(self, *headers: tuple[str, str]) -> Response:
        return await self.server.connect().request("POST", "/login/links", list(headers))

    async def ticket(self, key: Credential = KEY) -> str:
        reply = await self.made(("authorization", f"Bearer {self.token(key)}"))
        assert (reply.status, reply.headers["cache-control"]) == (200, "no-store")
        return ticket_in(json.loads(reply.body))

    async def used(self, ticket: str, *headers: tuple[str, str], target: str = "/page") -> Response:
        body = urlencode({"ticket": ticket, "next": target}).encode()
        return await self.server.connect().request("POST", "/login/link", [OWN, *headers], body)

    async def shown(self, cookie: str) -> Response:
        return await self.server.connect().request("GET", "/", [("cookie", cookie.partition(";")[0])])


@asynccontextmanager
async def opened(*more: Credential) -> AsyncIterator[Opened]:
    clock = Clock()
    gate = Authenticator(Signer(clock=clock), credentials=[KEY, OTHER, *more], clock=clock)
    async with serving(Guard(PAGES, gate)) as server:
        yield Opened(server, gate, clock)


async def test_a_ticket_starts_a_session_of_its_key() -> None:
    async with opened() as open_:
        reply = await open_.used(await open_.ticket(), target="/page?a=b")
        assert (reply.status, reply.headers["location"]) == (303, "/page?a=b")
        cookie = reply.headers["set-cookie"]
        assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(cookie.split("; "))
        assert (await open_.shown(cookie)).body == b'{"who":"id","on":true}'
        token = cookie.partition(";")[0].partition("=")[2]
        assert of_pages(open_.gate.identify(token))  # not a token for calls
        open_.clock.now += SESSION
        assert (await open_.shown(cookie)).status == 401


async def test_a_session_ends_with_its_key_and_by_logging_out() -> None:
    async with opened() as open_:
        first, second = [(await open_.used(await open_.ticket())).headers["set-cookie"] for _ in range(2)]
        pair = ("cookie", first.partition(";")[0])
        assert (await open_.server.connect().request("POST", "/logout", [OWN, pair])).status == 303
        assert ((await open_.shown(first)).status, (await open_.shown(second)).status) == (401, 200)
        open_.gate.configure([Credential(API_KEY, "id", "changed"), OTHER])
        assert (await open_.shown(second)).status == 401


async def test_a_ticket_is_valid_once() -> None:
    async with opened() as open_:
        ticket = await open_.ticket()
        statuses = [(await open_.used(ticket)).status for _ in range(3)]
        assert statuses == [303, 401, 401]


@pytest.mark.parametrize("change", ["expired", "key changed", "key removed", "wrong", "empty", "long"])
async def test_invalid_tickets(change: str) -> None:
    async with opened() as open_:
        ticket = await open_.ticket()
        if change == "expired":
            open_.clock.now += TICKET_LIFE
        elif change == "key changed":
            open_.gate.configure([Credential(API_KEY, "id", "changed"), OTHER])
        elif change == "key removed":
            open_.gate.configure([OTHER])
        ticket = {"wrong": ticket[:-1] + "~", "empty": "", "long": "x" * 4000}.get(change, ticket)
        reply = await open_.used(ticket)
        assert (reply.status, "set-cookie" in reply.headers) == (401, False)
        assert b"The link is not valid" in reply.body
        assert b"<code>machine open</code>" in reply.body
        assert ticket.encode() not in reply.body or not ticket


async def test_wrong_tickets_count_as_failures() -> None:
    async with opened() as open_:
        ticket = await open_.ticket()
        assert [(await open_.used("guess")).status for _ in range(21)] == [401] * 20 + [429]
        assert b"after too many failed attempts" in (await open_.used("guess")).body
        assert (await open_.used(ticket)).status == 303  # a valid one is accepted all the same
        assert (await open_.used("x" * 5000)).status == 413


async def test_only_tokens_of_keys_make_tickets() -> None:
    """Only a token of an API key: a session would extend itself, and other secrets do not open the pages."""
    async with opened(Credential(LOCATION_SECRET, "host", "secret")) as open_:
        session = open_.token(life=SESSION)
        identity = open_.gate.identify(session)
        assert identity is not None
        calls = open_.gate.token_for_calls(identity, 600)
        location = open_.gate.authenticate("host", LOCATION_SECRET, "secret", peer=PEER)
        for headers, status in (
            ((), 401),
            ((("cookie", f"machine_token={session}"),), 401),
            ((("cookie", f"machine_token={open_.token()}"),), 401),
            ((("authorization", f"Bearer {session}"),), 401),
            ((("authorization", f"Bearer {calls}"),), 403),
            ((("authorization", f"Bearer {location}"),), 403),
            ((("authorization", "Bearer x.y.z"),), 401),
            ((("authorization", f"Bearer {open_.token()}"), ("origin", "http://evil.example")), 403),
            ((("authorization", f"Bearer {open_.token()}"),), 200),
        ):
            assert (await open_.made(*headers)).status == status, headers
        read = open_.server.connect().request
        assert (await read("GET", "/login/links")).status == 401
        assert (await read("GET", "/login/links", [("authorization", f"Bearer {open_.token()}")])).status == 405


async def test_one_key_cannot_use_up_the_tickets_of_others() -> None:
    async with opened() as open_:
        for _ in range(MAX_WAITING_TICKETS):
            await open_.ticket()
        bearer = ("authorization", f"Bearer {open_.token()}")
        assert (await open_.made(bearer)).status == 429
        assert (await open_.used(await open_.ticket(OTHER))).status == 303
        open_.clock.now += TICKET_LIFE
        assert (await open_.made(bearer)).status == 200


@pytest.mark.parametrize(
    ("site", "status", "now"),
    [
        ("none", 200, "yes"),
        ("", 200, "no"),
        ("same-origin", 200, "no"),
        ("cross-site", 403, ""),
        ("same-site", 403, ""),
    ],
)
async def test_another_page_cannot_log_in(site: str, status: int, now: str) -> None:
    """The page sends the ticket by itself only if the user opened it; if another page did, it has no script at all."""
    async with opened() as open_:
        headers = [HTML, *([("sec-fetch-site", site)] if site else [])]
        reply = await open_.server.connect().request("GET", "/login/link?next=/page%22", headers)
        assert reply.status == status
        assert (f'data-now="{now}"' in reply.body.decode()) == bool(now)
        assert (b"<script>" in reply.body) == bool(now)
        assert b'value="/page&quot;"' in reply.body or not now
        assert ("script-src 'sha256-" in reply.headers["content-security-policy"]) == bool(now)
        assert reply.headers["cache-control"] == "no-store"
        assert reply.headers["x-frame-options"] == "DENY"
        foreign = await open_.server.connect().request(
            "POST", "/login/link", [("origin", "http://evil.example")], urlencode({"ticket": "x"}).encode()
        )
        assert foreign.status == 403


async def test_a_used_link_leads_on_if_one_is_logged_in() -> None:
    async with opened() as open_:
        ticket = await open_.ticket()
        cookie = (await open_.used(ticket)).headers["set-cookie"].partition(";")[0]
        reply = await open_.used(ticket, ("cookie", cookie))
        assert reply.status == 401
        assert b'You are logged in: <a href="/page">continue</a>' in reply.body
        assert b"You are logged in" not in (await open_.used(ticket)).body


async def test_an_open_server_has_no_links() -> None:
    async with serving(Guard(PAGES, Authenticator())) as server:
        assert (await server.connect().request("GET", "/login/link")).status == 404
        assert (await server.connect().request("POST", "/login/links")).status == 404


def test_tickets_in_memory_are_dropped_when_they_end() -> None:
    tickets = Tickets()
    tickets.add(Ticket("a", "id", "f", 10), 0)
    tickets.add(Ticket("b", "id", "f", 20), 10)
    assert tickets.take("a") is None
    assert tickets.take("b") == Ticket("b", "id", "f", 20)
    assert tickets.take("b") is None


def test_the_ticket_is_the_fragment_of_a_link() -> None:
    assert link_with("http://localhost:8080", "abc") == "http://localhost:8080/login/link#abc"
    target = "/machines/a b?c"
    assert link_with("https://cloud", "abc", target) == "https://cloud/login/link?next=/machines/a%20b%3Fc#abc"


@pytest.mark.parametrize("ticket", [None, "", "ä", 3, "x" * 101])
def test_replies_without_a_ticket(ticket: object) -> None:
    with pytest.raises(ValueError, match="no ticket"):
        ticket_in({"ticket": ticket})


async def test_a_session_makes_no_tickets() -> None:
    gate = Authenticator(credentials=[KEY])
    session = gate.authenticate("id", API_KEY, "the-key", peer=PEER, life=SESSION)
    with pytest.raises(GRPCError) as caught:
        await gate.new_ticket(session)
    assert caught.value.status is Status.PERMISSION_DENIED
