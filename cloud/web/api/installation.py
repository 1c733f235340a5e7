"""The installation of machines from the cloud.

GET /install.sh                                         the installer, a script that contains no secrets; public
GET /api/json1/config?client=true&id=PART               the credentials file of a part; a published path
POST /machine/v1/install?nonce=RANDOM                   the same with a code of the page, by HTTP basic authentication;
                                                        the code is void then; the nonce allows to repeat a lost answer
GET /machine/v1/installer?part=PART&platform=PLATFORM   version, hash and link of machine-agent, a line for each

The last two are read with id and key of an API key, or the second with those of the part: by HTTP basic authentication,
or in the headers `key_id` and `key`, as published. A proxy may remove headers with underscores, so the installer uses
the former.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path
from typing import Final

import trio
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from cloud.domain.permissions.access import ObjectKind
from cloud.domain.permissions.rules import AccessRule, home_owner, machine, public
from cloud.services.agents.installation import InstallationService
from cloud.services.common.base import Cloud
from cloud.values.author import Author
from cloud.web.common.site import author_of
from cloud.web.views.setup import address_of, credentials_of
from rpc.access import ADDRESS_FAILURES, API_KEY, PART_SECRET, Attempts
from schema import ErrorKind, MachineError

SCRIPT: Final = Path(__file__).with_name("install.sh")
CONFIG: Final = "/api/json1/config"
INSTALLER: Final = "/machine/v1/installer"
REDEEM: Final = "/machine/v1/install"
KEYED: Final[Mapping[str, Collection[str]]] = {CONFIG: (API_KEY,), INSTALLER: (API_KEY, PART_SECRET)}
"""Types of the credentials with which these paths can be read without a token."""

_NONCE: Final = re.compile(r"[0-9a-f]{32}")
_PLACE: Final = re.compile(r"@[A-Z]+@")


RULES: Final[Mapping[str, AccessRule]] = {
    "GET /install.sh": public("the installer, which contains no secrets"),
    "POST /machine/v1/install": public("the code is the credential; it is void after its use"),
    "GET /api/json1/config": home_owner(ObjectKind.PART, "id"),
    "GET /machine/v1/installer": machine("part"),
}


def routes(cloud: Cloud) -> list[Route]:
    """Return the routes."""
    attempts = Attempts(failures=ADDRESS_FAILURES)

    async def script(request: Request) -> Response:
        values = {"@CLOUD@": address_of(request), "@TIME@": str(int(cloud.clock().timestamp()))}
        return PlainTextResponse(_PLACE.sub(lambda match: values[match[0]], _template()))

    async def config(request: Request) -> Response:
        service = InstallationService(cloud, author_of(request))
        credentials = await service.install_part(request.query_params.get("id", ""))
        return JSONResponse(credentials_of(cloud, request, credentials.id, credentials.secret))

    async def redeem(request: Request) -> Response:
        peer, now = request.client.host if request.client else "", trio.current_time()
        if wait := attempts.wait(peer, now):
            raise MachineError(
                "too many lines that are not valid came from this address",
                kind=ErrorKind.EXHAUSTED,
                remedy=f"try again in {wait:.0f} s",
            )
        subject, secret = _basic(request.headers.get("authorization", ""))
        nonce = request.query_params.get("nonce", "")
        if not _NONCE.fullmatch(nonce):
            raise MachineError("the nonce is not valid: expected 32 hexadecimal digits", kind=ErrorKind.INVALID)
        service = InstallationService(cloud, Author("", ""))
        try:
            credentials = await service.redeem_install_code(subject, secret, nonce)
        except MachineError as error:
            if error.kind is ErrorKind.UNAUTHENTICATED:
                attempts.failed(peer, now)
            raise
        content = credentials_of(cloud, request, credentials.id, credentials.secret)
        return JSONResponse(content, headers={"cache-control": "no-store"})

    async def installer(request: Request) -> Response:
        query = request.query_params
        service = InstallationService(cloud, author_of(request))
        installer = await service.get_installer(query.get("part", ""), query.get("platform", ""))
        lines = {"version": installer.version, "sha256": installer.sha256, "path": installer.path}
        return PlainTextResponse("".join(f"{name} {value}\n" for name, value in lines.items()))

    return [
        Route("/install.sh", script),
        Route(CONFIG, config),
        Route(REDEEM, redeem, methods=["POST"]),
        Route(INSTALLER, installer),
    ]


def _basic(header: str) -> tuple[str, str]:
    """Return user and password of HTTP basic authentication; both empty if the header is not valid."""
    scheme, _, encoded = header.partition(" ")
    try:
        text = base64.b64decode(encoded, validate=True).decode() if scheme.lower() == "basic" else ""
    except ValueError:
        text = ""
    user, _, password = text[:500].partition(":")
    return user, password


@cache
def _template() -> str:
    return SCRIPT.read_text("ascii")
