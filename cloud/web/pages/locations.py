"""Who has access to locations, and their secrets: `/locations`, for owners."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from cloud.access import Role
from cloud.fleet import FleetLocation, locations
from cloud.services import messages as m
from cloud.services.app import AppService
from cloud.services.base import Cloud
from cloud.store.sql import Sql
from cloud.web.site import author_of, fields, render, see, status_of, text_of
from schema.errors import ErrorKind, MachineError


@dataclass(frozen=True, slots=True)
class Place:
    """A location. `secrets` are of those that the caller decides over."""

    id: str
    path: str
    belongs: str  # to the organization of this name
    home: bool  # whether the caller is an owner there, and it is the caller's
    guests: Sequence[m.OrganizationIdentity]
    secrets: Sequence[m.SharedSecret]


def routes(cloud: Cloud) -> list[BaseRoute]:
    """The list of locations, and what is done with them."""
    pages = LocationPages(cloud)
    return [
        Route("/locations", pages.index, methods=["GET"]),
        Route("/locations/{id}/{action}", pages.act, methods=["POST"]),
    ]


class LocationPages:
    """The endpoints."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    async def index(self, request: Request) -> Response:
        """`GET /locations`."""
        return await self._index(request)

    async def _index(self, request: Request, error: MachineError | None = None, at: str = "") -> Response:
        author = author_of(request)
        service = AppService(self._cloud, author)
        organizations = await service.list_organizations()
        own = {one.id for one in organizations}

        def work(sql: Sql) -> list[FleetLocation]:
            return [one for one in locations(sql, author).values() if one.role is not Role.NOBODY]

        found = [await self._place(service, one, own) for one in await self._cloud.store.read(work)]
        return render(
            request,
            "locations.html",
            status_of(error) if error else 200,
            organizations=organizations,
            places=found,
            error=error,
            at=at,
        )

    async def _place(self, service: AppService, one: FleetLocation, own: set[str]) -> Place:
        home = one.organization_id in own and one.role is Role.OWNER
        access = await service.get_organizations_with_access_to_location(one.id)
        secrets = (await service.location_auth(one.id)).secrets if home else ()
        return Place(one.id, one.path, access[0].name, home, access[1:], secrets)

    async def act(self, request: Request) -> Response:
        """`POST /locations/<id>/share|unshare|add-secret|delete-secret`, fields `organization` or `secret`."""
        form, subject, action = await fields(request), request.path_params["id"], request.path_params["action"]
        service = AppService(self._cloud, author_of(request))
        try:
            if action == "share":
                await service.share_location(subject, text_of(form, "organization"))
            elif action == "unshare":
                await service.unshare_location(subject, text_of(form, "organization"))
            elif action == "add-secret":
                made = (await service.create_location_secret(subject)).secret
                return render(request, "location_secret.html", secret=made)
            elif action == "delete-secret":
                await service.delete_location_secret(subject, text_of(form, "secret"))
            else:
                raise MachineError(f"a location cannot be {action[:40]!r}", kind=ErrorKind.NOT_FOUND)
        except MachineError as error:
            return await self._index(request, error, subject)
        return see(f"/locations#location-{subject}")
