"""`/machines/<part>/stop-all`: the button STOP ALL, which each page of a machine has."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from cloud.domain.permissions.access import ObjectKind
from cloud.domain.permissions.rules import AccessRule, operator
from cloud.services.common.base import Cloud
from cloud.services.machines.fleet import FleetService
from cloud.services.reverse.stopping import stop_all
from cloud.web.common.site import author_of, render, status_of
from rpc.pages import wants_json
from schema import MachineError
from support.text.words import capitalize_first, took

RULES: Final[Mapping[str, AccessRule]] = {
    "POST /machines/{id}/stop-all": operator(ObjectKind.PART, "id", ObjectKind.ROBOT),
}


def routes(cloud: Cloud) -> list[BaseRoute]:
    """Return the route."""

    async def stop(request: Request) -> Response:
        """Stop a part, and show what became of it: a page, or JSON for the script of the button."""
        author, start = author_of(request), time.perf_counter()
        subject = (await FleetService(cloud, author).machine(request.path_params["id"])).part
        error, code = "", 200
        try:
            await stop_all(cloud, author, subject)
        except MachineError as failure:
            error, code = capitalize_first(str(failure)), status_of(failure)
        duration = took(time.perf_counter() - start)
        if wants_json(request.headers):
            return JSONResponse({"took": duration, "value": None, "error": error}, status_code=code)
        part = await FleetService(cloud, author).part(subject)
        return render(request, "stopped.html", code, part=part, problem=error, took=duration)

    return [Route("/machines/{id}/stop-all", stop, methods=["POST"])]
