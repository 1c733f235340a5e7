"""What the cloud answers in JSON over HTTP, where the published API has no call; with the key of all commands."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any, Final

import httpcore
import trio
from grpclib.exceptions import GRPCError

from rpc.client import Channel, Target
from rpc.credentials import ApiKey
from rpc.status import to_machine_error
from runtime.operator import cloud_login
from runtime.operator.connection import Unreachable, tls_context, unreachable
from schema.errors import ErrorKind, MachineError

ANSWER_LIMIT: Final = 60.0  # seconds

_KINDS: Final = {
    400: ErrorKind.INVALID,
    401: ErrorKind.UNAUTHENTICATED,
    403: ErrorKind.PERMISSION,
    404: ErrorKind.NOT_FOUND,
    409: ErrorKind.PRECONDITION,
}


async def asked(method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
    """The answer, JSON, of the cloud that the user has signed in to.

    Raises Unreachable, or MachineError with what the cloud says against it.
    """
    return _read(*await answered(method, path, body))


async def answered(method: str, path: str, body: Mapping[str, Any] | None = None) -> tuple[int, bytes]:
    """Status and body of an answer, whatever it is. Raises Unreachable, or MachineError if the key is refused."""
    connection = cloud_login.load(os.environ).connection()
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
            tls = tls_context(connection)  # HTTP/2 was agreed on with the other
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
        found = json.loads(content)
    except (ValueError, RecursionError):
        text = content[:200].decode(errors="replace").strip()
        raise MachineError(f"the cloud answers {status}: {text}", kind=ErrorKind.INTERNAL) from None
    if status >= 300:
        raise MachineError(str(found.get("error", status)), kind=_KINDS.get(status, ErrorKind.INTERNAL))
    return found
