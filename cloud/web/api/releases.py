"""Signed releases: metadata and files for machines, with `Range`, and uploads of files by commands.

GET /machine/v1/parts/PART/releases/metadata/NAME    timestamp.json, 3.snapshot.json, 3.targets.json, 2.root.json
GET /machine/v1/parts/PART/releases/targets/PATH     the file of a target, as the machine or an owner
GET /releases/files/ID                               the same through a signed link, without a key
POST /api/v1/release-files/ORGANIZATION/SHA256       a new file; {"size": ...}
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from typing import Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from cloud.domain.permissions.access import ObjectKind
from cloud.domain.permissions.rules import AccessRule, machine, owner, public
from cloud.domain.releases.files import ReleaseFile
from cloud.services.common.base import Cloud
from cloud.services.releases.downloads import linked_file, metadata_for, target_for
from cloud.services.releases.releases import ReleaseService
from cloud.web.api.ranges import served
from cloud.web.common.site import author_of
from schema import ErrorKind, MachineError
from uplink.releases import METADATA_PATH, RELEASE_FILES_PATH, TARGETS_PATH

RULES: Final[Mapping[str, AccessRule]] = {
    "GET /releases/files/{id}": public("with a signed link"),
    "GET /machine/v1/parts/{part}/releases/metadata/{name}": machine("part"),
    "GET /machine/v1/parts/{part}/releases/targets/{path:path}": machine("part"),
    "POST /api/v1/release-files/{organization}/{sha256}": owner(ObjectKind.ORGANIZATION, "organization"),
}


def routes(cloud: Cloud) -> list[Route]:
    """Return the routes. The guard opens the one of links for requests without a token."""

    async def metadata(request: Request) -> Response:
        document = await metadata_for(cloud, request.path_params["part"], request.path_params["name"])
        headers = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
        return Response(document.content, media_type="application/json", headers=headers)

    async def target(request: Request) -> Response:
        file = await target_for(cloud, request.path_params["part"], request.path_params["path"])
        return answer(request, file)

    async def link(request: Request) -> Response:
        if "signature" not in request.query_params:
            raise MachineError(
                "this needs a signed link", kind=ErrorKind.UNAUTHENTICATED, remedy="ask the cloud for a new link"
            )
        cloud.links.check(request.url.path, request.query_params, cloud.clock())
        return answer(request, await linked_file(cloud, request.path_params["id"]))

    async def upload(request: Request) -> Response:
        service, names = ReleaseService(cloud, author_of(request)), request.path_params
        size = await service.upload_release_file(names["organization"], names["sha256"], _pieces(request))
        return JSONResponse({"size": size})

    def answer(request: Request, file: ReleaseFile) -> Response:
        return served(
            request,
            lambda start: cloud.blobs.read(file.blob, start),
            file.size,
            file.digest,
            file.digest,
            "application/octet-stream",
        )

    return [
        Route(METADATA_PATH, metadata),
        Route(TARGETS_PATH.replace("{path}", "{path:path}"), target),
        Route("/releases/files/{id}", link),
        Route(f"{RELEASE_FILES_PATH}{{organization}}/{{sha256}}", upload, methods=["POST"]),
    ]


async def _pieces(request: Request) -> AsyncIterator[bytes]:
    async with aclosing(request.stream()) as pieces:
        async for piece in pieces:
            if piece:
                yield piece
