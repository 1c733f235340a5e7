"""The installation of machines from the cloud.

GET /install.sh                                         the installer, a script that contains no secrets; public
GET /api/json1/config?client=true&id=PART               the credentials file of a part; a published path
GET /machine/v1/installer?part=PART&platform=PLATFORM   version, hash and link of machine-agent, a line for each

The last two are read with id and key of an API key, or the second with those of the part: by HTTP basic authentication,
or in the headers `key_id` and `key`, as published. A proxy may remove headers with underscores, so the installer uses
the former.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from cloud.services.agents.installation import InstallationService
from cloud.services.common.base import Cloud
from cloud.web.common.site import author_of
from cloud.web.views.setup import address_of, credentials_of
from rpc.access import API_KEY, PART_SECRET

SCRIPT: Final = Path(__file__).with_name("install.sh")
CONFIG: Final = "/api/json1/config"
INSTALLER: Final = "/machine/v1/installer"
KEYED: Final[Mapping[str, Collection[str]]] = {CONFIG: (API_KEY,), INSTALLER: (API_KEY, PART_SECRET)}
"""Types of the credentials with which these paths can be read without a token."""

_PLACE: Final = re.compile(r"@[A-Z]+@")


def routes(cloud: Cloud) -> list[Route]:
    """Return the routes."""

    async def script(request: Request) -> Response:
        values = {"@CLOUD@": address_of(request), "@TIME@": str(int(cloud.clock().timestamp()))}
        return PlainTextResponse(_PLACE.sub(lambda match: values[match[0]], _template()))

    async def config(request: Request) -> Response:
        service = InstallationService(cloud, author_of(request))
        credentials = await service.install_part(request.query_params.get("id", ""))
        return JSONResponse(credentials_of(cloud, request, credentials.id, credentials.secret))

    async def installer(request: Request) -> Response:
        query = request.query_params
        service = InstallationService(cloud, author_of(request))
        installer = await service.get_installer(query.get("part", ""), query.get("platform", ""))
        lines = {"version": installer.version, "sha256": installer.sha256, "path": installer.path}
        return PlainTextResponse("".join(f"{name} {value}\n" for name, value in lines.items()))

    return [Route("/install.sh", script), Route(CONFIG, config), Route(INSTALLER, installer)]


@cache
def _template() -> str:
    return SCRIPT.read_text("ascii")
