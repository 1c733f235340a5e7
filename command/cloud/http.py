"""Client of the cloud's JSON API over HTTP, for requests that the published API lacks."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any, Final

import httpcore
import trio
from grpclib.exceptions import GRPCError

from command.cloud import login
from command.connection import Unreachable, tls_context, unreachable
from rpc.client.channel import Channel, Target
from rpc.client.credentials import ApiKey
from rpc.status import to_machine_error
from schema.errors import ErrorKind, MachineError

ANSWER_LIMIT: Final = 60.0  # seconds

_KINDS: Final = {
    400: ErrorKind.INVALID,
    401: ErrorKind.UNAUTHENTICATED,
    403: ErrorKind.PERMISSION,
    404: ErrorKind.NOT_FOUND,
    409: ErrorKind.PRECONDITION,
}


async def request_json(method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
    """Send a request to the cloud that the user has signed in to, and return the JSON answer.

    Raises Unreachable, or MachineError with the cloud's reason.
    """
    return _read(*await request(method, path, body))


async def request(method: str, path: str, body: Mapping[str, Any] | None = None) -> tuple[int, bytes]:
    """Send a request, and return status and body of any answer.

    Raises Unreachable, or MachineError if the key is refused.
    """
    connection = login.load(os.environ).connection()
    tls = tls_context(connection)
    target = Target.parse(connection.address)
    credentials = ApiKey(connection.api_key_id, connection.api_key)
    headers = {"Host": target.authority, "Accept": "application/json", "Content-Type": "application/json"}
    url = httpcore.URL(
        scheme="https" if tls else "http", host=target.host, port=target.port or None, target=path.encode()
    )
    content = json.dumps(body).encode() if body is not None else None
    with trio.move_on_after(ANSWER_LIMIT):
        try:
            async with Channel(connection.address, tls=tls, credentials=credentials) as channel:
                headers |= dict(await credentials.headers(channel))
            tls = tls_context(connection)  # a new one, because the channel has negotiated HTTP/2 with the first one
            async with httpcore.AsyncConnectionPool(tls, uds=target.path or None) as pool:
                answer = await pool.request(method, url, headers=list(headers.items()), content=content)
            return answer.status, answer.content
        except GRPCError as error:
            raise to_machine_error(error) from None
        except (httpcore.NetworkError, httpcore.ProtocolError, OSError) as error:
            raise Unreachable(unreachable(connection, str(error))) from None
    raise Unreachable(unreachable(connection, f"no answer within {ANSWER_LIMIT:g} s"))


def _read(status: int, content: bytes) -> Any:
    try:
        reply = json.loads(content)
    except (ValueError, RecursionError):
        text = content[:200].decode(errors="replace").strip()
        raise MachineError(f"the cloud answered with HTTP status {status}: {text}", kind=ErrorKind.INTERNAL) from None
    if status >= 300:
        raise MachineError(str(reply.get("error", status)), kind=_KINDS.get(status, ErrorKind.INTERNAL))
    return reply
