"""The exchange of credentials for a token, over any channel. Loads no event loop."""

from __future__ import annotations

from typing import Any, Final, Protocol

from grpclib.const import Cardinality, Status
from grpclib.exceptions import GRPCError

from rpc.access.credential_types import AUTHENTICATE

_NONE: Final[tuple[tuple[str, str], ...]] = ()


class Authenticating(Protocol):
    """A channel whose calls may be made without credentials."""

    def request(
        self, name: str, cardinality: Cardinality, request_type: Any, reply_type: Any, *, credentials: bool = True
    ) -> Any:
        """Return a call; see `rpc.client.channel.Channel.request`."""
        ...


async def authenticate(
    channel: Authenticating,
    entity: str,
    payload: str,
    type: str,  # noqa: A002 - wire name
) -> tuple[tuple[str, str], ...]:
    """Exchange credentials for a token, and return the header fields of calls with it.

    Empty for a server without AuthService, which is open. Raises the GRPCError of a failed Authenticate call.
    """
    from rpc.api import messages

    auth = messages.auth()
    request = auth.AuthenticateRequest(entity=entity, credentials=auth.Credentials(type=type, payload=payload))
    call = channel.request(
        AUTHENTICATE, Cardinality.UNARY_UNARY, auth.AuthenticateRequest, auth.AuthenticateResponse, credentials=False
    )
    try:
        async with call as stream:
            await stream.send_message(request, end=True)
            reply = await stream.recv_message()
    except GRPCError as error:
        if error.status is Status.UNIMPLEMENTED:
            return _NONE
        raise
    if reply is None or not reply.access_token:
        raise GRPCError(Status.UNAUTHENTICATED, "the server returned no token")
    return (("authorization", f"Bearer {reply.access_token}"),)
