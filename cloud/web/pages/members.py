"""`POST /members` and `/members/<action>`: forms for members on the keys page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from cloud.domain.permissions.rules import OF_FORM, AccessRule
from cloud.services.app import AppService
from cloud.services.common.base import Cloud
from cloud.services.organizations.people import Invitations
from cloud.web.common.site import author_of, fields, redirect, render, text_of
from cloud.web.pages.keys import KeyPages
from schema import ErrorKind, MachineError

HERE = "members"


RULES: Final[Mapping[str, AccessRule]] = {
    "POST /members": OF_FORM,
    "POST /members/{action}": OF_FORM,
}


def routes(cloud: Cloud) -> list[BaseRoute]:
    """Return the routes of the forms; the list is on the keys page."""
    pages = MemberPages(cloud)
    return [
        Route("/members", pages.invite, methods=["POST"]),
        Route("/members/{action}", pages.act, methods=["POST"]),
    ]


class MemberPages:
    """Endpoints for members."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        self._keys = KeyPages(cloud)

    async def invite(self, request: Request) -> Response:
        """`POST /members`, with fields `organization`, `email`, `role`, `place`; shows the link if it is not mailed."""
        form, author = await fields(request), author_of(request)
        owner, email = text_of(form, "organization"), text_of(form, "email")
        try:
            grant = await self._keys.parse_grant(request, form)
            await AppService(self._cloud, author).create_organization_invite(owner, email, [grant])
            if not self._cloud.mails:
                return await self._link(request, owner, email)
        except MachineError as error:
            return await self._keys.render_page(request, error, HERE)
        return redirect("/keys#members")

    async def act(self, request: Request) -> Response:
        """`POST /members/link|resend|withdraw|remove`, with fields `organization` and `email` or `member`."""
        form, action = await fields(request), request.path_params["action"]
        service = AppService(self._cloud, author_of(request))
        owner, email = text_of(form, "organization"), text_of(form, "email")
        try:
            if action == "link":
                return await self._link(request, owner, email)
            if action == "resend":
                await service.resend_organization_invite(owner, email)
            elif action == "withdraw":
                await service.delete_organization_invite(owner, email)
            elif action == "remove":
                await service.delete_organization_member(owner, text_of(form, "member"))
            else:
                raise MachineError(f"there is no action {action[:40]!r} for members", kind=ErrorKind.NOT_FOUND)
        except MachineError as error:
            return await self._keys.render_page(request, error, HERE)
        return redirect("/keys#members")

    async def _link(self, request: Request, owner: str, email: str) -> Response:
        """Render the page with a new link, the only one that shows it."""
        link = await Invitations(self._cloud, author_of(request)).create_invite_link(owner, email)
        return render(request, "invite_link.html", link=link, email=email)
