"""`/invites/<secret of the link>`: accept an invitation. Anyone with the link may accept; no key is needed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import trio
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from cloud.domain.permissions.rules import AccessRule, public
from cloud.services.common.base import Cloud
from cloud.services.organizations.acceptance import accept_invite, opened_invite
from cloud.services.organizations.people import PATH
from cloud.web.common.site import render
from rpc import Peer
from rpc.access import ADDRESS_FAILURES, Attempts, digest_of, group_of
from schema import ErrorKind, MachineError

RULES: Final[Mapping[str, AccessRule]] = {
    "GET /invites/{secret}": public("the secret in the path is the credential"),
    "POST /invites/{secret}": public("the secret in the path is the credential"),
}


def routes(cloud: Cloud) -> list[BaseRoute]:
    """Return the routes of the page and its form."""
    pages = InvitePages(cloud)
    return [
        Route(f"{PATH}{{secret}}", pages.look, methods=["GET"]),
        Route(f"{PATH}{{secret}}", pages.accept, methods=["POST"]),
    ]


class InvitePages:
    """Endpoints of invitations. Wrong links are counted per address and link, and per address; valid ones work."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        self._attempts = Attempts()  # per address and link
        self._addresses = Attempts(failures=ADDRESS_FAILURES)

    async def look(self, request: Request) -> Response:
        """`GET`: show an invitation. This changes nothing, because mail programs open links, too."""
        secret: str = request.path_params["secret"]
        try:
            invite = await opened_invite(self._cloud, secret)
        except MachineError as error:
            raise self._counted(request, error) from None
        return _page(request, "invite.html", invite=invite)

    async def accept(self, request: Request) -> Response:
        """`POST`: accept the invitation and show the new key, once."""
        secret: str = request.path_params["secret"]
        try:
            invite, subject, key = await accept_invite(self._cloud, secret)
        except MachineError as error:
            raise self._counted(request, error) from None
        return _page(request, "invite_accepted.html", invite=invite, id=subject, key=key)

    def _counted(self, request: Request, error: MachineError) -> MachineError:
        """Count a wrong link and return its error, or EXHAUSTED after too many.

        The link is looked up first, at the cost of one index read, so that a valid link works even if others behind the
        same address have tried too many.
        """
        if error.kind is not ErrorKind.NOT_FOUND:
            return error
        address, now = group_of(Peer(request.scope.get("client"))), trio.current_time()
        link = f"{address} {digest_of(request.path_params['secret'])}"
        if wait := max(self._attempts.wait(link, now), self._addresses.wait(address, now)):
            text = "this invitation is not valid, or no longer valid, and too many wrong links came from this address"
            return MachineError(text, kind=ErrorKind.EXHAUSTED, remedy=f"try again in {wait:.0f} seconds")
        self._attempts.failed(link, now)
        self._addresses.failed(address, now)
        return error


def _page(request: Request, template: str, **values: Any) -> Response:
    """Render a page for a visitor without a key."""
    return render(request, template, sections=[], signed_in=False, **values)
