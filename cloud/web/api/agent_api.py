"""Reports of agents over HTTP, as JSON.

    POST /machine/v1/parts/PART/agent    a report of the part's own agent; 204
    GET  /api/v1/parts/PART/agent        the newest report, when it was received, and the outcomes of updates

Requests are authenticated as everywhere on this port: `authorization: Bearer TOKEN`. Errors are `{"error": ...}`.
"""

from __future__ import annotations

from contextlib import aclosing
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from cloud.services.common.base import Cloud
from cloud.services.machines.agent_reports import AgentReportService
from cloud.values.limits import AGENT_REPORT
from cloud.web.common.site import author_of, status_of
from schema.errors import MachineError
from uplink.releases import REPORT_PATH

STATE_PATH: Final = "/api/v1/parts/{part}/agent"


def routes(cloud: Cloud) -> list[Route]:
    """Return the routes of this API."""

    async def store(request: Request) -> Response:
        try:
            report = await _body(request)
            await AgentReportService(cloud, author_of(request)).report_agent(request.path_params["part"], report)
        except MachineError as error:
            return _refusal(error)
        return Response(status_code=204)

    async def state(request: Request) -> Response:
        try:
            state = await AgentReportService(cloud, author_of(request)).get_agent_state(request.path_params["part"])
        except MachineError as error:
            return _refusal(error)
        report = msgspec.Raw(state.report_json.encode() or b"null")
        answer = {"report": report, "received": state.received, "outcomes": state.outcomes}
        return Response(msgspec.json.encode(answer), media_type="application/json")

    return [Route(REPORT_PATH, store, methods=["POST"]), Route(STATE_PATH, state)]


async def _body(request: Request) -> bytes:
    """Return the body of a request; reading ends when it exceeds the limit (INVALID)."""
    received = bytearray()
    async with aclosing(request.stream()) as pieces:
        async for piece in pieces:
            received += piece
            AGENT_REPORT.check(len(received), "the report")
    return bytes(received)


def _refusal(error: MachineError) -> Response:
    return JSONResponse({"error": str(error)}, status_of(error))
