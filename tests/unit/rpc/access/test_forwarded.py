"""Client addresses behind proxies: trust the fields that a trusted proxy wrote, and no others."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpc.access.forwarded import FIELD, Proxies, behind_proxies, parse_network
from rpc.carrier import Peer

PROXIES = Proxies((parse_network("10.0.0.0/24"), parse_network("127.0.0.1"), parse_network("fd00::/8")))

# peer address, values of the forwarding fields, expected client address
SEEN: list[tuple[str, list[str], str]] = [
    ("10.0.0.7", ["192.0.2.1"], "192.0.2.1"),
    ("10.0.0.7", ["192.0.2.1:4711"], "192.0.2.1"),
    ("10.0.0.7", [" 192.0.2.1 "], "192.0.2.1"),
    ("10.0.0.7", ["2001:db8::1"], "2001:db8::1"),
    ("10.0.0.7", ["[2001:db8::1]"], "2001:db8::1"),
    ("10.0.0.7", ["[2001:db8::1]:4711"], "2001:db8::1"),
    ("10.0.0.7", ["::ffff:192.0.2.1"], "192.0.2.1"),
    ("::ffff:10.0.0.7", ["192.0.2.1"], "192.0.2.1"),  # a dual-stack socket shows IPv4 addresses in this form
    ("fd00::1", ["192.0.2.1"], "192.0.2.1"),
    # values that the client wrote itself precede the one from the proxy
    ("10.0.0.7", ["198.51.100.9, 192.0.2.1"], "192.0.2.1"),
    ("10.0.0.7", ["198.51.100.9", "192.0.2.1"], "192.0.2.1"),
    ("10.0.0.7", ["10.0.0.8, 192.0.2.1"], "192.0.2.1"),
    # one trusted proxy behind another
    ("127.0.0.1", ["192.0.2.1, 10.0.0.7"], "192.0.2.1"),
    ("127.0.0.1", ["198.51.100.9, 192.0.2.1, 10.0.0.7, 10.0.0.8"], "192.0.2.1"),
    # no readable client address: use the last trusted proxy
    ("10.0.0.7", [], "10.0.0.7"),
    ("10.0.0.7", [""], "10.0.0.7"),
    ("10.0.0.7", ["unknown"], "10.0.0.7"),
    ("10.0.0.7", ["_hidden"], "10.0.0.7"),
    ("10.0.0.7", ["192.0.2.1, unknown"], "10.0.0.7"),
    ("10.0.0.7", ["192.0.2.1, unknown, 10.0.0.8"], "10.0.0.8"),
    ("10.0.0.7", ["192.0.2.1,"], "10.0.0.7"),
    ("10.0.0.7", ["10.0.0.8"], "10.0.0.8"),
    ("10.0.0.7", ["999.0.2.1"], "10.0.0.7"),
    # the peer is not a trusted proxy
    ("10.0.1.7", ["192.0.2.1"], "10.0.1.7"),
    ("192.0.2.1", ["198.51.100.9"], "192.0.2.1"),
    ("127.0.0.2", ["198.51.100.9"], "127.0.0.2"),
]


def fields(values: list[str]) -> list[tuple[str, str]]:
    return [("user-agent", "x"), *((FIELD, value) for value in values), ("forwarded", "for=203.0.113.1")]


@pytest.mark.parametrize(("address", "values", "client"), SEEN)
def test_the_client_address_that_is_used(address: str, values: list[str], client: str) -> None:
    result = PROXIES.client(Peer((address, 4711)), fields(values))
    assert result.address is not None
    assert result.address[0] == client


@pytest.mark.parametrize("peer", [Peer(("10.0.0.7", 1)), Peer(""), Peer(None), Peer("/run/cloud.sock")])
def test_without_proxies_nothing_is_read(peer: Peer) -> None:
    assert Proxies().client(peer, fields(["192.0.2.1"])) is peer


@pytest.mark.parametrize("peer", [Peer(""), Peer(None), Peer("/run/cloud.sock"), Peer(("fe80::1%eth0", 1, 0, 2))])
def test_clients_without_a_proxys_address_are_not_proxies(peer: Peer) -> None:
    assert PROXIES.client(peer, fields(["192.0.2.1"])) is peer


written = st.one_of(st.text(), st.ip_addresses().map(str), st.lists(st.ip_addresses().map(str)).map(", ".join))


@given(value=written, address=st.ip_addresses(v=4, network="203.0.113.0/24").map(str))
def test_headers_of_a_client_do_not_change_its_address(value: str, address: str) -> None:
    assert PROXIES.client(Peer((address, 1)), [(FIELD, value)]).address == (address, 1)
    through = PROXIES.client(Peer(("10.0.0.7", 1)), [(FIELD, f"{value}, {address}")])
    assert through.address == (address, 0)


@pytest.mark.parametrize("text", ["", "proxy.example", "10.0.0.7/24", "10.0.0.0/33", "10.0.0", "10.0.0.7:80"])
def test_invalid_networks_are_reported(text: str) -> None:
    with pytest.raises(ValueError, match=r"such as 10\.0\.0\.7") as caught:
        parse_network(text)
    assert text in str(caught.value)


async def test_a_page_sees_the_client() -> None:
    seen: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope["client"])

    async def nothing(*_: Any) -> Any:
        raise AssertionError

    scope = {"type": "http", "client": ("10.0.0.7", 5), "headers": [(b"x-forwarded-for", b"192.0.2.1")]}
    for inner in (behind_proxies(PROXIES, app), behind_proxies(Proxies(), app)):
        await inner(scope, nothing, nothing)
    assert seen == [("192.0.2.1", 0), ("10.0.0.7", 5)]
    assert scope["client"] == ("10.0.0.7", 5)
    assert behind_proxies(Proxies(), app) is app
