"""HTTP and JSON gateway to the published API, with the routes of its `google.api.http` annotations.

    GET  /viam/api/v1/component/sensor/s1/readings
    PUT  /viam/api/v1/component/motor/m1/power?power_pct=0.5

Calls of our own services (`rpc.api.cloud_v1`) have the paths of gRPC:

    POST /machine.cloud.v1.TriggerService/ListTriggers

The fields of a request are read from the JSON object in its body, then the query, then the path. A request becomes a
gRPC call, so the same tokens, limits, sessions and statistics apply. Streaming calls are refused.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import parse_qsl, unquote

import trio
from grpclib.const import Status
from grpclib.exceptions import GRPCError

from rpc import metadata as codec
from rpc.api import cloud_v1, messages
from rpc.api.fields import read_query, write_json
from rpc.api.table import SERVICES
from rpc.call import Refusal, ServerCall, ServerCore, accept
from rpc.carrier import Headers, HttpExchange, MutableHeaders, Peer
from rpc.http.grpc_web import cors
from rpc.inbox import Budget
from rpc.parsing import TOO_DEEP, at_once, is_large, merging
from rpc.status import of_exception
from rpc.turns import Flow
from schema import MachineError

if TYPE_CHECKING:
    from google.protobuf.descriptor import MethodDescriptor

T = TypeVar("T")

MAX_BODY: Final = 256 << 10  # bytes of a request
MAX_REPLY: Final = 256 << 10  # bytes of a reply without images and files
SMALL: Final = 4 << 10  # bytes; larger requests and replies are converted off the event loop
PREFIXES: Final = (
    ("viam", "api"),
    ("api", "v1"),
    ("rpc", "v1"),
    ("rpc", "webrtc"),
    ("datasync", "v1"),
    ("packages", "v1"),
)
"""First segments of all published routes; /api/v1 is short for /viam/api/v1."""
OWN: Final = ("viam", "api")  # contains only routes; the cloud also has pages below the other prefixes
HTTP_OF: Final[Mapping[Status, int]] = {
    Status.OK: 200,
    Status.CANCELLED: 499,
    Status.INVALID_ARGUMENT: 400,
    Status.FAILED_PRECONDITION: 400,
    Status.OUT_OF_RANGE: 400,
    Status.UNAUTHENTICATED: 401,
    Status.PERMISSION_DENIED: 403,
    Status.NOT_FOUND: 404,
    Status.ALREADY_EXISTS: 409,
    Status.ABORTED: 409,
    Status.RESOURCE_EXHAUSTED: 429,
    Status.UNIMPLEMENTED: 501,
    Status.UNAVAILABLE: 503,
    Status.DEADLINE_EXCEEDED: 504,
}
"""HTTP status of a gRPC status, as documented by google.rpc.Code; other statuses are 500."""
_METADATA: Final = "grpc-metadata-"  # prefix of header fields that become metadata of the call, without the prefix
_PASSED: Final = ("authorization", "grpc-timeout", "x-forwarded-for")
_SAFE_IMAGES: Final = frozenset({"image/jpeg", "image/png", "image/webp", "image/gif", "image/bmp"})
_BODY: Final = "google.api.HttpBody"


@dataclass(frozen=True, slots=True)
class GatewayRoute:
    """Route of an annotated method, such as `/viam/api/v1/component/sensor/{name}/readings`, split at slashes."""

    verb: str
    segments: tuple[str, ...]
    method: MethodDescriptor

    @property
    def path(self) -> str:
        """Path of the gRPC method."""
        return f"/{self.method.containing_service.full_name}/{self.method.name}"

    def match(self, segments: tuple[str, ...]) -> dict[str, str] | None:
        """Return the variables in a path of the same length; None if the path does not match."""
        variables = {}
        for pattern, segment in zip(self.segments, segments, strict=True):
            if pattern.startswith("{"):
                variables[pattern[1:-1]] = segment
            elif pattern != segment:
                return None
        return variables if all(variables.values()) else None


def routes_of(service: str) -> Iterator[GatewayRoute]:
    """Yield the routes of a service; loads its messages."""
    if service in cloud_v1.SERVICES:
        for method in cloud_v1.service(service).methods:
            yield GatewayRoute("POST", (service, method.name), method)
        return
    http = import_module("google.api.annotations_pb2").http
    entry = SERVICES[service]
    for method in (entry.descriptor or messages.service(entry.service, entry.module)).methods:
        options = method.GetOptions()
        if options.HasExtension(http):
            rule = options.Extensions[http]
            verb = rule.WhichOneof("pattern")
            yield GatewayRoute(verb.upper(), tuple(getattr(rule, verb).strip("/").split("/")), method)


@dataclass(slots=True)
class _Reply:
    """Carrier that stores the reply of a unary call."""

    peer: Peer
    budget: Budget
    flow: Flow = field(default_factory=Flow)
    data: bytes | None = None
    status: int = Status.UNAVAILABLE.value
    extra: dict[str, str] = field(default_factory=dict)

    def send_headers(self, sid: int, extra: Headers) -> None:
        """Ignore the initial metadata, which the HTTP response does not include."""

    async def send_message(self, sid: int, data: bytes | bytearray) -> None:
        """Send one message, including its 5-byte prefix, in order, and wait for flow control."""
        self.data = bytes(data[5:])

    def send_trailers(self, sid: int, status: int, extra: Headers, *, headers_sent: bool) -> None:
        """Queue the end of the response: the gRPC status and `extra` (grpc-message, trailing metadata)."""
        self.status, self.extra = status, dict(extra)

    def reset(self, sid: int, code: int) -> None:
        """Abort the call with an HTTP/2 error code."""

    def consumed(self, sid: int, n: int) -> None:
        """Return `n` flow-controlled bytes, which the call has consumed, to the window."""

    def forget(self, sid: int) -> None:
        """Release the call, whose task is about to end; its `sid` is not used again."""


class Gateway:
    """Fallback that serves the routes of `services`, which returns full names, and passes the rest to `otherwise`."""

    def __init__(
        self,
        core: ServerCore,
        services: Callable[[], Iterable[str]],
        otherwise: Callable[[HttpExchange], Awaitable[None]],
    ) -> None:
        self._core = core
        self._services = services
        self._otherwise = otherwise
        self._routes: dict[
            int, list[GatewayRoute]
        ] = {}  # by number of segments, routes with the fewest variables first
        self._loaded: set[str] = set()

    async def __call__(self, exchange: HttpExchange) -> None:
        """Answer an exchange that is not gRPC."""
        path, _, query = exchange.path.partition("?")
        segments = tuple(unquote(segment) for segment in path.strip("/").split("/"))
        own = segments[:2] == OWN or segments[0] in cloud_v1.SERVICES
        if not own and segments[:2] not in PREFIXES:
            await self._otherwise(exchange)
            return
        await self._load()
        full = ("viam", *segments) if segments[0] == "api" else segments
        matches = [
            (route, variables)
            for route in self._routes.get(len(full), ())
            if (variables := route.match(full)) is not None
        ]
        if not matches and not own:
            await self._otherwise(exchange)
            return
        fields = dict(exchange.headers)
        site = fields.get("sec-fetch-site", "none")
        origin = fields.get("origin") or (None if site in ("none", "same-origin") else "null")
        if (refusal := self._core.refuse_origin(exchange.scheme, exchange.authority, origin)) is not None:
            await _refuse(exchange, refusal.status, refusal.message)
            return
        allowed = cors(fields.get("origin"))
        for route, variables in matches:
            if route.verb == exchange.method:
                await self._call(exchange, route, variables, query, allowed)
                return
        if matches:
            verbs = ", ".join(sorted({route.verb for route, _ in matches}))
            extra = [*allowed, ("allow", verbs)]
            await _refuse(exchange, Status.UNIMPLEMENTED, f"use {verbs} for {path[:200]}", extra, http=405)
        else:
            await _refuse(exchange, Status.NOT_FOUND, f"no method has the route {path[:200]}", allowed)

    async def _load(self) -> None:
        """Load the routes of new services, with a checkpoint after each, because loading takes milliseconds."""
        for service in self._services():
            if service in SERVICES and service not in self._loaded:
                self._loaded.add(service)
                for route in routes_of(service):
                    routes = self._routes.setdefault(len(route.segments), [])
                    routes.append(route)
                    routes.sort(
                        key=lambda known_route: sum(segment.startswith("{") for segment in known_route.segments)
                    )
                await trio.lowlevel.checkpoint()

    async def _call(
        self, exchange: HttpExchange, route: GatewayRoute, variables: Mapping[str, str], query: str, allowed: Headers
    ) -> None:
        method = route.method
        if method.client_streaming or method.server_streaming:
            text = f"{method.name} is a streaming method, which HTTP with JSON does not support: use gRPC or gRPC-Web"
            await _refuse(exchange, Status.UNIMPLEMENTED, text, allowed)
            return
        carrier = _Reply(exchange.peer, Budget(self._core.limits.max_buffered))
        headers = [*_call_headers(exchange, route.path, (*_PASSED, *self._core.route_fields))]
        call = accept(carrier, 1, headers, self._core)
        if isinstance(call, Refusal):
            await _refuse(exchange, call.status, call.message, allowed)
            return
        try:
            body = await _body(exchange)
            read = partial(_request, messages.message_class(method.input_type), body, query, variables)
            raw = await self._offload(call, len(body) + len(query), read)
        except ValueError as error:
            await _refuse(exchange, Status.INVALID_ARGUMENT, str(error), allowed)
            return
        except MachineError as error:
            await self._refuse_error(exchange, error, allowed)
            return
        call.feed(b"\0" + len(raw).to_bytes(4) + raw, 0)
        call.end()
        await call.run()
        await self._answer(exchange, method, call, carrier, allowed)

    async def _offload(self, call: ServerCall, size: int, function: Callable[[], T]) -> T:
        """Return the result of `function`, run by `ServerCore.offload` if it handles more than `SMALL` bytes."""
        if self._core.offload is None or size <= SMALL:
            return function()
        result: T = await self._core.offload(call.identity, function)
        return result

    async def _refuse_error(self, exchange: HttpExchange, error: MachineError, allowed: Headers) -> None:
        outcome = of_exception(error)
        await _refuse(exchange, outcome.status, outcome.message or "", allowed)

    async def _answer(
        self, exchange: HttpExchange, method: MethodDescriptor, call: ServerCall, carrier: _Reply, allowed: Headers
    ) -> None:
        status = Status(carrier.status)
        if status is not Status.OK or carrier.data is None:
            text = unquote(carrier.extra.get("grpc-message", ""))
            details = codec.decode_details(status, text, carrier.extra.get(codec.DETAILS_KEY))
            await _refuse(exchange, status, text, allowed, details=details or ())
            return
        reply_class: Any = messages.message_class(method.output_type)
        if method.output_type.full_name == _BODY:
            reply = reply_class.FromString(carrier.data)
            kind = reply.content_type if reply.content_type in _SAFE_IMAGES else "application/octet-stream"
            await _send(exchange, 200, kind, reply.data, allowed)
            return
        try:
            data = await self._offload(call, len(carrier.data), partial(_reply_json, reply_class, carrier.data))
        except ValueError as error:
            await _refuse(exchange, Status.RESOURCE_EXHAUSTED, f"{method.name}: {error}", allowed)
            return
        except (GRPCError, MachineError) as error:
            await self._refuse_error(exchange, error, allowed)
            return
        await _send(exchange, 200, "application/json", data, allowed)


def _request(kind: Any, body: bytes, query: str, variables: Mapping[str, str]) -> bytes:
    """Return the serialized request from JSON body, query and path. ValueError names the invalid field."""
    message = kind()
    read_query(message, _object(body), parse_qsl(query, keep_blank_values=True), variables)
    raw: bytes = message.SerializeToString()
    return raw


def _reply_json(kind: Any, data: bytes) -> bytes:
    """Return a serialized reply as JSON."""
    reply = at_once(merging(kind, data)) if is_large(kind, data) else kind.FromString(data)
    return json.dumps(write_json(reply, MAX_REPLY), ensure_ascii=False).encode()


def _call_headers(exchange: HttpExchange, path: str, passed: Sequence[str]) -> Iterator[tuple[str, str]]:
    yield from ((":method", "POST"), (":path", path), (":authority", exchange.authority))
    yield ("content-type", "application/grpc")
    for name, value in exchange.headers:
        if name in passed:
            yield name, value
        elif name.startswith(_METADATA) and not name.removeprefix(_METADATA).startswith(("grpc-", ":")):
            yield name.removeprefix(_METADATA), value


async def _body(exchange: HttpExchange) -> bytes:
    """Return the request body; ValueError if it is too large."""
    body = bytearray()
    while data := await exchange.receive():
        body += data
        if len(body) > MAX_BODY:
            raise ValueError(f"the body is larger than {MAX_BODY >> 10} KiB: use gRPC")
    return bytes(body)


def _object(body: bytes) -> Any:
    """Parse the JSON object in a body, {} for an empty body; ValueError if it is not a JSON object."""
    if not body.strip():
        return {}
    try:
        parsed = json.loads(body)
    except RecursionError:
        raise ValueError(f"the JSON of the request {TOO_DEEP}") from None
    except ValueError:
        raise ValueError("the body is not JSON") from None
    if not isinstance(parsed, dict):
        raise ValueError("the body must be a JSON object with the fields of the request")  # noqa: TRY004 - the caller's
    return parsed


async def _refuse(
    exchange: HttpExchange,
    status: Status,
    message: str,
    extra: Headers = (),
    *,
    http: int = 0,
    details: Iterable[Any] = (),
) -> None:
    """Send an error in the JSON format of gRPC gateways."""
    detail_objects = []
    for detail in details:
        try:
            detail_objects.append(
                {"@type": f"type.googleapis.com/{detail.DESCRIPTOR.full_name}", **write_json(detail, MAX_REPLY)}
            )
        except (AttributeError, TypeError, ValueError):
            continue
    body = json.dumps(
        {"code": status.value, "message": message, "details": detail_objects}, ensure_ascii=False
    ).encode()
    fields: MutableHeaders = [*extra]
    if status is Status.UNAUTHENTICATED:
        fields.append(("www-authenticate", "Bearer"))
    await _send(exchange, http or HTTP_OF.get(status, 500), "application/json", body, fields)


async def _send(exchange: HttpExchange, status: int, kind: str, body: bytes, extra: Headers) -> None:
    fields = [
        ("content-type", kind),
        ("content-length", str(len(body))),
        ("cache-control", "no-store"),
        ("x-content-type-options", "nosniff"),
        ("content-security-policy", "default-src 'none'; frame-ancestors 'none'; sandbox"),
        *extra,
    ]
    await exchange.respond(status, fields)
    await exchange.send_body(body, end=True)
