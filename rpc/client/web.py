"""Client of calls over gRPC-Web, on any HTTP client: for programs that do not run on Trio.

A call is one HTTP request, so it passes every proxy. A channel waits only in its HTTP client.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Final, Protocol

from google.protobuf.message import DecodeError
from grpclib.const import Cardinality, Status
from grpclib.exceptions import GRPCError
from grpclib.metadata import decode_grpc_message

from rpc import metadata as codec
from rpc.access.credential_types import API_KEY
from rpc.client.sign_in import authenticate
from rpc.http.grpc_web import TRAILERS, Content, MalformedError, fields_of, frames, split_frames
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


class StreamingHttpClient(HttpClient, Protocol):
    """Also sends requests whose answers are read while they arrive."""

    async def open(
        self, path: str, headers: Sequence[tuple[str, str]], body: bytes
    ) -> tuple[int, Mapping[str, str], AsyncIterator[bytes]]:
        """Send a request; return the status, the header fields with names in lower case, and the parts of the body.

        This and the iterator raise GRPCError (UNAVAILABLE) if the connection is lost.
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
        call = self._call(cardinality)
        if call is None:
            raise GRPCError(Status.UNIMPLEMENTED, f"{name} is a stream, which this client does not support")
        return call(self, name, reply_type, codec.encode(metadata), credentials=credentials)

    def _call(self, cardinality: Cardinality) -> type[WebCall] | None:
        """Return the class of calls of a kind; None if this channel has none."""
        return WebCall if cardinality is Cardinality.UNARY_UNARY else None

    async def authorization(self) -> Sequence[tuple[str, str]]:
        """Return the header fields with the token; logs in if there is none. Concurrent first calls each log in."""
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


class StreamingWebChannel(WebChannel):
    """A WebChannel that also has calls with a stream of results. A stream of requests is UNIMPLEMENTED."""

    def __init__(self, http: StreamingHttpClient, key_id: str = "", key: str = "") -> None:
        super().__init__(http, key_id, key)
        self.streams = http

    def _call(self, cardinality: Cardinality) -> type[WebCall] | None:
        return WebStream if cardinality is Cardinality.UNARY_STREAM else super()._call(cardinality)


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
        self.initial_metadata: codec.Metadata | None = None  # with the fields of HTTP, once the answer has begun

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
        self._begin(code, fields)
        try:
            messages, trailers = split_frames(body)
        except MalformedError as error:
            # A proxy that lost its server sends a page, or a part of the answer.
            raise GRPCError(Status.UNAVAILABLE, f"the answer is not one of gRPC-Web: {error}") from None
        _raise_for(trailers or fields)
        if len(messages) != 1:
            raise GRPCError(Status.INTERNAL, f"the answer has {len(messages)} messages instead of one")
        return self._parsed(messages[0])

    def _begin(self, code: int, fields: Mapping[str, str]) -> None:
        if code != 200 and "grpc-status" not in fields:
            raise GRPCError(of_http(str(code)), f"the server answered with HTTP status {code}")
        self.initial_metadata = codec.decode(list(fields.items()))

    def _parsed(self, message: bytes) -> Any:
        try:
            return self._reply_type.FromString(message)
        except DecodeError:
            raise GRPCError(
                Status.INTERNAL, f"the message of the answer is not a {self._reply_type.__name__}"
            ) from None


class WebStream(WebCall):
    """One call with a stream of results. `recv_message` returns None after the last one."""

    _results: AsyncIterator[Any] | None = None

    async def recv_message(self) -> Any:
        """Return the next result; the first call sends the request. UNAVAILABLE if the connection is lost."""
        if self._results is None:
            self._results = await super().recv_message()
        return await anext(self._results, None)

    async def _exchange(self, authorization: Sequence[tuple[str, str]]) -> Any:
        assert isinstance(self._channel, StreamingWebChannel)
        headers = [*_HEADERS, *self._headers, *authorization]
        code, fields, parts = await self._channel.streams.open(self._path, headers, self._body)
        self._begin(code, fields)
        if "grpc-status" in fields:  # an error without results has no body
            _raise_for(fields)
        return self._results_of(parts)

    async def _results_of(self, parts: AsyncIterator[bytes]) -> AsyncIterator[Any]:
        trailers: Mapping[str, str] = {}
        try:
            async for flag, payload in frames(parts):
                if flag == TRAILERS:
                    trailers = fields_of(payload)
                else:
                    yield self._parsed(payload)
        except MalformedError as error:
            raise GRPCError(Status.UNAVAILABLE, f"the answer is not one of gRPC-Web: {error}") from None
        _raise_for(trailers)


def _raise_for(outcome: Mapping[str, str]) -> None:
    if "grpc-status" not in outcome:
        raise GRPCError(Status.UNAVAILABLE, "the answer was cut off")
    status = _status(outcome["grpc-status"])
    if status is not Status.OK:
        text = decode_grpc_message(outcome.get("grpc-message", ""))
        details = codec.decode_details(status, text, outcome.get(codec.DETAILS_KEY))
        raise GRPCError(status, text, details)


def _status(text: str) -> Status:
    try:
        return Status(int(text))
    except ValueError:
        return Status.UNKNOWN
