"""HTTP and JSON API of triggers for the command line; there is no published RPC for them.

    GET  /api/v1/parts/PART/triggers                      triggers in force, problems, pauses, stopped targets
    POST /api/v1/parts/PART/triggers/NAME/explain         {"reading": {...}}: whether it would fire, and why
    POST /api/v1/parts/PART/triggers/NAME/test            {"value": TARGET, "reading": {...}}: send a test message
    POST /api/v1/parts/PART/triggers/NAME/start           resume sending to targets that reported that they are gone
    GET  /api/v1/parts/PART/deliveries                    ?trigger= &state= &before= &limit=
    GET  /api/v1/parts/PART/deliveries/ID                 a delivery with its body and all attempts
    POST /api/v1/parts/PART/deliveries/ID/replay          send it again, with the same id

Requests are authenticated as everywhere on this port: `authorization: Bearer TOKEN`. Errors are `{"error": ...}`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

import msgspec
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from cloud.documents.readable import check_readable
from cloud.domain.triggering.deliveries import PAGE, Attempt, Delivery
from cloud.services.common.base import Cloud
from cloud.services.triggers import TriggerService
from cloud.web.common.site import author_of, status_of
from schema.errors import ErrorKind, MachineError

MAX_BODY: Final = 1 << 20  # bytes of a request


def routes(cloud: Cloud) -> list[Route]:
    """Return the routes of this API."""

    def service(request: Request) -> tuple[TriggerService, Mapping[str, str]]:
        return TriggerService(cloud, author_of(request)), request.path_params

    async def triggers(request: Request) -> Response:
        api, names = service(request)
        return _json(await api.list_triggers(names["part"]))

    async def explain(request: Request) -> Response:
        api, names = service(request)
        body = await _body(request)
        return _json(await api.explain_trigger(names["part"], names["name"], _reading(body)))

    async def test(request: Request) -> Response:
        api, names = service(request)
        body = await _body(request)
        sent = await api.send_test(names["part"], names["name"], str(body.get("value") or ""), _reading(body))
        return _json({"deliveries": sent})

    async def start(request: Request) -> Response:
        api, names = service(request)
        await api.start_trigger(names["part"], names["name"])
        return _json({})

    async def deliveries(request: Request) -> Response:
        api, names = service(request)
        query = request.query_params
        page = await api.list_deliveries(
            names["part"],
            trigger=query.get("trigger", ""),
            state=query.get("state", ""),
            before=_number(query.get("before")),
            limit=_number(query.get("limit")) or PAGE,
        )
        return _json({"deliveries": [summary_of(record) for record in page]})

    async def delivery(request: Request) -> Response:
        api, names = service(request)
        record, attempts = await api.get_delivery(names["part"], names["id"])
        return _json(
            {
                **summary_of(record),
                "headers": dict(record.headers),
                "body": record.body.decode("utf-8", "replace"),
                "tried": [_attempt(attempt) for attempt in attempts],
            }
        )

    async def replay(request: Request) -> Response:
        api, names = service(request)
        await api.replay_delivery(names["part"], names["id"])
        return _json({})

    part = "/api/v1/parts/{part}"
    return [
        Route(f"{part}/triggers", _refusing(triggers)),
        Route(f"{part}/triggers/{{name:path}}/explain", _refusing(explain), methods=["POST"]),
        Route(f"{part}/triggers/{{name:path}}/test", _refusing(test), methods=["POST"]),
        Route(f"{part}/triggers/{{name:path}}/start", _refusing(start), methods=["POST"]),
        Route(f"{part}/deliveries", _refusing(deliveries)),
        Route(f"{part}/deliveries/{{id}}", _refusing(delivery)),
        Route(f"{part}/deliveries/{{id}}/replay", _refusing(replay), methods=["POST"]),
    ]


def path_of(part: str, *names: str) -> str:
    """Return a path of this API."""
    return "/".join(("/api/v1/parts", *(quote(segment, safe="") for segment in (part, *names))))


def summary_of(delivery: Delivery) -> dict[str, Any]:
    """Return a delivery for a list."""
    return {
        "id": delivery.id,
        "number": delivery.number,
        "trigger": delivery.trigger,
        "event": delivery.event,
        "type": delivery.type,
        "target": delivery.target,
        "state": delivery.state.value,
        "attempts": delivery.attempts,
        "created": delivery.created,
        "next": delivery.due if delivery.state.value == "waiting" else None,
        "test": delivery.test,
        **delivery.about,
    }


def _attempt(attempt: Attempt) -> dict[str, Any]:
    return {
        "attempt": attempt.number,
        "started": attempt.started,
        "seconds": attempt.duration.total_seconds(),
        "status": attempt.status,
        "error": attempt.error,
    }


def _refusing(endpoint: Any) -> Any:
    async def call(request: Request) -> Response:
        try:
            answer: Response = await endpoint(request)
        except MachineError as error:
            return JSONResponse({"error": str(error)}, status_of(error))
        return answer

    return call


def _json(value: Any) -> Response:
    return Response(msgspec.json.encode(value), media_type="application/json")


async def _body(request: Request) -> dict[str, Any]:
    """Return the JSON object of a request; empty for an empty body. INVALID if it is too large or not an object."""
    received = bytearray()
    async for piece in request.stream():
        received += piece
        if len(received) > MAX_BODY:
            raise _invalid(f"the request has more than {MAX_BODY} bytes")
    try:
        body = json.loads(received or b"{}")
    except (ValueError, RecursionError):
        raise _invalid("the request is not JSON") from None
    if not isinstance(body, dict):
        raise _invalid("the request is not a JSON object")
    return body


def _reading(body: Mapping[str, Any]) -> Mapping[str, Any] | None:
    reading = body.get("reading")
    if reading is None:
        return None
    if not isinstance(reading, Mapping):
        raise _invalid("`reading` is not an object")
    check_readable(reading)
    return reading


def _number(text: str | None) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise _invalid(f"{text[:40]!r} is not a number")
    return int(text)


def _invalid(what: str) -> MachineError:
    return MachineError(what, kind=ErrorKind.INVALID, remedy='send for example {"reading": {"temperature": 31.5}}')
