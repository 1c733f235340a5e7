"""Client credentials, exchanged once for a token that is sent with every call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

import trio
from grpclib.const import Cardinality, Status
from grpclib.exceptions import GRPCError

from rpc.access.auth import API_KEY, AUTHENTICATE

if TYPE_CHECKING:
    from rpc.client.channel import Channel

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


class ApiKey:
    """API key by id and value, or an entity and secret of another `type`, for one Channel.

    The first call authenticates; concurrent calls wait for it. A rejected token is discarded, so that the next call
    authenticates again. A server without AuthService is open; calls are then sent without a token.
    """

    def __init__(self, entity: str, payload: str, *, type: str = API_KEY) -> None:  # noqa: A002 - wire name
        self._entity = entity
        self._payload = payload
        self._type = type
        self._headers: tuple[tuple[str, str], ...] | None = None
        self._lock = trio.Lock()

    async def headers(self, channel: Channel) -> Sequence[tuple[str, str]]:
        """See `rpc.client.channel.Credentials.headers`. Raises the GRPCError of a failed Authenticate call."""
        if self._headers is None:
            async with self._lock:
                if self._headers is None:
                    self._headers = await authenticate(channel, self._entity, self._payload, self._type)
        return self._headers

    def rejected(self) -> None:
        """See `rpc.client.channel.Credentials.rejected`."""
        self._headers = None

    def __repr__(self) -> str:
        return f"ApiKey({self._entity!r}, type={self._type!r})"
