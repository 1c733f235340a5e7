"""HTTP and JSON API of signed releases and rollouts for the command line; there is no published RPC for them.

    GET  ORGANIZATION/releases                              metadata in force, targets, rollouts
    POST ORGANIZATION/releases/keys                         new keys of the cloud for snapshot and timestamp
    GET  ORGANIZATION/releases/metadata/NAME                a metadata file, such as targets.json or 2.root.json
    POST ORGANIZATION/releases/metadata                     {"root_json": "...", "targets_json": "..."}: publish
    GET  ORGANIZATION/releases/files/SHA256                 whether the file is stored
    GET  ORGANIZATION/releases/rollouts/PROGRAM/VERSION     a rollout with its machines
    POST ORGANIZATION/releases/rollouts/PROGRAM/VERSION     {"percent": 10, ...}: start or widen
    POST ORGANIZATION/releases/rollouts/PROGRAM/VERSION/state   {"state": "paused"}
    POST /api/v1/release-files/ORGANIZATION/SHA256          the file, which may be large

ORGANIZATION stands for /api/v1/organizations/ID. Requests are authenticated as everywhere on this port:
`authorization: Bearer TOKEN`. Errors are `{"error": ...}`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from cloud.services.common.base import Cloud
from cloud.services.releases.releases import ReleaseService
from cloud.web.api.json_bodies import json_body, json_reply, refusing
from cloud.web.common.site import author_of
from uplink.releases import MAX_METADATA, RELEASE_FILES_PATH

MAX_PUBLICATION: Final = 5 * MAX_METADATA  # bytes: two files in JSON strings, in which quotes are escaped


class _Publication(msgspec.Struct, forbid_unknown_fields=True):
    root_json: str = ""
    targets_json: str = ""


class _Rollout(msgspec.Struct, forbid_unknown_fields=True):
    percent: float = 100.0
    tags: list[str] = []
    location_ids: list[str] = []
    stop_after: int | None = None


class _State(msgspec.Struct, forbid_unknown_fields=True):
    state: str


def routes(cloud: Cloud) -> list[Route]:
    """Return the routes of this API."""

    def service(request: Request) -> tuple[ReleaseService, str]:
        return ReleaseService(cloud, author_of(request)), request.path_params["organization"]

    def version_of(request: Request) -> tuple[str, str]:
        return request.path_params["program"], request.path_params["version"]

    async def releases(request: Request) -> Response:
        api, owner = service(request)
        return json_reply(await api.list_releases(owner))

    async def keys(request: Request) -> Response:
        api, owner = service(request)
        return json_reply(await api.create_release_keys(owner))

    async def metadata(request: Request) -> Response:
        api, owner = service(request)
        content = await api.get_release_metadata(owner, request.path_params["name"])
        return Response(content, media_type="application/json")

    async def publish(request: Request) -> Response:
        api, owner = service(request)
        body = await json_body(request, _Publication, MAX_PUBLICATION)
        return json_reply(await api.update_release_metadata(owner, body.root_json.encode(), body.targets_json.encode()))

    async def stored(request: Request) -> Response:
        api, owner = service(request)
        return json_reply({"stored": await api.has_release_file(owner, request.path_params["sha256"])})

    async def upload(request: Request) -> Response:
        api, owner = service(request)
        size = await api.upload_release_file(owner, request.path_params["sha256"], _pieces(request))
        return json_reply({"size": size})

    async def rollout(request: Request) -> Response:
        api, owner = service(request)
        return json_reply(await api.get_rollout(owner, *version_of(request)))

    async def start(request: Request) -> Response:
        api, owner = service(request)
        body = await json_body(request, _Rollout)
        return json_reply(
            await api.start_rollout(
                owner,
                *version_of(request),
                percent=body.percent,
                tags=body.tags,
                location_ids=body.location_ids,
                stop_after=body.stop_after,
            )
        )

    async def set_state(request: Request) -> Response:
        api, owner = service(request)
        body = await json_body(request, _State)
        return json_reply(await api.set_rollout_state(owner, *version_of(request), body.state))

    root = "/api/v1/organizations/{organization}/releases"
    one_rollout = f"{root}/rollouts/{{program}}/{{version}}"
    return [
        Route(root, refusing(releases)),
        Route(f"{root}/keys", refusing(keys), methods=["POST"]),
        Route(f"{root}/metadata", refusing(publish), methods=["POST"]),
        Route(f"{root}/metadata/{{name}}", refusing(metadata)),
        Route(f"{root}/files/{{sha256}}", refusing(stored)),
        Route(one_rollout, refusing(rollout)),
        Route(one_rollout, refusing(start), methods=["POST"]),
        Route(f"{one_rollout}/state", refusing(set_state), methods=["POST"]),
        Route(f"{RELEASE_FILES_PATH}{{organization}}/{{sha256}}", refusing(upload), methods=["POST"]),
    ]


async def _pieces(request: Request) -> AsyncIterator[bytes]:
    async with aclosing(request.stream()) as pieces:
        async for piece in pieces:
            if piece:
                yield piece
