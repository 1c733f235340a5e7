"""`/machines/<part>/connect`: programs that call the machine, ready to copy, with a key that can be made there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from cloud.domain.permissions.access import ObjectKind, Role
from cloud.domain.permissions.rules import AccessRule, operator, owner
from cloud.services.app import AppService
from cloud.services.common import messages as m
from cloud.services.common.base import Cloud
from cloud.services.machines.fleet import FleetService
from cloud.values.names import MAX_NAME
from cloud.web.common.site import author_of, render, status_of
from cloud.web.views.agent_view import agent_view
from cloud.web.views.connect import ID, KEY, ConnectTarget, first_sensor, snippets
from cloud.web.views.machine_view import view
from cloud.web.views.setup import address_of
from schema import MachineError

RULES: Final[Mapping[str, AccessRule]] = {
    "GET /machines/{id}/connect": operator(ObjectKind.PART, "id", ObjectKind.ROBOT),
    "POST /machines/{id}/connect": owner(ObjectKind.PART, "id", ObjectKind.ROBOT),
}


def routes(cloud: Cloud) -> list[BaseRoute]:
    """Return the routes."""
    pages = ConnectPages(cloud)
    path = "/machines/{id}/connect"
    return [Route(path, pages.show, methods=["GET"]), Route(path, pages.create, methods=["POST"])]


class ConnectPages:
    """Endpoints of the tab Connect."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    async def show(self, request: Request) -> Response:
        """`GET`: the programs, without a key."""
        return await self._show(request)

    async def create(self, request: Request) -> Response:
        """`POST`: create a key that may call this machine and nothing else, and show the programs with it, once."""
        service = AppService(self._cloud, author_of(request))
        seen = await FleetService(self._cloud, author_of(request)).machine(request.path_params["id"])
        machine = seen.machine
        grant = m.Authorization("role", "robot_operator", "robot", machine.id)
        try:
            key = await service.create_key([grant], f"programs for {machine.name}"[:MAX_NAME])
        except MachineError as error:
            return await self._show(request, error=error)
        return await self._show(request, (key.id, key.key))

    async def _show(
        self, request: Request, key: tuple[str, str] | None = None, error: MachineError | None = None
    ) -> Response:
        author, now = author_of(request), self._cloud.clock()
        seen = await FleetService(self._cloud, author).machine(request.path_params["id"])
        shown = view(seen.machine, seen.part, seen.snapshot, agent_view(None, [], now, [], []), now)
        target = ConnectTarget(
            machine=seen.machine.name,
            part=seen.part,
            cloud=address_of(request),
            host=self._cloud.hosts.name_of(seen.part, shown.facts.name),
            pages=shown.facts.link,
            sensor=first_sensor(resource.name for resource in shown.snapshot.resources),
        )
        part = await FleetService(self._cloud, author).part(seen.part)
        return render(
            request,
            "connect.html",
            status_of(error) if error else 200,
            part=part,
            machine=seen.machine.name,
            owner=seen.machine.role is Role.OWNER,
            snippets=snippets(target, *(key or (ID, KEY))),
            key=key,
            error=error,
        )
