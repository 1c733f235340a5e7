"""HTTP requests to a machine or a cloud, with the credentials of calls, for what is not a call."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Final

import httpcore
import trio
from grpclib.exceptions import GRPCError

from command.connection import Connection, Unreachable, target_of, tls_context, unreachable
from rpc import to_machine_error
from rpc.client import ApiKey, Channel

ANSWER_LIMIT: Final = 60.0  # seconds

_NO_HEADERS: Final[Mapping[str, str]] = {}


async def short_exchange(
    connection: Connection, method: str, path: str, *, signed_in: bool = True
) -> tuple[int, bytes]:
    """Send a request without content, and return status and body of any answer, which must come in ANSWER_LIMIT.

    Raises the errors of `exchange`.
    """
    answer = None
    with trio.move_on_after(ANSWER_LIMIT):
        answer = await exchange(connection, method, path, signed_in=signed_in)
    if answer is None:
        raise Unreachable(unreachable(connection, f"no answer within {ANSWER_LIMIT:g} s"))
    return answer


async def exchange(
    connection: Connection,
    method: str,
    path: str,
    more: Mapping[str, str] = _NO_HEADERS,
    content: bytes | AsyncIterator[bytes] | None = None,
    signed_in: bool = True,
) -> tuple[int, bytes]:
    """Log in, send a request with the further headers `more`, and return status and body of any answer.

    It may take any time, as long as the server sends or accepts data. Raises Unreachable, or MachineError if the key is
    refused.
    """
    tls = tls_context(connection)
    target = target_of(connection)
    credentials = ApiKey(connection.api_key_id, connection.api_key)
    headers = {"Host": target.authority, "Accept": "application/json", **more}
    url = httpcore.URL(
        scheme="https" if tls else "http", host=target.host, port=target.port or None, target=path.encode()
    )
    patience = {"timeout": dict.fromkeys(("connect", "read", "write", "pool"), ANSWER_LIMIT)}
    try:
        if signed_in and connection.api_key:
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
