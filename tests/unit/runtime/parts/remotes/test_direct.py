"""Direct connections to machines that have introduced themselves, and what answers in their place."""

from __future__ import annotations

import hashlib
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest
import trio
import trustme

from engine.calls.introduction import (
    CLOUD,
    INTRODUCTION_KEY,
    Introduction,
    parse_introduction,
    reachable,
    requests_introduction,
    this_computer,
)
from rpc.access.auth import Authenticator, Credential
from rpc.access.credential_types import API_KEY, LOCATION_SECRET
from rpc.api.server.target import CallInfo
from rpc.carrier import Identity, Peer
from runtime.parts.remotes.direct import dial_direct
from tests.loopback import free_port, listening

OURS, OTHER = trustme.CA().issue_cert("127.0.0.1"), trustme.CA().issue_cert("127.0.0.1")


def digest(leaf: trustme.LeafCert) -> str:
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(leaf.cert_chain_pems[0].bytes().decode())).hexdigest()


@asynccontextmanager
async def answering(leaf: trustme.LeafCert, received: list[bytes]) -> AsyncIterator[int]:
    """Run a TLS server that presents a certificate and records what clients send."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    leaf.configure_cert(context)

    async def serve(stream: trio.SocketStream) -> None:
        secure = trio.SSLStream(stream, context, server_side=True)
        try:
            await secure.send_all(b"hello")
            received.append(await secure.receive_some())
        except (trio.BrokenResourceError, ssl.SSLError):
            received.append(b"")

    async with listening(serve) as port:
        yield port


def introduction(*ports: int) -> Introduction:
    return Introduction(
        addresses=tuple(f"127.0.0.1:{port}" for port in ports), certificate=digest(OURS), token="a token"
    )


async def test_only_the_machine_itself_is_connected_to() -> None:
    received: list[bytes] = []
    async with answering(OTHER, received) as impostor, answering(OURS, []) as machine:
        stream = await dial_direct(introduction(free_port(), impostor, machine))
        async with stream:
            assert await stream.receive_some() == b"hello"
    assert received in ([], [b""])  # the impostor gets nothing


@pytest.mark.parametrize("answers", [True, False])
async def test_addresses_without_the_machine(answers: bool) -> None:
    received: list[bytes] = []
    async with answering(OTHER, received) as port:
        ports = [port] if answers else [free_port(), free_port()]
        with pytest.raises(OSError, match="another machine answers" if answers else "refused.*; .*refused"):
            await dial_direct(introduction(*ports))
        while answers and not received:
            await trio.testing.wait_all_tasks_blocked(0.01)
    assert received == ([b""] if answers else [])


@pytest.mark.parametrize(
    ("addresses", "usable"),
    [
        (["192.0.2.7:8080", "[2001:db8::7]:80"], ["192.0.2.7:8080", "[2001:db8::7]:80"]),
        (["127.0.0.1:8080", "192.0.2.7:8080"], ["192.0.2.7:8080"]),  # of another computer
        (["pi.local:8080", "192.0.2.7", "192.0.2.7:0", "192.0.2.7:70000", "0.0.0.0:1", "224.0.0.1:80"], []),
        ([f"192.0.2.{number}:80" for number in range(20)], [f"192.0.2.{number}:80" for number in range(8)]),
    ],
)
def test_addresses_that_are_tried(addresses: list[str], usable: list[str]) -> None:
    text = msgspec.json.encode({"addresses": addresses, "certificate": "00", "token": "t", "computer": "another"})
    parsed = parse_introduction(text.decode())
    assert (list(parsed.addresses) if parsed is not None else []) == usable


def test_loopback_is_tried_on_the_same_computer() -> None:
    offered = Introduction(addresses=("127.0.0.1:1",), certificate="", token="t", computer=this_computer())
    assert parse_introduction(msgspec.json.encode(offered).decode()) == offered


@pytest.mark.parametrize("text", ["", "null", "[]", '{"addresses": ["192.0.2.1:1"]}', "\x80", "{" * 10_000])
def test_invalid_introductions(text: str) -> None:
    assert parse_introduction(text) is None


def test_a_token_cannot_add_headers() -> None:
    offered = Introduction(addresses=("192.0.2.1:1",), certificate="", token="a\r\nb: c")
    assert parse_introduction(msgspec.json.encode(offered).decode()) is None
    assert "a\r\nb" not in repr(offered)


@pytest.mark.parametrize(
    ("listening", "expected"),
    [
        (["0.0.0.0:8080", "[::]:8080"], ("192.0.2.1:8080", "[2001:db8::1]:8080")),
        (["127.0.0.1:9"], ("127.0.0.1:9",)),
        ([], ()),
    ],
)
def test_addresses_of_a_port(listening: list[str], expected: tuple[str, ...]) -> None:
    assert reachable(listening, ["192.0.2.1", "2001:db8::1"]) == expected


@pytest.mark.parametrize(
    ("address", "identity", "key", "introduced"),
    [
        (CLOUD, Identity("id"), INTRODUCTION_KEY, True),
        (("192.0.2.1", 1), Identity("id"), INTRODUCTION_KEY, False),  # perhaps a session of a page, which expires
        (CLOUD, None, INTRODUCTION_KEY, False),
        (CLOUD, Identity("id"), "another", False),
    ],
)
def test_only_callers_through_the_cloud_are_introduced(
    address: tuple[object, ...], identity: Identity | None, key: str, introduced: bool
) -> None:
    call = CallInfo(None, "", "get_version", "", False, False, {key: "1"}, identity, Peer(address))
    assert requests_introduction(call) is introduced


def test_a_token_is_valid_as_long_as_the_key_of_its_caller() -> None:
    keys = [Credential(API_KEY, "id", "hush"), Credential(LOCATION_SECRET, "location", "hush")]
    gate = Authenticator(credentials=keys)
    assert gate.token_for(Identity("other", API_KEY)) is None
    token = gate.token_for(Identity("id", API_KEY))
    located = gate.token_for(Identity("part", LOCATION_SECRET), "location")
    assert token is not None
    assert located is not None
    identity, other = gate.identify(token), gate.identify(located)
    assert identity is not None
    assert other is not None
    assert (identity.entity, identity.kind) == ("id", API_KEY)
    assert (other.entity, other.kind) == ("part", LOCATION_SECRET)  # as through the cloud: sessions go on
    gate.configure([Credential(API_KEY, "id", "another"), keys[1]])
    assert gate.identify(token) is None
    assert gate.identify(located) is not None
