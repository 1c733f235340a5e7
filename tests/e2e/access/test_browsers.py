"""Requests of web pages to a machine without keys, over every protocol of the port; calls that always require a key."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any

import httpcore
import pytest
from grpclib import GRPCError, Status
from grpclib.client import Channel
from viam.gen.component.motor.v1.motor_pb2 import IsMovingRequest, SetPowerRequest
from viam.gen.robot.v1.robot_grpc import RobotServiceStub
from viam.gen.robot.v1.robot_pb2 import TunnelRequest
from viam.gen.service.shell.v1.shell_grpc import ShellServiceStub
from viam.gen.service.shell.v1.shell_pb2 import (
    CopyFilesFromMachineRequest,
    CopyFilesToMachineRequest,
    ShellRequest,
)

from tests.e2e.harness import Server

APP = "http://localhost:5173"
MOTOR = {"api": "rdk:component:motor", "name": "m", "model": "fake"}
SHELL = {"api": "rdk:service:shell", "name": "sh", "attributes": {"program": "/bin/sh"}}
POWER = "/viam.component.motor.v1.MotorService/SetPower"
Fields = Sequence[tuple[str, str]]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    document = {"components": [MOTOR], "services": [SHELL], "network": {"traffic_tunnel_endpoints": [{"port": 9}]}}
    with Server(document, tmp_path_factory.mktemp("open")) as running:
        yield running.wait_running()


def frame(message: bytes) -> bytes:
    return b"\0" + len(message).to_bytes(4, "big") + message


def ask(server: Server, method: str, path: str, fields: Fields, body: bytes = b"") -> tuple[HTTPResponse, bytes]:
    """Send one HTTP/1.1 request with exactly these header fields."""
    connection = HTTPConnection("127.0.0.1", server.port, timeout=30)
    connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
    passed = dict(fields)
    passed.setdefault("host", f"localhost:{server.port}")
    passed.setdefault("content-length", str(len(body)))
    for name, value in passed.items():
        connection.putheader(name, value)
    connection.endheaders(body)
    response = connection.getresponse()
    data = response.read()
    connection.close()
    return response, data


def web(server: Server, *fields: tuple[str, str]) -> tuple[HTTPResponse, bytes]:
    """Turn the motor over gRPC-Web."""
    kind = ("content-type", "application/grpc-web+proto")
    return ask(
        server, "POST", POWER, [kind, *fields], frame(SetPowerRequest(name="m", power_pct=1).SerializeToString())
    )


def turning(server: Server) -> bool:
    path = "/viam.component.motor.v1.MotorService/IsMoving"
    kind = ("content-type", "application/grpc-web+proto")
    _, data = ask(server, "POST", path, [kind], frame(IsMovingRequest(name="m").SerializeToString()))
    return data[5 : 5 + data[4]] == b"\x08\x01"


FOREIGN = [
    [("origin", "https://evil.example")],
    [("origin", "http://localhost:1")],
    [("origin", "null")],
    [("host", "evil.example:{port}"), ("origin", "http://evil.example:{port}")],
    [("host", "evil.example:{port}")],
]


@pytest.mark.parametrize("fields", FOREIGN)
def test_pages_of_other_origins_cannot_move_anything(server: Server, fields: Fields) -> None:
    passed = [(name, value.format(port=server.port)) for name, value in fields]
    response, data = web(server, *passed)
    assert response.status == 403
    assert response.getheader("access-control-allow-origin") is None
    assert b"network.allowed_origins" in data
    for kind in ("application/json", "text/plain", "application/x-www-form-urlencoded"):
        refused, _ = ask(server, "POST", POWER, [("content-type", kind), *passed], b"{}")
        assert refused.status in (403, 421)
    upgrade = [("connection", "upgrade"), ("upgrade", "websocket"), ("sec-websocket-version", "13")]
    upgrade += [("sec-websocket-key", "AAAAAAAAAAAAAAAAAAAAAA=="), *passed]
    if "origin" in dict(passed):
        refused, _ = ask(server, "GET", "/live", upgrade)
        assert refused.status in (403, 421)
    asked = [*passed, ("access-control-request-method", "POST"), ("access-control-request-headers", "content-type")]
    preflight, data = ask(server, "OPTIONS", POWER, asked)
    assert (preflight.status, preflight.getheader("access-control-allow-origin")) == (403, None)
    assert b"network.allowed_origins" in data
    assert not turning(server)


@pytest.mark.parametrize("kind", ["application/grpc-web+proto", "application/grpc"])
@pytest.mark.parametrize("fields", FOREIGN[:4])
def test_pages_of_other_origins_cannot_move_anything_over_http2(server: Server, kind: str, fields: Fields) -> None:
    values = {name: value.format(port=server.port) for name, value in fields}
    body = frame(SetPowerRequest(name="m", power_pct=1).SerializeToString())
    with httpcore.ConnectionPool(http1=False, http2=True) as client:
        url = f"http://127.0.0.1:{server.port}{POWER}"
        headers = {"host": f"localhost:{server.port}", "content-type": kind, "te": "trailers", **values}
        answer = client.request("POST", url, headers=headers, content=body)
        said = {name.decode().lower(): value.decode() for name, value in answer.headers}
        assert answer.status == 403
        assert said["grpc-status"] == str(Status.PERMISSION_DENIED.value)
        assert "network.allowed_origins" in said["grpc-message"]
        assert "access-control-allow-origin" not in said
    assert not turning(server)


def test_own_pages_and_programs_are_allowed(server: Server) -> None:
    own = f"http://localhost:{server.port}"
    for fields in (
        [],
        [("origin", own)],
        [("host", f"127.0.0.1:{server.port}"), ("origin", own.replace("localhost", "127.0.0.1"))],
    ):
        response, data = web(server, *fields)
        assert response.status == 200
        assert b"grpc-status: 0" in data
        assert response.getheader("access-control-allow-origin") == dict(fields).get("origin")


def test_http_and_json(server: Server) -> None:
    """The published routes apply the same rules to browsers as calls do."""
    moving, power = "/viam/api/v1/component/motor/m/is_moving", "/api/v1/component/motor/m/power?power_pct=1"
    response, data = ask(server, "PUT", "/viam/api/v1/component/motor/m/stop", [])
    assert (response.status, json.loads(data)) == (200, {})
    response, data = ask(server, "GET", moving, [])
    assert (response.status, json.loads(data)) == (200, {"isMoving": False})
    for fields in FOREIGN:
        passed = [(name, value.format(port=server.port)) for name, value in fields]
        for kind in ("application/json", "text/plain"):
            response, _ = ask(server, "PUT", power, [("content-type", kind), *passed], b"{}")
            assert (response.status, response.getheader("access-control-allow-origin")) == (403, None)
    assert not turning(server)
    response, data = ask(server, "GET", moving.replace("/m/", "/other/"), [])
    assert (response.status, json.loads(data)["code"]) == (404, Status.NOT_FOUND.value)
    assert set(json.loads(data)) == {"code", "message", "details"}


def test_shells_files_and_tunnels_need_keys(server: Server) -> None:
    """A server without keys gives no client access to the computer itself."""

    async def first(method: Any, request: Any) -> None:
        async with method.open(timeout=20) as stream:
            await stream.send_message(request, end=True)
            await stream.recv_message()

    async def refused() -> None:
        async with Channel("127.0.0.1", server.port) as channel:
            shell, robot = ShellServiceStub(channel), RobotServiceStub(channel)
            for method, request in (
                (shell.Shell, ShellRequest(name="sh", data_in="id\n")),
                (shell.CopyFilesToMachine, CopyFilesToMachineRequest()),
                (shell.CopyFilesFromMachine, CopyFilesFromMachineRequest()),
                (robot.Tunnel, TunnelRequest(destination_port=9)),
            ):
                with pytest.raises(GRPCError) as caught:
                    await first(method, request)
                assert caught.value.status is Status.PERMISSION_DENIED
                assert "auth.handlers" in str(caught.value.message)
                assert "-allow-open-shell" in str(caught.value.message)

    asyncio.run(refused())


def test_the_start_logs_what_is_accessible_without_a_key(server: Server, tmp_path: Path) -> None:
    (line,) = [line for line in server.log().splitlines() if "listening on" in line]
    for words in ('"keys":"none', '"tls":false', '"shell":"refused', '"browsers":"its own pages'):
        assert words in line, line
    keys = {"handlers": [{"type": "api-key", "config": {"id": "key"}}]}
    document = {"auth": keys, "network": {"allowed_origins": [APP]}}
    with Server(document, tmp_path) as other:
        (line,) = [line for line in other.log().splitlines() if "listening on" in line]
        for words in ('"keys":"1"', '"shell":"with a key"', APP):
            assert words in line, line


def test_configured_origins_are_allowed(tmp_path: Path) -> None:
    document = {"components": [MOTOR], "network": {"allowed_origins": [APP, "https://app.example"]}}
    with Server(document, tmp_path) as server:
        server.wait_running()
        for origin, may in ((APP, True), ("https://app.example", True), ("http://app.example", False)):
            asked = [("origin", origin), ("access-control-request-method", "POST")]
            preflight, _ = ask(server, "OPTIONS", POWER, asked)
            assert preflight.getheader("access-control-allow-origin") == (origin if may else None)
            response, _ = web(server, ("origin", origin))
            assert response.status == (200 if may else 403)
        network = {"bind_address": "localhost:0", "allowed_origins": []}
        assert server.log().count("listening on") == 1
        server.write({"components": [MOTOR], "network": network})
        for _ in range(100):  # after a page is removed from the list, it is refused without a restart of the port
            response, _ = web(server, ("origin", APP))
            if response.status == 403:
                break
        assert response.status == 403
