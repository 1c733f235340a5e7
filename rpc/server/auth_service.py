"""Serve the AuthService RPCs, which exchange credentials for a token."""

from __future__ import annotations

from typing import Any, Protocol

from grpclib.const import Cardinality, Handler, Status
from grpclib.exceptions import GRPCError

from rpc.access.credential_types import AUTHENTICATE
from rpc.call import Router
from rpc.carrier import Peer


class SignIn(Protocol):
    """Part of an Authenticator."""

    async def sign_in(self, entity: str, type: str, payload: str, *, peer: Peer) -> str:  # noqa: A002 - wire name
        """Return a token for valid credentials."""
        ...


class AuthRouter:
    """Router that handles Authenticate and delegates every other method to `inner`."""

    def __init__(self, inner: Router, authenticator: SignIn) -> None:
        self._inner = inner
        self._authenticator = authenticator
        self._handler: Handler | None = None

    def get(self, path: str, /) -> Handler | None:
        """Return the handler of `/package.Service/Method`, or None.

        The message classes are imported on the first Authenticate call.
        """
        if path != AUTHENTICATE:
            return self._inner.get(path)
        if self._handler is None:
            from rpc.api import messages

            auth = messages.auth()
            self._handler = Handler(
                self._authenticate, Cardinality.UNARY_UNARY, auth.AuthenticateRequest, auth.AuthenticateResponse
            )
        return self._handler

    async def _authenticate(self, stream: Any) -> None:
        request = await stream.recv_message()
        if request is None:
            raise GRPCError(Status.INVALID_ARGUMENT, "the request is missing")
        credentials = request.credentials
        token = await self._authenticator.sign_in(
            request.entity, credentials.type, credentials.payload, peer=stream.peer
        )
        assert self._handler is not None
        await stream.send_message(self._handler.reply_type(access_token=token))
