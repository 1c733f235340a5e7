"""Client of unary calls over gRPC-Web, on any HTTP client: for programs that do not run on Trio.

A call is one HTTP request, so it passes every proxy. `WebChannel` waits only in its `HttpClient`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Final, Protocol

from google.protobuf.message import DecodeError
from grpclib.const import Cardinality, Status
from grpclib.exceptions import GRPCError
from grpclib.metadata import decode_grpc_message

from rpc import metadata as codec
from rpc.access.auth import API_KEY
from rpc.client.credentials import authenticate
from rpc.http.grpc_web import Content, MalformedError, split_frames
from rpc.status import of_http

_HEADERS: Final = (
    ("content-type", f"{Content.WEB.value}+proto"),
    ("accept", f"{Content.WEB.value}+proto"),
    ("x-grpc-web", "1"),
)


class HttpClient(Protocol):
    """Sends HTTP requests to one server."""

    async def post(
        self, path: str, headers: Sequence[tuple[str, str]], body: bytes
    ) -> tuple[int, Mapping[str, str], bytes]:
        """Send a request; return the status, the header fields with names in lower case, and the whole body.

        Raises GRPCError (UNAVAILABLE) if there is no answer, and RESOURCE_EXHAUSTED for one that is too large.
        """
        ...


class WebChannel:
    """A channel for `ApiClient` whose calls are requests of `http`, which the caller owns.

    With a key, it authenticates with the first call, and again when a token was rejected. Streaming is UNIMPLEMENTED.
    """

    def __init__(self, http: HttpClient, key_id: str = "", key: str = "") -> None:
        self.http = http
        self._key_id = key_id
        self._key = key
        self._authorization: Sequence[tuple[str, str]] | None = None

    def __repr__(self) -> str:
        return f"WebChannel({self.http!r})"

    def request(
        self,
        name: str,
        cardinality: Cardinality,
        request_type: Any,
        reply_type: Any,
        *,
        metadata: codec.MetadataLike | None = None,
        credentials: bool = True,
    ) -> WebCall:
        """Return a call of the method `name`; see `rpc.client.channel.Channel.request`."""
        if cardinality is not Cardinality.UNARY_UNARY:
            raise GRPCError(Status.UNIMPLEMENTED, f"{name} is a stream, which this client does not support")
        return WebCall(self, name, reply_type, codec.encode(metadata), credentials=credentials)

    async def authorization(self) -> Sequence[tuple[str, str]]:
        """Return the header fields with the token; signs in if there is none. Concurrent first calls each sign in."""
        if not self._key:
            return ()
        if self._authorization is None:
            self._authorization = await authenticate(self, self._key_id, self._key, API_KEY)
        return self._authorization

    def rejected(self, headers: Sequence[tuple[str, str]]) -> bool:
        """Discard a rejected token; return whether another one may be accepted."""
        if self._authorization == headers:
            self._authorization = None
        return bool(headers)


class WebCall:
    """One unary call, with the methods of grpclib's client stream that `ApiClient` uses."""

    def __init__(
        self, channel: WebChannel, path: str, reply_type: Any, headers: list[tuple[str, str]], *, credentials: bool
    ) -> None:
        self._channel = channel
        self._path = path
        self._reply_type = reply_type
        self._headers = headers
        self._credentials = credentials
        self._body = b""
        self.initial_metadata: Any = None  # HTTP fields are not kept

    async def __aenter__(self) -> WebCall:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    async def send_message(self, message: Any, *, end: bool = False) -> None:
        """Set the message of the request, which `recv_message` sends."""
        raw = message.SerializeToString()
        self._body = b"\0" + len(raw).to_bytes(4, "big") + raw

    async def recv_message(self) -> Any:
        """Send the request and return the reply. GRPCError; UNAVAILABLE if no answer arrived."""
        if not self._credentials:
            return await self._exchange(())
        authorization = await self._channel.authorization()
        try:
            return await self._exchange(authorization)
        except GRPCError as error:
            if error.status is not Status.UNAUTHENTICATED or not self._channel.rejected(authorization):
                raise
        return await self._exchange(await self._channel.authorization())

    async def _exchange(self, authorization: Sequence[tuple[str, str]]) -> Any:
        headers = [*_HEADERS, *self._headers, *authorization]
        code, fields, body = await self._channel.http.post(self._path, headers, self._body)
        if code != 200 and "grpc-status" not in fields:
            raise GRPCError(of_http(str(code)), f"the server answered with HTTP status {code}")
        try:
            messages, trailers = split_frames(body)
        except MalformedError as error:
            # A proxy that lost its server sends a page, or a part of the answer.
            raise GRPCError(Status.UNAVAILABLE, f"the answer is not one of gRPC-Web: {error}") from None
        outcome = trailers or fields
        if "grpc-status" not in outcome:
            raise GRPCError(Status.UNAVAILABLE, "the answer was cut off")
        status = _status(outcome["grpc-status"])
        if status is not Status.OK:
            text = decode_grpc_message(outcome.get("grpc-message", ""))
            details = codec.decode_details(status, text, outcome.get(codec.DETAILS_KEY))
            raise GRPCError(status, text, details)
        if len(messages) != 1:
            raise GRPCError(Status.INTERNAL, f"the answer has {len(messages)} messages instead of one")
        try:
            return self._reply_type.FromString(messages[0])
        except DecodeError:
            raise GRPCError(
                Status.INTERNAL, f"the message of the answer is not a {self._reply_type.__name__}"
            ) from None


def _status(text: str) -> Status:
    try:
        return Status(int(text))
    except ValueError:
        return Status.UNKNOWN
