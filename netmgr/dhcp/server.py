"""DHCP server of the hotspot as a state machine. Pure."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Interface
from typing import Final

import msgspec

from netmgr.dhcp.codec import REPLY, REQUEST, DhcpKind, DhcpMessage, Option

LEASE: Final = 600
"""Seconds of a lease: phones renew it in the background, and it soon frees the address of one that has gone."""
RESERVED: Final = 30.0
"""Seconds in which an offered address is kept for its client."""
DECLINED: Final = 600.0
"""Seconds in which an address is not used that another host has."""
FIRST, LAST = 10, 250
"""Last numbers of the addresses of a /24."""


class HeldAddress(msgspec.Struct, frozen=True):
    """Address that a client has, or that was offered to it."""

    client: bytes
    until: float


class DhcpServer:
    """State of the server at an address. `portal` is the URL of the captive portal (RFC 8910)."""

    def __init__(self, address: IPv4Interface, portal: str = "") -> None:
        self._address, self._portal = address, portal
        base = int(address.network.network_address)
        self._pool = [IPv4Address(base + number) for number in range(FIRST, LAST + 1)]
        self._held: dict[IPv4Address, HeldAddress] = {}

    def received(self, message: DhcpMessage, now: float) -> DhcpMessage | None:
        """Return the answer to a message; None for one that needs none, or that comes from another network."""
        if message.op != REQUEST or not message.giaddr.is_unspecified:
            return None
        server, client = message.address(Option.SERVER), client_of(message)
        is_other = server is not None and server != self._address.ip
        match message.kind:
            case DhcpKind.DISCOVER:
                address = self._choose(client, message.address(Option.ADDRESS), now)
                return (
                    None if address is None else self._answer(message, DhcpKind.OFFER, client, address, now + RESERVED)
                )
            case DhcpKind.REQUEST if is_other:
                self._release(client)
                return None
            case DhcpKind.REQUEST:
                return self._requested(message, client, now)
            case DhcpKind.DECLINE if not is_other:
                self._decline(client, message.address(Option.ADDRESS), now)
            case DhcpKind.RELEASE if not is_other:
                self._release(client)
            case DhcpKind.INFORM:
                return self._answer(message, DhcpKind.ACK, client, None, now)
        return None

    def clients(self, now: float) -> int:
        """Return how many addresses are in use."""
        return sum(held.until > now and bool(held.client) for held in self._held.values())

    def _requested(self, message: DhcpMessage, client: bytes, now: float) -> DhcpMessage | None:
        address = message.address(Option.ADDRESS) or message.ciaddr
        held = self._held.get(address)
        is_free = held is None or held.client == client or held.until <= now
        if address in self._pool and is_free:
            return self._answer(message, DhcpKind.ACK, client, address, now + LEASE)
        options: dict[int, bytes] = {Option.KIND: bytes((DhcpKind.NAK,)), Option.SERVER: self._address.ip.packed}
        return DhcpMessage(op=REPLY, xid=message.xid, mac=message.mac, flags=message.flags, options=options)

    def _choose(self, client: bytes, wish: IPv4Address | None, now: float) -> IPv4Address | None:
        """Return the address that the client has, that it wishes, or any; None if all are in use."""
        for address, held in self._held.items():
            if held.client == client:
                return address
        free = [address for address in self._pool if address not in self._held or self._held[address].until <= now]
        if wish in free:
            return wish
        unused = [address for address in free if address not in self._held]
        return next(iter(unused or sorted(free, key=lambda address: self._held[address].until)), None)

    def _answer(
        self, message: DhcpMessage, kind: DhcpKind, client: bytes, address: IPv4Address | None, until: float
    ) -> DhcpMessage:
        own = self._address.ip.packed
        options: dict[int, bytes] = {
            Option.KIND: bytes((kind,)),
            Option.SERVER: own,
            Option.MASK: self._address.netmask.packed,
            Option.ROUTER: own,
            Option.DNS: own,
        }
        if address is not None:
            before = self._held.get(address)
            keeps = kind is DhcpKind.OFFER and before is not None and before.client == client and before.until > until
            self._held[address] = before if keeps and before is not None else HeldAddress(client, until)
            for option, seconds in (
                (Option.LEASE_TIME, LEASE), (Option.RENEWAL, LEASE // 2), (Option.REBINDING, LEASE * 7 // 8),
            ):  # fmt: skip
                options[option] = seconds.to_bytes(4, "big")
        if self._portal and Option.CAPTIVE_PORTAL in message.options.get(Option.PARAMETERS, b""):
            options[Option.CAPTIVE_PORTAL] = self._portal.encode()
        return DhcpMessage(
            op=REPLY,
            xid=message.xid,
            mac=message.mac,
            flags=message.flags,
            ciaddr=message.ciaddr,
            yiaddr=address or IPv4Address(0),
            options=options,
        )

    def _release(self, client: bytes) -> None:
        """Free the address of a client. It is remembered, so that the client gets it again if nobody else wants it."""
        for address, held in self._held.items():
            if held.client == client:
                self._held[address] = HeldAddress(client, 0.0)

    def _decline(self, client: bytes, address: IPv4Address | None, now: float) -> None:
        """Set an address aside that another host uses, if it was given to this client."""
        if address is not None and address in self._held and self._held[address].client == client:
            self._held[address] = HeldAddress(b"", now + DECLINED)


def client_of(message: DhcpMessage) -> bytes:
    """Return what identifies a client: its option 61, or its hardware address."""
    return message.options.get(Option.CLIENT, b"")[:64] or message.mac
