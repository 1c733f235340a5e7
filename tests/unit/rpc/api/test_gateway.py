"""HTTP and JSON: the route of every annotated method of the published API reaches it with the right fields."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import pytest
from google.protobuf.json_format import MessageToDict
from grpclib.const import Cardinality, Handler, Status
from grpclib.exceptions import GRPCError

from rpc.access.origins import Origins
from rpc.api import cloud_v1, messages
from rpc.api.cloud_v1 import PACKAGE
from rpc.api.gateway import MAX_BODY, PREFIXES, SMALL, Gateway, GatewayRoute, routes_of
from rpc.api.table import SERVICES
from rpc.call import ServerCore
from rpc.carrier import Identity, Peer
from schema.errors import ErrorKind, MachineError

ROUTES = [route for service in SERVICES for route in routes_of(service)]
UNARY = [route for route in ROUTES if not (route.method.client_streaming or route.method.server_streaming)]
STREAMING = [route for route in ROUTES if route not in UNARY]


@dataclass
class Exchange:
    """A non-gRPC request and its response."""

    method: str
    path: str
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: bytes = b""
    http_version: str = "1.1"
    scheme: str = "http"
    authority: str = "localhost:8080"
    peer: Peer = field(default_factory=Peer)
    status: int = 0
    fields: dict[str, str] = field(default_factory=dict)
    answer: bytes = b""

    async def receive(self) -> bytes:
        data, self.body = self.body[:10_000], self.body[10_000:]
        return data

    async def respond(self, status: int, headers: Any) -> None:
        self.status, self.fields = status, dict(headers)

    async def send_body(self, data: bytes, *, end: bool) -> None:
        self.answer += data


class Service:
    """Implements every method of every service: records the request and returns `reply`, or an empty reply."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, Any, Any]] = []
        self.reply: Any = None
        self.error: Exception | None = None
        self.kinds = {
            route.path: (
                messages.message_class(route.method.input_type),
                messages.message_class(route.method.output_type),
            )
            for route in ROUTES
        }

    def get(self, path: str) -> Handler | None:
        if path not in self.kinds:
            return None
        request, reply = self.kinds[path]

        async def answer(stream: Any) -> None:
            self.seen.append((path, await stream.recv_message(), stream.metadata))
            if self.error is not None:
                raise self.error
            await stream.send_message(self.reply or reply())

        return Handler(answer, Cardinality.UNARY_UNARY, request, reply)


async def pages(exchange: Any) -> None:
    await exchange.respond(404, [("content-type", "text/html")])


async def ask(
    service: Service, method: str, path: str, *headers: tuple[str, str], body: Any = b"", **core: Any
) -> Exchange:
    shared = ServerCore(service, **core)
    passed = body if isinstance(body, bytes) else json.dumps(body).encode()
    exchange = Exchange(method, path, list(headers), passed)
    await Gateway(shared, lambda: SERVICES, pages)(exchange)
    return exchange


def filled(route: GatewayRoute) -> tuple[str, dict[str, str]]:
    """Return a path for the route and its variables; the first value contains characters that need escaping."""
    names = [segment[1:-1] for segment in route.segments if segment.startswith("{")]
    values = {name: f"r:{name}/ü" if index == 0 else str(index) for index, name in enumerate(names)}
    by_segment = {f"{{{name}}}": quote(value, safe="") for name, value in values.items()}
    return "/" + "/".join(by_segment.get(segment, segment) for segment in route.segments), values


@pytest.fixture(scope="module")
def service() -> Service:
    return Service()


async def test_every_unary_method_is_reached_by_its_route(service: Service) -> None:
    assert len(UNARY) > 250
    shared = ServerCore(service)
    gateway = Gateway(shared, lambda: SERVICES, pages)
    for route in UNARY:
        path, values = filled(route)
        exchange = Exchange(route.verb, path)
        service.seen.clear()
        await gateway(exchange)
        assert exchange.status == 200, (route.path, exchange.answer)
        ((called, request, _),) = service.seen
        assert called == route.path
        for name, value in values.items():
            assert str(getattr(request, name)) == value, route.path
        if route.method.output_type.full_name != "google.api.HttpBody":
            assert isinstance(json.loads(exchange.answer), dict)


async def test_streams_are_refused_in_words(service: Service) -> None:
    assert len(STREAMING) > 10
    for route in STREAMING:
        exchange = await ask(service, route.verb, filled(route)[0])
        assert exchange.status == 501
        said = json.loads(exchange.answer)
        assert (said["code"], said["details"]) == (Status.UNIMPLEMENTED.value, [])
        assert route.method.name in said["message"]
        assert "gRPC" in said["message"]


def test_every_route_begins_as_the_gateway_expects() -> None:
    assert {route.segments[:2] for route in ROUTES if not route.path.startswith(f"/{PACKAGE}.")} <= set(PREFIXES)


@pytest.mark.parametrize("own", cloud_v1.SERVICES)
async def test_calls_of_our_own_services_have_the_path_of_grpc(service: Service, own: str) -> None:
    for name in cloud_v1.SERVICES[own]:
        exchange = await ask(service, "POST", f"/{own}/{name}")
        assert (exchange.status, service.seen[-1][0]) == (200, f"/{own}/{name}")
    for method, path, status in (("GET", name, 405), ("POST", "Nothing", 404), ("POST", f"{name}/more", 404)):
        exchange = await ask(service, method, f"/{own}/{path}")
        assert exchange.status == status
        assert set(json.loads(exchange.answer)) == {"code", "message", "details"}


async def test_a_server_without_a_service_of_our_own_refuses_its_calls(service: Service) -> None:
    exchange = Exchange("POST", f"/{cloud_v1.TRIGGERS}/ListTriggers")
    await Gateway(ServerCore(service), lambda: ["viam.robot.v1.RobotService"], pages)(exchange)
    assert (exchange.status, json.loads(exchange.answer)["code"]) == (404, Status.NOT_FOUND.value)


async def test_fields_come_from_body_query_and_path(service: Service) -> None:
    base = "/viam/api/v1/component"
    for method, path, body, expected in (
        ("PUT", f"{base}/motor/m/power?power_pct=0.5", b"", {"name": "m", "powerPct": 0.5}),
        ("PUT", f"{base}/motor/m/power?powerPct=0.5", {"power_pct": 1}, {"name": "m", "powerPct": 0.5}),
        ("PUT", f"{base}/motor/m/power", {"powerPct": 0.25, "name": "other"}, {"name": "m", "powerPct": 0.25}),
        ("POST", f"{base}/generic/g/do_command", {"command": {"a": [1]}}, {"name": "g", "command": {"a": [1.0]}}),
        ("POST", f"{base}/generic/g/do_command?command=%7B%22a%22:1%7D", b"", {"name": "g", "command": {"a": 1.0}}),
        ("PUT", f"{base}/board/b/gpio?pin=7&high=true", b"", {"name": "b", "pin": "7", "high": True}),
        (
            "POST",
            f"{base}/base/b/move_straight?distance_mm=-5&mm_per_sec=2.5",
            b"",
            {"name": "b", "distanceMm": "-5", "mmPerSec": 2.5},
        ),
    ):
        service.seen.clear()
        exchange = await ask(service, method, path, body=body)
        assert exchange.status == 200, exchange.answer
        assert MessageToDict(service.seen[0][1]) == expected


@pytest.mark.parametrize(
    ("query", "body", "word"),
    [
        ("?nothing=1", b"", "nothing"),
        ("?power_pct=much", b"", "power_pct"),
        ("?power_pct=1&power_pct=2", b"", "power_pct"),
        ("?extra=1.5.2", b"", "extra"),
        ("?name.x=1", b"", "name"),
        ("", b"[1]", "object"),
        ("", b"{", "JSON"),
        ("", b"[" * 100_000, "JSON"),
        (
            "",
            {"extra": json.loads('{"a":' * 40 + "1" + "}" * 40)},
            "SetPowerRequest is nested too deeply: messages may have at most 100 levels",
        ),
        ("", {"extra": json.loads('{"a":' * 400 + "1" + "}" * 400)}, "nested too deeply"),
        ("", b'{"extra":' + b'{"a":' * 5000 + b"1" + b"}" * 5001, "nested too deeply"),
        (f"?extra={'[' * 2000}", {}, "nested too deeply"),
        ("", {"power_pct": "much"}, "power"),
        ("", b"x" * (MAX_BODY + 1), "KiB"),
    ],
)
async def test_errors_name_the_value_that_does_not_fit(service: Service, query: str, body: Any, word: str) -> None:
    service.seen.clear()
    exchange = await ask(service, "PUT", f"/viam/api/v1/component/motor/m/power{query}", body=body)
    said = json.loads(exchange.answer)
    assert (exchange.status, said["code"], said["details"]) == (400, Status.INVALID_ARGUMENT.value, [])
    assert word in said["message"]
    assert service.seen == []


async def test_answers_and_errors_are_those_of_grpc_gateways() -> None:
    service = Service()
    readings = "/viam/api/v1/component/sensor/s/readings"
    reply = service.kinds["/viam.component.sensor.v1.SensorService/GetReadings"][1]()
    reply.readings["t"].number_value = 21.5
    service.reply = reply
    for path in (readings, readings.replace("/viam/", "/")):
        exchange = await ask(service, "GET", path, ("origin", "http://app"))
        assert (exchange.status, json.loads(exchange.answer)) == (200, {"readings": {"t": 21.5}})
        assert exchange.fields["content-type"] == "application/json"
        assert exchange.fields["access-control-allow-origin"] == "http://app"
    for index in range(40_000):
        reply.readings[str(index)].number_value = index
    exchange = await ask(service, "GET", readings)
    assert (exchange.status, "gRPC" in json.loads(exchange.answer)["message"]) == (429, True)
    for status, http in ((Status.NOT_FOUND, 404), (Status.UNAVAILABLE, 503), (Status.INTERNAL, 500)):
        detail = messages.auth().AuthenticateResponse(access_token="x")
        service.error = GRPCError(status, "größer", [detail])
        exchange = await ask(service, "GET", readings)
        assert exchange.status == http
        kind = "type.googleapis.com/proto.rpc.v1.AuthenticateResponse"
        assert json.loads(exchange.answer) == {
            "code": status.value,
            "message": "größer",
            "details": [{"@type": kind, "accessToken": "x"}],
        }
    for method, path, status in (
        ("GET", "/viam/api/v1/component/sensor/s", 404),
        ("GET", "/viam/api/v1/component/sensor//readings", 404),
        ("DELETE", readings, 405),
    ):
        exchange = await ask(service, method, path)
        assert exchange.status == status
        assert set(json.loads(exchange.answer)) == {"code", "message", "details"}
    for path in ("/packages/v1/else", "/api/v1/parts/x/revisions", "/api/v1/component/sensor/s"):
        assert (await ask(service, "GET", path)).fields == {"content-type": "text/html"}, "the cloud has such pages"


async def test_keys_and_origins_count_as_for_grpc() -> None:
    service = Service()
    power = "/viam/api/v1/component/motor/m/power"

    def authorize(method: str, metadata: Any) -> Identity | None:
        if metadata.get("authorization") != "Bearer good":
            raise GRPCError(Status.UNAUTHENTICATED, "who are you?")
        return Identity("me")

    exchange = await ask(service, "PUT", power, ("cookie", "machine_token=good"), authorize=authorize)
    assert (exchange.status, json.loads(exchange.answer)["code"]) == (401, 16)
    assert exchange.fields["www-authenticate"] == "Bearer"
    assert service.seen == []
    good = (("authorization", "Bearer good"), ("grpc-metadata-viam-sid", "7"), ("x-other", "1"))
    exchange = await ask(service, "PUT", power, *good, authorize=authorize)
    assert (exchange.status, dict(service.seen[0][2])) == (200, {"authorization": "Bearer good", "viam-sid": "7"})
    service.seen.clear()
    closed = Origins(keys=False, loopback=True, option="network.allowed_origins")
    for header in (("origin", "http://evil.example"), ("sec-fetch-site", "cross-site")):
        exchange = await ask(service, "PUT", power, header, origins=lambda: closed)
        assert (exchange.status, json.loads(exchange.answer)["code"]) == (403, 7)
        assert "access-control-allow-origin" not in exchange.fields
    assert service.seen == []
    assert (await ask(service, "PUT", power, origins=lambda: closed)).status == 200


async def test_long_json_is_converted_in_a_worker(service: Service) -> None:
    owner, asked = Identity("key"), list[Any]()

    async def offload(identity: Identity | None, function: Any) -> Any:
        asked.append(identity)
        return function()

    do = next(route for route in UNARY if route.path == "/viam.component.generic.v1.GenericService/DoCommand")
    for size, expected in ((SMALL // 2, []), (SMALL, [owner, owner]), (MAX_BODY // 2, [owner, owner])):
        asked.clear()
        service.reply = messages.common().DoCommandResponse(result={"text": "x" * size})
        body = {"command": {"text": "x" * size}}
        answer = await ask(
            service, do.verb, filled(do)[0], body=body, authorize=lambda method, metadata: owner, offload=offload
        )
        service.reply = None
        assert (answer.status, json.loads(answer.answer)) == (200, {"result": {"text": "x" * size}})
        assert asked == expected


async def test_a_refusal_by_the_worker_is_the_answer(service: Service) -> None:
    async def offload(identity: Identity | None, function: Any) -> Any:
        raise MachineError("too much waits", kind=ErrorKind.EXHAUSTED)

    do = next(route for route in UNARY if route.path == "/viam.component.generic.v1.GenericService/DoCommand")
    service.seen.clear()
    answer = await ask(service, do.verb, filled(do)[0], body={"command": {"text": "x" * SMALL}}, offload=offload)
    assert (answer.status, json.loads(answer.answer)["message"]) == (429, "too much waits")
    assert not service.seen
