"""`/connectivity/PART`: the proof for a device that this cloud answers. See rpc.access.proof."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from cloud.domain.permissions.rules import AccessRule, public
from cloud.services.common.base import Cloud
from rpc.access import proof

RULES: Final[Mapping[str, AccessRule]] = {
    "GET /connectivity/{part}": public("proves that this cloud answers, the same for parts that do not exist"),
}


def routes(cloud: Cloud) -> list[Route]:
    """Return the route."""

    async def connectivity(request: Request) -> Response:
        part, nonce = request.path_params["part"], request.query_params.get(proof.NONCE, "")
        if not proof.is_question(part, nonce):
            return PlainTextResponse(f"{proof.NONCE} must be 32 to 64 lower-case hexadecimal digits\n", 400)
        answer = proof.answer(cloud.links.proof_key(part), nonce, int(cloud.clock().timestamp()))
        return JSONResponse(answer, headers={"cache-control": "no-store"})

    return [Route(proof.PATH, connectivity)]
