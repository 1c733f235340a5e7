"""The DHCP server of the hotspot."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Interface

import pytest
from msgspec.structs import replace

from netmgr.dhcp.codec import ANY, REQUEST, DhcpKind, DhcpMessage, Option
from netmgr.dhcp.run import destination
from netmgr.dhcp.server import DECLINED, FIRST, LAST, LEASE, RESERVED, DhcpServer

OWN = IPv4Interface("10.42.0.1/24")


def mac(number: int) -> bytes:
    return b"\x02\0\0\0" + number.to_bytes(2, "big")


def ask(kind: DhcpKind, number: int = 1, *, wish: str = "", server: str = "", ciaddr: str = "") -> DhcpMessage:
    options: dict[int, bytes] = {Option.KIND: bytes((kind,))}
    if wish:
        options[Option.ADDRESS] = IPv4Address(wish).packed
    if server:
        options[Option.SERVER] = IPv4Address(server).packed
    return DhcpMessage(op=REQUEST, xid=7, mac=mac(number), ciaddr=IPv4Address(ciaddr or ANY), options=options)


def granted(server: DhcpServer, number: int, now: float = 0.0) -> IPv4Address:
    offer = server.received(ask(DhcpKind.DISCOVER, number), now)
    assert offer is not None
    assert offer.kind == DhcpKind.OFFER
    ack = server.received(ask(DhcpKind.REQUEST, number, wish=str(offer.yiaddr), server="10.42.0.1"), now)
    assert ack is not None
    assert (ack.kind, ack.yiaddr) == (DhcpKind.ACK, offer.yiaddr)
    assert ack.number(Option.LEASE_TIME, 4) == LEASE
    assert ack.address(Option.ROUTER) == ack.address(Option.DNS) == OWN.ip
    return ack.yiaddr


def test_clients_keep_their_addresses() -> None:
    server = DhcpServer(OWN)
    first, second = granted(server, 1), granted(server, 2)
    assert first != second
    assert granted(server, 1, 100.0) == first
    assert granted(server, 1, 10 * LEASE) == first, "also after the lease has ended, while others leave it free"


def test_a_full_pool_grants_nothing_until_a_lease_ends() -> None:
    server = DhcpServer(OWN)
    addresses = {granted(server, number) for number in range(LAST - FIRST + 1)}
    assert len(addresses) == LAST - FIRST + 1
    assert server.received(ask(DhcpKind.DISCOVER, 999), 1.0) is None
    assert granted(server, 999, LEASE + 1.0) in addresses


def test_offers_that_are_not_taken_do_not_fill_the_pool_for_long() -> None:
    server = DhcpServer(OWN)
    for number in range(1000):
        server.received(ask(DhcpKind.DISCOVER, number), 0.0)
    assert server.received(ask(DhcpKind.DISCOVER, 2000), 1.0) is None
    assert server.received(ask(DhcpKind.DISCOVER, 2000), RESERVED + 1) is not None
    assert len(server._held) <= LAST - FIRST + 1


@pytest.mark.parametrize("wish", ["10.42.0.1", "10.42.0.255", "10.42.0.5", "192.168.1.50"])
def test_addresses_of_other_networks_are_refused(wish: str) -> None:
    reply = DhcpServer(OWN).received(ask(DhcpKind.REQUEST, wish=wish), 0.0)
    assert reply is not None
    assert reply.kind == DhcpKind.NAK


def test_the_address_of_another_client_is_refused() -> None:
    server = DhcpServer(OWN)
    address = granted(server, 1)
    reply = server.received(ask(DhcpKind.REQUEST, 2, wish=str(address)), 1.0)
    assert reply is not None
    assert reply.kind == DhcpKind.NAK


def test_a_renewal_and_a_release() -> None:
    server = DhcpServer(OWN)
    address = granted(server, 1)
    reply = server.received(ask(DhcpKind.REQUEST, 1, ciaddr=str(address)), 300.0)
    assert reply is not None
    assert (reply.kind, reply.yiaddr) == (DhcpKind.ACK, address)
    server.received(ask(DhcpKind.RELEASE, 1, ciaddr=str(address), server="10.42.0.1"), 301.0)
    assert server.clients(302.0) == 0


def test_a_client_that_chooses_another_server_frees_its_address() -> None:
    server = DhcpServer(OWN)
    server.received(ask(DhcpKind.DISCOVER, 1), 0.0)
    assert server.received(ask(DhcpKind.REQUEST, 1, wish="10.9.9.9", server="10.9.9.1"), 1.0) is None
    assert server.clients(1.0) == 0


def test_a_declined_address_is_not_offered_again_soon() -> None:
    server = DhcpServer(OWN)
    address = granted(server, 1)
    server.received(ask(DhcpKind.DECLINE, 2, wish=str(address), server="10.42.0.1"), 1.0)
    assert granted(server, 1, 2.0) == address, "only its client may decline it"
    server.received(ask(DhcpKind.DECLINE, 1, wish=str(address), server="10.42.0.1"), 3.0)
    assert granted(server, 1, 4.0) != address
    assert granted(server, 3, 5.0) != address
    assert DECLINED > LEASE - 1


def test_relayed_messages_and_answers_are_ignored() -> None:
    server = DhcpServer(OWN)
    assert server.received(replace(ask(DhcpKind.DISCOVER), giaddr=IPv4Address("10.42.0.77")), 0.0) is None
    assert server.received(replace(ask(DhcpKind.DISCOVER), op=2), 0.0) is None
    assert server.received(replace(ask(DhcpKind.DISCOVER), options={}), 0.0) is None


def test_the_portal_is_announced_to_those_that_ask() -> None:
    server = DhcpServer(OWN, "http://machine.setup/captive-portal/api")
    question = ask(DhcpKind.DISCOVER)
    asking = replace(question, options={**question.options, Option.PARAMETERS: bytes((1, 3, 114))})
    reply, other = server.received(asking, 0.0), server.received(question, 0.0)
    assert reply is not None
    assert other is not None
    assert reply.options[Option.CAPTIVE_PORTAL] == b"http://machine.setup/captive-portal/api"
    assert Option.CAPTIVE_PORTAL not in other.options


@pytest.mark.parametrize(
    ("flags", "ciaddr", "kind", "target"),
    [
        (0, "", DhcpKind.ACK, ("10.42.0.10", mac(1))),
        (0x8000, "", DhcpKind.ACK, ("255.255.255.255", b"\xff" * 6)),
        (0x8000, "10.42.0.10", DhcpKind.ACK, ("10.42.0.10", mac(1))),
        (0, "10.42.0.10", DhcpKind.NAK, ("255.255.255.255", b"\xff" * 6)),
    ],
)
def test_answers_reach_clients_without_an_address(
    flags: int, ciaddr: str, kind: DhcpKind, target: tuple[str, bytes]
) -> None:
    question = replace(ask(DhcpKind.REQUEST, ciaddr=ciaddr), flags=flags)
    reply = DhcpMessage(
        op=2, xid=7, mac=mac(1), yiaddr=IPv4Address("10.42.0.10"), options={Option.KIND: bytes((kind,))}
    )
    assert destination(question, reply) == (IPv4Address(target[0]), target[1])
