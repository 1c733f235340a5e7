"""Metadata over HTTP: what is missing, what is too long, and a refresh of the trust through it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
from grpclib.const import Status
from grpclib.exceptions import GRPCError

from agent.releases.chain import Untrusted, pin
from agent.releases.transport import Transport
from agent.releases.trust import Trust
from agent.releases.web import Web
from schema.errors import ErrorKind, MachineError
from support.worker import Worker
from tests.unit.agent.releases.hostile import Request, Send, Server, serving, status
from tests.unit.agent.releases.repository import NOW, Repository
from uplink.dial import CloudAddress
from uplink.http import Headers

BASE = "/machine/v1/parts/part/releases/metadata"
LIMIT = 30.0


@asynccontextmanager
async def transport(server: Server, *, denied: Exception | None = None) -> AsyncIterator[tuple[Transport, Worker]]:
    async def sign_in() -> Headers:
        if denied is not None:
            raise denied
        return [("authorization", "Bearer token")]

    worker = Worker("test")
    async with server.opened(), worker.opened():
        address = CloudAddress(server.url, "part", "part", "robot-secret", "secret")
        with trio.fail_after(LIMIT):
            yield Transport(Web(address, worker, sign_in=sign_in), "part"), worker


async def test_existing_and_missing_paths() -> None:
    async with transport(Server({f"{BASE}/1.root.json": serving(b"{}")})) as (metadata, _):
        assert await metadata.fetch("1.root.json", 100) == b"{}"
        assert await metadata.fetch("2.root.json", 100) is None


async def test_an_endless_file_is_not_read_to_its_end() -> None:
    sent = 0

    async def endless(request: Request, send: Send) -> None:
        nonlocal sent
        await send(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            await send(bytes(100_000))
            sent += 100_000

    async with transport(Server({f"{BASE}/timestamp.json": endless})) as (metadata, _):
        content = await metadata.fetch("timestamp.json", 1000)
        assert content is not None
        assert 1000 < len(content) < 200_000
    assert sent < 20_000_000


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("206 x", ErrorKind.UNAVAILABLE),
        ("416 x", ErrorKind.UNAVAILABLE),
        ("500 x", ErrorKind.UNAVAILABLE),
        ("403 x", ErrorKind.PERMISSION),
    ],
)
async def test_other_answers_are_errors(line: str, kind: ErrorKind) -> None:
    async with transport(Server({f"{BASE}/timestamp.json": status(line, b"why")})) as (metadata, _):
        with pytest.raises(MachineError, match=line[:3]) as caught:
            await metadata.fetch("timestamp.json", 1000)
    assert caught.value.kind is kind


@pytest.mark.parametrize(
    ("denied", "kind"),
    [
        (GRPCError(Status.UNAUTHENTICATED, "wrong secret"), ErrorKind.UNAUTHENTICATED),
        (OSError("wrong secret"), ErrorKind.UNAVAILABLE),
    ],
)
async def test_a_machine_that_cannot_sign_in(denied: Exception, kind: ErrorKind) -> None:
    async with transport(Server(), denied=denied) as (metadata, _):
        with pytest.raises(MachineError, match="wrong secret") as caught:
            await metadata.fetch("timestamp.json", 1000)
    assert caught.value.kind is kind


async def test_the_trust_is_refreshed_through_it(tmp_path: Path) -> None:
    repository = Repository()
    pin(tmp_path, repository.files["1.root.json"])
    server = Server({f"{BASE}/{name}": serving(content) for name, content in repository.files.items()})
    async with transport(server) as (metadata, worker):
        listing = await Trust(tmp_path, worker).refresh(metadata.fetch, NOW)
        assert [entry.custom.version for entry in listing.releases] == ["1.0.0"]
        server.answers[f"{BASE}/timestamp.json"] = serving(b"x" * 600_000)
        with pytest.raises(Untrusted, match="larger than"):
            await Trust(tmp_path, worker).refresh(metadata.fetch, NOW)
