"""DHCP client (RFC 2131) as a state machine. Pure: randomness and time are arguments."""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import StrEnum
from ipaddress import IPv4Address, IPv4Interface, IPv4Network
from typing import Final

import msgspec
from msgspec.structs import replace

from netmgr.dhcp.codec import MAX_SIZE, REPLY, REQUEST, DhcpKind, DhcpMessage, Option, domain_of, names_of, routes_of
from netmgr.model.facts import AddressLease
from support import doubled

FIRST_WAIT: Final = 2.0
"""Seconds until an unanswered message is repeated; doubled each time. RFC 2131 suggests 4, which costs a radio that has
just joined, and often loses the first packet, two more seconds."""
MAX_WAIT: Final = 64.0
SPREAD: Final = 0.25
"""Part of a wait by which it is changed at random, so that devices after a power failure do not ask at once."""
REQUESTS: Final = 4
"""Unanswered requests for an offer, after which another offer is asked for."""
REMEMBERED: Final = 2
"""Unanswered requests for the remembered address, after which any address is asked for."""
MIN_RENEWAL: Final = 60.0
"""Seconds between two requests to renew a lease."""
NAK_WAIT: Final = 10.0
"""Seconds until a start after a refusal, as RFC 2131 requires after a decline."""
MIN_LEASE: Final = 10
"""Seconds; a shorter lease would keep the client busy."""
DEFAULT_PREFIX: Final = 24
PARAMETERS: Final = bytes(
    (Option.MASK, Option.ROUTES, Option.ROUTER, Option.DNS, Option.DOMAIN, Option.SEARCH, Option.MTU,
     Option.LEASE_TIME, Option.SERVER, Option.RENEWAL, Option.REBINDING)
)  # fmt: skip

Chance = Callable[[], float]
"""Returns a random number from 0 to 1, without 1."""


class DhcpPhase(StrEnum):
    """State of the client, as in RFC 2131, figure 5."""

    SELECTING = "selecting"
    REQUESTING = "requesting"
    REBOOTING = "rebooting"
    BOUND = "bound"
    RENEWING = "renewing"
    REBINDING = "rebinding"
    WAITING = "waiting"
    """After a refusal."""


class ClientIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """How the client presents itself. `mac` has 6 bytes."""

    mac: bytes
    hostname: str = ""


class Client(msgspec.Struct, frozen=True, kw_only=True):
    """State of the client."""

    identity: ClientIdentity
    phase: DhcpPhase
    xid: int
    began: float
    """Time at which it began to ask."""
    sent: float
    """Time of the first message of this phase, from which a lease counts."""
    deadline: float
    """Time of `expired`."""
    tries: int = 0
    offer: AddressLease | None = None
    """Offered or remembered."""
    lease: AddressLease | None = None


class Send(msgspec.Struct, frozen=True, kw_only=True):
    """Send a message: to this server from the address of the lease, or as a broadcast from 0.0.0.0."""

    message: DhcpMessage
    server: IPv4Address | None = None


class DhcpStep(msgspec.Struct, frozen=True, kw_only=True):
    """Result: the next state, and messages to send. `client.lease` is the lease in use."""

    client: Client
    send: tuple[Send, ...] = ()


def start(identity: ClientIdentity, remembered: AddressLease | None, now: float, chance: Chance) -> DhcpStep:
    """Begin: ask for the remembered address in its network, or for any."""
    phase = DhcpPhase.SELECTING if remembered is None else DhcpPhase.REBOOTING
    client = Client(
        identity=identity, phase=phase, xid=_number(chance), began=now, sent=now, deadline=now, offer=remembered
    )
    return expired(client, now, chance)


def expired(client: Client, now: float, chance: Chance) -> DhcpStep:
    """Return what follows when the deadline has passed."""
    match client.phase:
        case DhcpPhase.REQUESTING if client.tries >= REQUESTS:
            return _again(client, now, chance)
        case DhcpPhase.REBOOTING if client.tries >= REMEMBERED:
            return _again(client, now, chance)
        case DhcpPhase.WAITING:
            return _again(client, now, chance)
        case DhcpPhase.SELECTING | DhcpPhase.REQUESTING | DhcpPhase.REBOOTING:
            wait = doubled(FIRST_WAIT, MAX_WAIT, client.tries + 1) * (1 + SPREAD * (2 * chance() - 1))
            client = replace(client, tries=client.tries + 1, deadline=now + wait)
            return DhcpStep(client=client, send=(Send(message=_question(client, now)),))
        case DhcpPhase.BOUND | DhcpPhase.RENEWING | DhcpPhase.REBINDING:
            return _renewal(client, now, chance)
    raise AssertionError(client.phase)


def received(client: Client, message: DhcpMessage, now: float, chance: Chance) -> DhcpStep:
    """Return what follows from a message. Messages that answer nothing are ignored."""
    if message.op != REPLY or message.xid != client.xid or message.mac != client.identity.mac:
        return DhcpStep(client=client)
    server = message.address(Option.SERVER)
    match client.phase, message.kind:
        case DhcpPhase.SELECTING, DhcpKind.OFFER:
            lease = lease_of(message, client.sent)
            if lease is None:
                return DhcpStep(client=client)
            chosen = replace(client, phase=DhcpPhase.REQUESTING, offer=lease, tries=0, sent=now, deadline=now)
            return expired(chosen, now, chance)
        case (
            (DhcpPhase.REQUESTING | DhcpPhase.REBOOTING | DhcpPhase.RENEWING | DhcpPhase.REBINDING),
            DhcpKind.ACK | DhcpKind.NAK,
        ):
            if client.phase is DhcpPhase.REQUESTING and client.offer is not None and server != client.offer.server:
                return DhcpStep(client=client)  # another server, which was not chosen
            if message.kind == DhcpKind.NAK:
                waiting = replace(
                    client, phase=DhcpPhase.WAITING, lease=None, offer=None, deadline=now + _nak_wait(client)
                )
                return DhcpStep(client=waiting)
            lease = lease_of(message, client.sent)
            if lease is None:
                return DhcpStep(client=client)
            bound = replace(client, phase=DhcpPhase.BOUND, lease=lease, offer=None, tries=0)
            return DhcpStep(client=replace(bound, deadline=lease.obtained + lease.renew))
    return DhcpStep(client=client)


def _nak_wait(client: Client) -> float:
    """Return the pause after a refusal: none after one of a remembered address, which is usual in another network."""
    return 0.0 if client.phase is DhcpPhase.REBOOTING else NAK_WAIT


def _again(client: Client, now: float, chance: Chance) -> DhcpStep:
    """Ask for any address."""
    fresh = replace(
        client, phase=DhcpPhase.SELECTING, xid=_number(chance), sent=now, tries=0, offer=None, lease=None, deadline=now
    )
    return expired(fresh, now, chance)


def _renewal(client: Client, now: float, chance: Chance) -> DhcpStep:
    """Ask for an extension of the lease: its server until T2, then any; at its end, for any address."""
    lease = client.lease
    assert lease is not None
    ages = {"rebind": lease.obtained + lease.rebind, "expire": lease.obtained + lease.expire}
    if now >= ages["expire"]:
        return _again(client, now, chance)
    phase, until = (
        (DhcpPhase.RENEWING, ages["rebind"]) if now < ages["rebind"] else (DhcpPhase.REBINDING, ages["expire"])
    )
    if phase is not client.phase:
        client = replace(client, phase=phase, xid=_number(chance), sent=now)
    wait = max((until - now) / 2, MIN_RENEWAL)
    client = replace(client, deadline=min(now + wait, until))
    server = lease.server if phase is DhcpPhase.RENEWING else None
    return DhcpStep(client=client, send=(Send(message=_question(client, now), server=server),))


def _question(client: Client, now: float) -> DhcpMessage:
    """Return the message of the phase."""
    identity, kind = client.identity, DhcpKind.DISCOVER if client.phase is DhcpPhase.SELECTING else DhcpKind.REQUEST
    options: dict[int, bytes] = {Option.KIND: bytes((kind,)), Option.CLIENT: b"\x01" + identity.mac}
    ciaddr = IPv4Address(0)
    if client.phase in (DhcpPhase.RENEWING, DhcpPhase.REBINDING) and client.lease is not None:
        ciaddr = client.lease.address.ip
    elif client.offer is not None:
        options[Option.ADDRESS] = client.offer.address.ip.packed
        if client.phase is DhcpPhase.REQUESTING:
            options[Option.SERVER] = client.offer.server.packed
    options[Option.MAX_SIZE] = (MAX_SIZE - 28).to_bytes(2, "big")
    options[Option.PARAMETERS] = PARAMETERS
    if identity.hostname:
        options[Option.HOSTNAME] = identity.hostname.encode()[:63]
    secs = 0 if client.lease is not None else min(int(now - client.began), 0xFFFF)
    return DhcpMessage(op=REQUEST, xid=client.xid, mac=identity.mac, secs=secs, ciaddr=ciaddr, options=options)


def _number(chance: Chance) -> int:
    return int(chance() * 0xFFFF_FFFF) + 1


def lease_of(message: DhcpMessage, now: float) -> AddressLease | None:
    """Return the lease that a server offers or grants; None if it cannot be used. Its fields are made safe."""
    server, seconds = message.address(Option.SERVER), message.number(Option.LEASE_TIME, 4)
    mask = message.address(Option.MASK)
    prefix = DEFAULT_PREFIX if mask is None else prefix_of(mask)
    if server is None or seconds is None or seconds < MIN_LEASE or prefix is None or not is_host(server):
        return None
    address = IPv4Interface((message.yiaddr, prefix))
    if not is_host(address.ip):
        return None
    if prefix < 31 and address.ip in (address.network.network_address, address.network.broadcast_address):
        return None
    duration = math.inf if seconds == 0xFFFF_FFFF else float(seconds)
    renew, rebind = message.number(Option.RENEWAL, 4), message.number(Option.REBINDING, 4)
    if renew is None or rebind is None or not 0 < renew < rebind < duration:
        renewal, rebinding = duration / 2, duration * 7 / 8
    else:
        renewal, rebinding = float(renew), float(rebind)
    gateways = [gateway for gateway in message.addresses(Option.ROUTER) if is_host(gateway) and gateway != address.ip]
    return AddressLease(
        address=address,
        gateway=gateways[0] if gateways else None,
        routes=tuple(
            (network, via)
            for network, via in routes_of(message.options.get(Option.ROUTES, b""))
            if is_route(network, via)
        ),
        dns=tuple(dns for dns in message.addresses(Option.DNS) if is_host(dns))[:3],
        domains=names_of(message.options.get(Option.SEARCH, b"")) or domain_of(message.options.get(Option.DOMAIN, b"")),
        mtu=message.number(Option.MTU, 2),
        server=server,
        obtained=now,
        renew=renewal,
        rebind=rebinding,
        expire=duration,
    )


def is_host(address: IPv4Address) -> bool:
    """Return whether an address can be a host of a network: not of this host, multicast, reserved or broadcast."""
    return not (address.is_unspecified or address.is_loopback or address.is_multicast or address.is_reserved)


def is_route(network: IPv4Network, gateway: IPv4Address) -> bool:
    """Return whether a route can be used: not to this host, multicast or reserved addresses."""
    return (gateway.is_unspecified or is_host(gateway)) and not (network.is_loopback or network.is_multicast)


def prefix_of(mask: IPv4Address) -> int | None:
    """Return the length of a mask; None if its ones are not in front."""
    bits = int(mask)
    length = bits.bit_count()
    return length if bits == (0xFFFF_FFFF << (32 - length)) & 0xFFFF_FFFF and length else None
