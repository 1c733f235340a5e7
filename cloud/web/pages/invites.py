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
from rpc.attempts import Attempts
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
    """The endpoints. Whoever tries links that are none is made to wait, as with keys."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        self._attempts = Attempts()

    async def look(self, request: Request) -> Response:
        """`GET`: what one is invited to. Opening it changes nothing: mail programs look at links, too."""
        secret = self._secret(request)

        def work(sql: Sql) -> Shown:
            return _shown(sql, invites.opened(sql, secret, self._cloud.clock()))

        try:
            found = await self._cloud.store.read(work)
        except MachineError as error:
            raise self._counted(request, error) from None
        return _page(request, "invite.html", invite=found)

    async def accept(self, request: Request) -> Response:
        """`POST`: a key in the person's name, shown this once."""
        secret = self._secret(request)

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
            shown, subject, key = await self._cloud.store.write(work)
        except MachineError as error:
            raise self._counted(request, error) from None
        return _page(request, "invite_accepted.html", invite=shown, id=subject, key=key)

    def _secret(self, request: Request) -> str:
        """The secret of the link; EXHAUSTED for an address that has tried too many."""
        if wait := self._attempts.wait(_group(request), trio.current_time()):
            raise MachineError(
                "too many links were tried from this address",
                kind=ErrorKind.EXHAUSTED,
                remedy=f"try again in {wait:.0f} seconds",
            )
        secret: str = request.path_params["secret"]
        return secret

    def _counted(self, request: Request, error: MachineError) -> MachineError:
        if error.kind is ErrorKind.NOT_FOUND:
            self._attempts.failed(_group(request), trio.current_time())
        return error


def _group(request: Request) -> str:
    return group_of(Peer(request.scope.get("client")))


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
