"""HTTP requests to the cloud, for what is not a call: large files, and certificates."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Mapping
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
    429: ErrorKind.EXHAUSTED,
    503: ErrorKind.UNAVAILABLE,
}


async def send_file(path: str, pieces: AsyncIterator[bytes], size: int) -> Any:
    """Send a file of `size` bytes with POST to the cloud that the user has signed in to, and return the JSON answer.

    It may take any time, as long as the cloud accepts data. Raises Unreachable, or MachineError with the reason of the
    cloud.
    """
    headers = {"Content-Type": "application/octet-stream", "Content-Length": str(size)}
    return _read(*await _exchange("POST", path, headers, pieces))


async def get(path: str, *, signed_in: bool = True) -> tuple[int, bytes]:
    """Send a GET request, without the key unless `signed_in`, and return status and body of any answer.

    Raises Unreachable, or MachineError if the key is refused.
    """
    answer = None
    with trio.move_on_after(ANSWER_LIMIT):
        answer = await _exchange("GET", path, {}, None, signed_in)
    if answer is None:
        raise Unreachable(unreachable(login.load(os.environ).connection(), f"no answer within {ANSWER_LIMIT:g} s"))
    return answer


async def _exchange(
    method: str,
    path: str,
    more: Mapping[str, str],
    content: bytes | AsyncIterator[bytes] | None,
    signed_in: bool = True,
) -> tuple[int, bytes]:
    """Sign in, send a request, and return status and body of any answer."""
    connection = login.load(os.environ).connection()
    tls = tls_context(connection)
    target = Target.parse(connection.address)
    credentials = ApiKey(connection.api_key_id, connection.api_key)
    headers = {"Host": target.authority, "Accept": "application/json", **more}
    url = httpcore.URL(
        scheme="https" if tls else "http", host=target.host, port=target.port or None, target=path.encode()
    )
    patience = {"timeout": dict.fromkeys(("connect", "read", "write", "pool"), ANSWER_LIMIT)}
    try:
        if signed_in:
            async with Channel(connection.address, tls=tls, credentials=credentials) as channel:
                headers |= dict(await credentials.headers(channel))
        tls = tls_context(connection)  # a new one, because the channel has negotiated HTTP/2 with the first one
        async with httpcore.AsyncConnectionPool(tls, uds=target.path or None) as pool:
            answer = await pool.request(
                method, url, headers=list(headers.items()), content=content, extensions=dict(patience)
            )
        return answer.status, answer.content
    except GRPCError as error:
        raise to_machine_error(error) from None
    except httpcore.TimeoutException:
        raise Unreachable(unreachable(connection, f"no answer within {ANSWER_LIMIT:g} s")) from None
    except (httpcore.NetworkError, httpcore.ProtocolError, OSError) as error:
        raise Unreachable(unreachable(connection, str(error))) from None


def _read(status: int, content: bytes) -> Any:
    try:
        reply = json.loads(content)
    except (ValueError, RecursionError):
        text = content[:200].decode(errors="replace").strip()
        raise MachineError(f"the cloud answered with HTTP status {status}: {text}", kind=ErrorKind.INTERNAL) from None
    if status >= 300:
        raise MachineError(str(reply.get("error", status)), kind=_KINDS.get(status, ErrorKind.INTERNAL))
    return reply
