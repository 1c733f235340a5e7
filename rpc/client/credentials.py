"""Client credentials, exchanged once for a token that is sent with every call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import trio

from rpc.access.credential_types import API_KEY
from rpc.client.sign_in import authenticate

if TYPE_CHECKING:
    from rpc.client.channel import Channel


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
        """Return header fields for a call, such as authorization.

        Raises the GRPCError of a failed Authenticate call.
        """
        if self._headers is None:
            async with self._lock:
                if self._headers is None:
                    self._headers = await authenticate(channel, self._entity, self._payload, self._type)
        return self._headers

    def rejected(self) -> None:
        """Discard the result of `headers`, because a call with it was answered UNAUTHENTICATED."""
        self._headers = None

    def __repr__(self) -> str:
        return f"ApiKey({self._entity!r}, type={self._type!r})"
