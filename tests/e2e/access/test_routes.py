"""Every route and method of a real machine-server with keys and of a real machine-cloud requires a valid token.

The routes are read from the Starlette applications and the methods from the published services, so new ones are covered
automatically. The open ones are listed here, each with its reason.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpcore
import pytest
import trio
from grpclib.const import Cardinality, Status
from grpclib.exceptions import GRPCError
from starlette.routing import BaseRoute, Mount, Route, WebSocketRoute

from cloud.server.memory import open_cloud
from cloud.web.app import application
from rpc.access.guard import METRICS_PATH
from rpc.access.tokens import Signer
from rpc.api.methods import methods_of
from rpc.api.table import SERVICES
from rpc.client.channel import Channel
from runtime.server.memory import open_machine
from runtime.server.pages.app import app
from tests.e2e.cloud.process import cloud
from tests.e2e.server.process import server

LIMIT = 120.0  # seconds for several hundred requests, which usually take a few seconds
KEY = {"type": "api-key", "config": {"id-of-key": "the key itself"}}

OPEN_MACHINE = {
    "/": "a line of text, that this is machine-server: supervisors and people ask for it",
    "/healthz": "asked by supervisors; says ok and nothing else without a token",
    "/restart_status": "asked by machine-agent, which has no key: whether a restart is allowed now",
    "/login": "the form by which one logs in",
    "/login/link": "the page that sends the ticket of a link; a wrong ticket is answered by 401",
}
LINKED = ("/files/", "/packages/", "/releases/files/")
"""Prefixes of paths that a signed link opens. The page itself verifies the link; an unknown HTTP method gets 405."""

OPEN_CLOUD = {
    "/connectivity/{part}": "asked by machine-agent through each network; an answer proves the cloud, no more",
    "/ca.pem": "the certificate of the cloud's authority is public, and needed before one can show a key safely",
    "/healthz": "asked by load balancers; says ok and nothing else",
    "/install.sh": "a script that a new computer runs; it is the same for all callers, and asks for a key",
    "/machine/v1/install": "the code in the line is the credential; a wrong one is answered by 401, and counted",
    "/login": "the form by which one logs in",
    "/login/link": "the page that sends the ticket of a link; a wrong ticket is answered by 401",
    "/static/{file}": "scripts and styles; they are the same for all users, and the page of an invitation needs them",
    "/invites/{secret}": "the secret in the path is what one shows; a wrong one is answered by 404",
}
AUTHENTICATE = "/proto.rpc.v1.AuthService/Authenticate"
ALL, SOME = ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"), ("GET", "POST")
WEB = (("content-type", "application/grpc-web+proto"), ("x-grpc-web", "1"))
UPGRADE = (
    ("connection", "Upgrade"),
    ("upgrade", "websocket"),
    ("sec-websocket-version", "13"),
    ("sec-websocket-key", "AAAAAAAAAAAAAAAAAAAAAA=="),
)


def wrong_token() -> str:
    """Return a well-formed token with a different signer."""
    return Signer().issue(
        subject="id-of-key",
        audience=("localhost",),
        issuer="localhost",
        credential="api-key",
        metadata={"key": Signer().fingerprint("api-key", "id-of-key", "x")},
    )


def shown(cookie: str) -> dict[str, tuple[tuple[str, str], ...]]:
    """Return the request headers of clients without access, by description."""
    return {
        "nothing": (),
        "a token of another cloud": (("authorization", f"Bearer {wrong_token()}"),),
        "a token in a cookie": (("cookie", f"{cookie}={wrong_token()}"),),
        "no token at all": (("authorization", "Bearer x.y.z"),),
        "a key instead of a token": (("authorization", "Bearer the key itself"),),
        "a password": (("authorization", "Basic aWQtb2Yta2V5OnRoZSBrZXkgaXRzZWxm"),),
    }


def doors(routes: Sequence[BaseRoute]) -> Iterator[tuple[str, str, bool]]:
    """Yield the pattern, the path and whether it is a WebSocket for every route."""
    for route in routes:
        assert not isinstance(route, Mount), "say here how what is mounted is walked"
        assert isinstance(route, Route | WebSocketRoute), route
        path = re.sub(r"\{[^}]*\}", "x", route.path)
        yield route.path, path, isinstance(route, WebSocketRoute)


async def machine_routes() -> Sequence[BaseRoute]:
    async with open_machine({}) as memory:
        return list(app(memory.machine).routes)


async def cloud_routes() -> Sequence[BaseRoute]:
    async with open_cloud() as memory:
        routes: Sequence[BaseRoute] = application(memory.cloud, loopback=True)._app.routes
        return list(routes)


@asynccontextmanager
async def running(kind: str, folder: Path) -> AsyncIterator[str]:
    """Run one of the two programs and yield its address."""
    if kind == "machine":
        components = [{"name": "pi", "api": "rdk:component:board", "model": "fake"}]
        document = {"auth": {"handlers": [KEY]}, "components": components}
        async with server(folder, document, "-disable-mdns", "-webprofile") as process:
            yield process.address
    else:
        async with cloud(folder) as process:
            yield process.address


class Client:
    """An HTTP/1.1 client."""

    def __init__(self, address: str, pool: httpcore.AsyncConnectionPool) -> None:
        self.address = address
        self.pool = pool

    async def ask(
        self, method: str, path: str, headers: Sequence[tuple[str, str]] = (), body: bytes | None = None
    ) -> httpcore.Response:
        passed = [(name.encode(), value.encode()) for name, value in headers]
        return await self.pool.request(method, f"http://{self.address}{path}", headers=passed, content=body)


@asynccontextmanager
async def client(address: str) -> AsyncIterator[Client]:
    async with httpcore.AsyncConnectionPool(network_backend=httpcore.TrioBackend()) as pool:
        yield Client(address, pool)


ROUTES: Mapping[str, Any] = {"machine": (machine_routes, OPEN_MACHINE), "cloud": (cloud_routes, OPEN_CLOUD)}


@pytest.mark.parametrize("kind", ROUTES)
async def test_every_page_needs_a_key(tmp_path: Path, kind: str) -> None:
    make, open_to_all = ROUTES[kind]
    routes = await make()
    results: list[str] = []
    walked = 0
    with trio.fail_after(LIMIT):
        async with running(kind, tmp_path) as address, client(address) as http:
            gone = dict((await http.ask("POST", "/logout", (), b"")).headers)[b"set-cookie"].decode()
            for pattern, path, websocket in [
                *doors(routes),
                ("/nowhere", "/nowhere", False),
                ("/login", "/login", False),
                ("/login/link", "/login/link", False),
                ("/login/links", "/login/links", False),
                ("/login/token", "/login/token", False),
            ]:
                for what, headers in shown(gone.partition("=")[0]).items():
                    if websocket:
                        answers = {"GET": await http.ask("GET", path, [*headers, *UPGRADE])}
                    else:
                        answers = {
                            method: await http.ask(method, path, headers, b"" if method == "POST" else None)
                            for method in (ALL if not headers else SOME)
                        }
                        if what != "nothing":
                            page = [*headers, ("accept", "text/html")]
                            answers["GET as a browser"] = await http.ask("GET", path, page)
                    for method, answer in answers.items():
                        walked += 1
                        places = dict(answer.headers)
                        login = answer.status == 303 and places[b"location"].startswith(b"/login?next=")
                        locked = answer.status == 401 or (answer.status == 405 and path.startswith(LINKED))
                        if (pattern, what) == (METRICS_PATH, "a password") and kind == "machine":
                            assert answer.status == 200 or method not in ("GET", "HEAD", "GET as a browser")
                            continue  # scrapers send the key this way, and the password in `shown` is valid
                        if pattern not in open_to_all and not login and not locked:
                            results.append(f"{method} {path} with {what}: {answer.status}")
                        if pattern in open_to_all and not websocket:
                            assert answer.status < 500, f"{method} {path}: {answer.status}"
    assert results == [], "\n".join(results)
    assert walked > 100
    patterns = {pattern for pattern, _, _ in doors(routes)} | {"/login", "/login/link"}
    assert {*open_to_all} <= patterns, "named here, but not there"


@pytest.mark.parametrize("kind", ["machine", "cloud"])
async def test_public_pages_disclose_nothing(tmp_path: Path, kind: str) -> None:
    """Responses to requests without a token disclose no names of resources, keys, addresses or versions."""
    async with running(kind, tmp_path) as address, client(address) as http:
        for path in ("/", "/healthz", "/login", "/login/link", "/restart_status"):
            text = (await http.ask("GET", path)).content.decode()
            for secret in ("pi", "board", "id-of-key", "the key itself", "revision"):
                assert not re.search(
                    rf"\b{re.escape(secret)}\b", re.sub(r"<style>.*?</style>", "", text, flags=re.S)
                ), path


def methods() -> list[Any]:
    """Return every published method of every published service."""
    return [method for entry in SERVICES.values() for method in methods_of(entry).values()]


@pytest.mark.parametrize("kind", ["machine", "cloud"])
async def test_every_call_needs_a_key(tmp_path: Path, kind: str) -> None:
    """Use gRPC and gRPC-Web. Calls that are not served may return UNIMPLEMENTED: the published names are public."""
    calls = [method.path for method in methods() if method.path != AUTHENTICATE]
    calls.append("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo")
    calls.append("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo")
    statuses: dict[str, set[int]] = {}
    with trio.fail_after(LIMIT):
        async with running(kind, tmp_path) as address, client(address) as http, Channel(address) as channel:
            for path in calls:
                for headers in ((), (("authorization", f"Bearer {wrong_token()}"),)):
                    statuses.setdefault(path, set()).add(await by_grpc(channel, path, headers))
                    statuses[path].add(await by_web(http, path, headers))
            assert await by_grpc(channel, AUTHENTICATE, ()) == Status.INVALID_ARGUMENT.value  # says what is missing
    served = [path for path, result in statuses.items() if Status.UNIMPLEMENTED.value not in result]
    assert {path: statuses[path] for path in served} == {path: {Status.UNAUTHENTICATED.value} for path in served}
    others = {tuple(value) for path, value in statuses.items() if path not in served}
    assert others <= {(Status.UNIMPLEMENTED.value,)}
    assert len(served) > 100


async def by_grpc(channel: Channel, path: str, headers: Sequence[tuple[str, str]]) -> int:
    request, reply = type("Empty", (), {"SerializeToString": lambda self: b""}), type("Any", (), {})
    try:
        async with channel.request(path, Cardinality.UNARY_UNARY, request, reply, metadata=dict(headers)) as call:
            await call.send_message(request(), end=True)
            await call.recv_initial_metadata()
            await call.recv_trailing_metadata()
    except GRPCError as error:
        return int(error.status.value)
    return 0


async def by_web(http: Client, path: str, headers: Sequence[tuple[str, str]]) -> int:
    answer = await http.ask("POST", path, [*WEB, *headers], b"\0\0\0\0\0")
    fields = {name.lower(): value for name, value in answer.headers}
    if b"grpc-status" in fields:
        return int(fields[b"grpc-status"])
    trailer = re.search(rb"grpc-status: ?(\d+)", answer.content)
    assert trailer is not None, (path, answer.status, answer.content)
    return int(trailer[1])
