"""Accepting an invitation: `/invites/<secret of the link>`, for whoever has the link. It works without a key."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import trio
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from cloud import audit, invites
from cloud.author import PERSON, Author
from cloud.invites import Invite
from cloud.keys import Grant
from cloud.machines import machine
from cloud.services.base import Cloud
from cloud.services.people import PATH
from cloud.store.sql import Sql
from cloud.tenants import location, organization
from cloud.web.site import render
from rpc.addresses import group_of
from rpc.attempts import ADDRESS_FAILURES, Attempts
from rpc.auth import digest_of
from rpc.carrier import Peer
from schema.errors import ErrorKind, MachineError


@dataclass(frozen=True, slots=True)
class Shown:
    """An invitation in words."""

    organization: str
    email: str
    inviter: str
    expires: datetime
    roles: tuple[tuple[str, str], ...]  # role, and where


def routes(cloud: Cloud) -> list[BaseRoute]:
    """The page and its form."""
    pages = InvitePages(cloud)
    return [
        Route(f"{PATH}{{secret}}", pages.look, methods=["GET"]),
        Route(f"{PATH}{{secret}}", pages.accept, methods=["POST"]),
    ]


class InvitePages:
    """The endpoints. Wrong links are counted for each address and link, and for the address; right ones always work."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        self._attempts = Attempts()  # of a link from an address
        self._addresses = Attempts(failures=ADDRESS_FAILURES)

    async def look(self, request: Request) -> Response:
        """`GET`: what one is invited to. Opening it changes nothing: mail programs look at links, too."""
        secret: str = request.path_params["secret"]

        def work(sql: Sql) -> Shown:
            return _shown(sql, invites.opened(sql, secret, self._cloud.clock()))

        try:
            found = await self._cloud.store.read(work)
        except MachineError as error:
            raise self._counted(request, error) from None
        return _page(request, "invite.html", invite=found)

    async def accept(self, request: Request) -> Response:
        """`POST`: a key in the person's name, shown this once."""
        secret: str = request.path_params["secret"]

        def work(sql: Sql) -> tuple[Shown, str, str]:
            now = self._cloud.clock()
            shown = _shown(sql, invites.opened(sql, secret, now))
            found, subject, key = invites.accept(sql, secret, now)
            detail = {
                "called": found.email,
                "invited_by": found.inviter_name,
                "roles": [_role(one) for one in found.grants],
            }
            audit.note(
                sql, found.organization_id, Author(PERSON, found.email), "accept_invitation", subject, detail, now
            )
            return shown, subject, key

        try:
            # A wrong link is refused by a read: only right ones wait for, and take, the turn to write.
            await self._cloud.store.read(lambda sql: invites.opened(sql, secret, self._cloud.clock()))
            shown, subject, key = await self._cloud.store.write(work)
        except MachineError as error:
            raise self._counted(request, error) from None
        return _page(request, "invite_accepted.html", invite=shown, id=subject, key=key)

    def _counted(self, request: Request, error: MachineError) -> MachineError:
        """Count a wrong link and return its error: EXHAUSTED after too many. A right link is never refused for others.

        The link is looked up first, which is one read of an index, so that nobody at an address is locked out by others
        behind it.
        """
        if error.kind is not ErrorKind.NOT_FOUND:
            return error
        address, now = group_of(Peer(request.scope.get("client"))), trio.current_time()
        link = f"{address} {digest_of(request.path_params['secret'])}"
        if wait := max(self._attempts.wait(link, now), self._addresses.wait(address, now)):
            text = "this invitation is not valid (any more), and too many such links were tried from this address"
            return MachineError(text, kind=ErrorKind.EXHAUSTED, remedy=f"try again in {wait:.0f} seconds")
        self._attempts.failed(link, now)
        self._addresses.failed(address, now)
        return error


def _page(request: Request, template: str, **values: Any) -> Response:
    """A page for somebody who has no key (yet)."""
    return render(request, template, rooms=[], signed_in=False, **values)


def _shown(sql: Sql, found: Invite) -> Shown:
    return Shown(
        organization(sql, found.organization_id).name,
        found.email,
        found.inviter_name,
        found.expires,
        tuple((one.role, _where(sql, one)) for one in found.grants),
    )


def _where(sql: Sql, grant: Grant) -> str:
    try:
        if grant.kind == "organization":
            return "everything"
        if grant.kind == "location":
            return f"the location {location(sql, grant.subject).name}"
        return f"the machine {machine(sql, grant.subject).name}"
    except MachineError:
        return "something that was deleted"


def _role(grant: Grant) -> str:
    return f"{grant.kind}_{grant.role} {grant.subject}"
