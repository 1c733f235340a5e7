"""`/machines/<part>/control`: a card for each resource of a machine.

Scripts of the page call the machine like any other client: by WebRTC, or through the cloud.
"""

from __future__ import annotations

import json

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from cloud.services.common.base import Cloud
from cloud.services.machines.fleet import FleetService
from cloud.web.common.site import author_of, render
from rpc.access.login import TOKEN


def routes(cloud: Cloud) -> list[BaseRoute]:
    """Return the route."""

    async def control(request: Request) -> Response:
        part = await FleetService(cloud, author_of(request)).part(request.path_params["id"])
        props = {"name": part.machine, "part": part.id, "token": TOKEN, "webrtc": True, "resource_pages": False}
        return render(request, "control.html", part=part, props=json.dumps(props))

    return [Route("/machines/{id}/control", control)]
