"""Requests and replies in JSON below /api/, for the command line."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any, Final, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from cloud.web.common.site import status_of
from schema.errors import ErrorKind, MachineError

T = TypeVar("T")
Endpoint = Callable[[Request], Awaitable[Response]]

MAX_BODY: Final = 1 << 20  # bytes of a request


def refusing(endpoint: Endpoint) -> Endpoint:
    """Return the endpoint with `{"error": ...}` as its reply to a MachineError."""

    async def call(request: Request) -> Response:
        try:
            return await endpoint(request)
        except MachineError as error:
            return JSONResponse({"error": str(error)}, status_of(error))

    return call


def json_reply(value: Any) -> Response:
    """Return a value as JSON."""
    return Response(msgspec.json.encode(value), media_type="application/json")


async def json_body(request: Request, kind: type[T], limit: int = MAX_BODY) -> T:
    """Return the JSON of a request, `{}` if it is empty. INVALID if it is larger than `limit` or not valid."""
    received = bytearray()
    async with aclosing(request.stream()) as pieces:
        async for piece in pieces:
            received += piece
            if len(received) > limit:
                raise _invalid(f"the request has more than {limit} bytes")
    try:
        return msgspec.json.decode(received or b"{}", type=kind)
    except (msgspec.ValidationError, RecursionError) as error:
        raise _invalid(f"the request is not valid: {error}") from None
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise _invalid("the request is not JSON") from None


def _invalid(text: str) -> MachineError:
    return MachineError(text, kind=ErrorKind.INVALID)
