"""Downloads of the registry's archives: `GET /packages/<id>`, with a token or through a signed link."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from cloud.domain.permissions.rules import AccessRule, public
from cloud.domain.registry.items import MODULE
from cloud.services.common.base import Cloud
from cloud.services.registry.archives import archive
from cloud.web.api.ranges import served
from cloud.web.common.site import author_of
from rpc.access import identity_of
from schema import ErrorKind, MachineError

RULES: Final[Mapping[str, AccessRule]] = {
    "GET /packages/{id}": public("with a signed link; otherwise callers that may read the package"),
}


def routes(cloud: Cloud) -> list[Route]:
    """Return the route, which the guard also opens for requests without a token."""

    async def download(request: Request) -> Response:
        subject, author = request.path_params["id"], author_of(request)
        linked = "signature" in request.query_params
        if linked:
            cloud.links.check(request.url.path, request.query_params, cloud.clock())
        elif identity_of(request.scope) is None:
            raise MachineError(
                "this needs a key or a signed link", kind=ErrorKind.UNAUTHENTICATED, remedy="ask for a link"
            )

        item, file = await archive(cloud, author, subject, linked=linked)
        ending = ".tar.gz" if item.type == MODULE else ""
        return served(
            request,
            lambda start: cloud.blobs.read(file.blob, start),
            file.size,
            file.digest,
            f"{item.name}-{file.version}{ending}",
            "application/gzip" if ending else "application/octet-stream",
        )

    return [Route("/packages/{id}", download)]
