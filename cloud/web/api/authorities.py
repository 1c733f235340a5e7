"""`/ca.pem`: authorities that clients of this cloud must trust; with a key, also those of the machines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from cloud.domain.permissions.rules import AccessRule, public
from cloud.services.common.base import Cloud
from cloud.services.organizations.authorities import AuthorityService
from cloud.web.common.site import author_of

PATH: Final = "/ca.pem"
NOTHING: Final = "this cloud has no certificate authority of its own: trust the authority that issued its certificate"


RULES: Final[Mapping[str, AccessRule]] = {
    "GET /ca.pem": public("certificates of authorities; with a key those of the caller's organization too"),
}


def routes(cloud: Cloud) -> list[Route]:
    """Return the route."""

    async def authorities(request: Request) -> Response:
        certificates = await AuthorityService(cloud, author_of(request)).list_authorities()
        if not certificates:
            return PlainTextResponse(f"{NOTHING}\n", 404)
        headers = {"content-disposition": 'attachment; filename="machine-cloud-ca.pem"'}
        return Response(certificates, media_type="application/x-pem-file", headers=headers)

    return [Route(PATH, authorities)]
