"""HTTP and JSON API of invitations for the command line, beyond the published calls.

    GET  /api/v1/organizations/ORGANIZATION/invites        open invitations with the state of their mails
    POST /api/v1/organizations/ORGANIZATION/invites/link   {"email": ...}: a new link, which is shown only once

Requests are authenticated as everywhere on this port: `authorization: Bearer TOKEN`. Errors are `{"error": ...}`.
"""

from __future__ import annotations

from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from cloud.services.common.base import Cloud
from cloud.services.organizations.people import Invitations
from cloud.web.common.site import author_of, status_of
from schema.errors import ErrorKind, MachineError

MAX_BODY: Final = 10_000  # bytes


class _InviteRequest(msgspec.Struct):
    email: str


def routes(cloud: Cloud) -> list[Route]:
    """Return the routes of this API."""

    async def listed(request: Request) -> Response:
        service = Invitations(cloud, author_of(request))
        try:
            invitations = await service.list_invites(request.path_params["organization"])
        except MachineError as error:
            return _refusal(error)
        invites = [
            {
                "email": invitation.email,
                "expires": invitation.expires,
                "inviter": invitation.inviter_name,
                "mail": invitation.mail,
                "error": invitation.error,
            }
            for invitation in invitations
        ]
        return _json({"mails": cloud.mails, "invites": invites})

    async def link(request: Request) -> Response:
        service = Invitations(cloud, author_of(request))
        try:
            invite = await _body(request)
            created_link = await service.create_invite_link(request.path_params["organization"], invite.email)
        except MachineError as error:
            return _refusal(error)
        return _json({"email": invite.email, "link": created_link})

    root = "/api/v1/organizations/{organization}/invites"
    return [Route(root, listed), Route(f"{root}/link", link, methods=["POST"])]


def _json(value: object) -> Response:
    return Response(msgspec.json.encode(value), media_type="application/json")


def _refusal(error: MachineError) -> Response:
    return JSONResponse({"error": str(error)}, status_of(error))


async def _body(request: Request) -> _InviteRequest:
    received = bytearray()
    async for piece in request.stream():
        received += piece
        if len(received) > MAX_BODY:
            break
    try:
        return msgspec.json.decode(received[:MAX_BODY], type=_InviteRequest)
    except (msgspec.MsgspecError, RecursionError):
        raise MachineError(
            "the request has no email address", kind=ErrorKind.INVALID, remedy='send {"email": "ada@example.com"}'
        ) from None
