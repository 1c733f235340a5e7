"""`/machines/<part>/control`: a card for each resource of a machine.

Scripts of the page call the machine like any other client: by WebRTC, or through the cloud.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from cloud.domain.machines.online import Presence, presence
from cloud.domain.permissions.access import ObjectKind
from cloud.domain.permissions.rules import AccessRule, home_operator, operator
from cloud.services.common.base import Cloud
from cloud.services.machines.fleet import FleetService
from cloud.values.limits import FORM
from cloud.web.common.site import author_of, body_of, render, status_of
from rpc.access import TOKEN_PATH
from rpc.pages import arrangement_of
from schema import MachineError

RULES: Final[Mapping[str, AccessRule]] = {
    "POST /machines/{id}/control/cards": home_operator(ObjectKind.PART, "id"),
    "GET /machines/{id}/control": operator(ObjectKind.PART, "id"),
}


def routes(cloud: Cloud) -> list[BaseRoute]:
    """Return the route."""

    async def control(request: Request) -> Response:
        service, subject = FleetService(cloud, author_of(request)), request.path_params["id"]
        part, (cards, may) = await service.part(subject), await service.arrangement(subject)
        props = {
            "name": part.machine,
            "part": part.id,
            "token": TOKEN_PATH,
            "webrtc": True,
            "resource_pages": False,
            "cards": cards,
            "arrange": f"/machines/{part.id}/control/cards" if may else "",
        }
        now = cloud.clock()
        online = presence(part.seen, now, online=part.online, gone=part.gone) is Presence.ONLINE
        return render(request, "control.html", part=part, online=online, now=now, props=json.dumps(props))

    async def arrange(request: Request) -> Response:
        """`POST /machines/<part>/control/cards`: arrange the cards as the body says; errors are JSON."""
        try:
            cards = arrangement_of(await body_of(request, FORM))
            await FleetService(cloud, author_of(request)).set_arrangement(request.path_params["id"], cards)
        except MachineError as error:
            return JSONResponse({"error": str(error)}, status_of(error))
        return Response(status_code=204)

    return [
        Route("/machines/{id}/control", control),
        Route("/machines/{id}/control/cards", arrange, methods=["POST"]),
    ]
