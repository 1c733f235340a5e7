"""`/locations`: access to locations, and their secrets, for owners."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from cloud.domain.fleet.fleet import FleetLocation
from cloud.domain.permissions.access import Role
from cloud.domain.permissions.rules import OF_FORM, ROLE_ANYWHERE, AccessRule
from cloud.services.app import AppService
from cloud.services.common import messages as m
from cloud.services.common.base import Cloud
from cloud.services.machines.fleet import FleetService
from cloud.web.common.site import author_of, fields, redirect, render, status_of, text_of
from schema import ErrorKind, MachineError


@dataclass(frozen=True, slots=True)
class ShownLocation:
    """A location. `secrets` are present only if the caller manages it."""

    id: str
    path: str
    belongs: str  # name of the organization that it belongs to
    home: bool  # whether it belongs to the caller's organization and the caller is an owner there
    guests: Sequence[m.OrganizationIdentity]
    secrets: Sequence[m.SharedSecret]


RULES: Final[Mapping[str, AccessRule]] = {
    "GET /locations": ROLE_ANYWHERE,
    "POST /locations/{id}/{action}": OF_FORM,
}


def routes(cloud: Cloud) -> list[BaseRoute]:
    """Return the routes of the list and its forms."""
    pages = LocationPages(cloud)
    return [
        Route("/locations", pages.index, methods=["GET"]),
        Route("/locations/{id}/{action}", pages.act, methods=["POST"]),
    ]


class LocationPages:
    """Endpoints of locations."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    async def index(self, request: Request) -> Response:
        """`GET /locations`."""
        return await self._index(request)

    async def _index(self, request: Request, error: MachineError | None = None, at: str = "") -> Response:
        author = author_of(request)
        service = AppService(self._cloud, author)
        organizations = await service.list_organizations()
        own_organizations = {organization.id for organization in organizations}

        locations = await FleetService(self._cloud, author).locations()
        places = [
            await self._place(service, location, own_organizations)
            for location in locations
            if location.role is not Role.NONE
        ]
        return render(
            request,
            "locations.html",
            status_of(error) if error else 200,
            organizations=organizations,
            places=places,
            error=error,
            at=at,
        )

    async def _place(self, service: AppService, location: FleetLocation, own_organizations: set[str]) -> ShownLocation:
        home = location.organization_id in own_organizations and location.role is Role.OWNER
        access = await service.get_organizations_with_access_to_location(location.id)
        secrets = (await service.location_auth(location.id)).secrets if home else ()
        return ShownLocation(location.id, location.path, access[0].name, home, access[1:], secrets)

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
                secret = (await service.create_location_secret(subject)).secret
                return render(request, "location_secret.html", secret=secret)
            elif action == "delete-secret":
                await service.delete_location_secret(subject, text_of(form, "secret"))
            else:
                raise MachineError(f"there is no action {action[:40]!r} for locations", kind=ErrorKind.NOT_FOUND)
        except MachineError as error:
            return await self._index(request, error, subject)
        return redirect(f"/locations#location-{subject}")
