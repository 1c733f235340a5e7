"""The fields of the form of configurations and fragments, as data for the script of their pages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from cloud.domain.permissions.rules import ROLE_ANYWHERE, AccessRule
from cloud.editing.forms import encoded_schema
from cloud.services.common.base import Cloud
from cloud.services.configurations.editing import Editor
from cloud.web.common.site import author_of, offload

KEPT = "private, max-age=31536000, immutable"  # the address contains the version of the content


RULES: Final[Mapping[str, AccessRule]] = {
    "GET /configuration/schema": ROLE_ANYWHERE,
}


def routes(cloud: Cloud) -> list[BaseRoute]:
    """Return the route."""

    async def schema(request: Request) -> Response:
        """Send the fields of documents and of all built-in models: 80 KB, the same for every caller."""
        await Editor(cloud, author_of(request)).organizations()  # as on every page, the session must still be valid
        encoded = await offload(request, 1 << 20, encoded_schema)
        current = request.query_params.get("v") == encoded.version
        headers = {"cache-control": KEPT if current else "no-store"}
        return Response(encoded.data, media_type="application/json", headers=headers)

    return [Route("/configuration/schema", schema)]
