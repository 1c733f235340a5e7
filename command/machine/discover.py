"""`machine discover`: finds machines on the local network with a one-shot multicast DNS query (RFC 6762 5.1)."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from typing import Any, Final

import click
import trio

from command.output import print_json
from rpc.network import Interface, interfaces
from rpc.network.mdns import (
    AAAA,
    GROUP_V4,
    GROUP_V6,
    MAX_MESSAGE,
    PORT,
    PTR,
    SRV,
    A,
    DnsRecord,
    MdnsError,
    Message,
    Name,
    Question,
    Service,
    decode,
    encode,
    flags_of,
    key,
)
from runtime.parts import SERVICE
from support.text import terminal

ASKED_AGAIN: Final = 0.4  # fraction of the waiting time after which the query is repeated, in case it was lost
RECORDS: Final = 10_000  # maximum number of records kept per interface


@dataclass(frozen=True, slots=True)
class FoundMachine:
    """A machine that answered, under one of its names."""

    name: str
    host: str
    port: int
    addresses: tuple[str, ...]
    interface: str
    flags: Mapping[str, str | None]


async def discover(wait: float, as_json: bool) -> None:
    """Query on every interface, listen for `wait` seconds, and print the machines that answered."""
    records_by_interface: dict[str, list[DnsRecord]] = {}
    try:
        local_interfaces = interfaces()
    except OSError as error:
        raise click.ClickException(f"the interfaces of this computer cannot be listed: {error.strerror}") from None
    with trio.move_on_after(wait):
        async with trio.open_nursery() as nursery:
            for interface in local_interfaces:
                if interface.multicast or interface.loopback:
                    nursery.start_soon(_query, interface, records_by_interface.setdefault(interface.name, []), wait)
            await trio.sleep_forever()
    machines = [machine for name, records in records_by_interface.items() for machine in machines_of(records, name)]
    show(machines, as_json)


def machines_of(records: Iterable[DnsRecord], interface: str) -> list[FoundMachine]:
    """Return the machines in `records`. A machine with several names is listed once, under its longest name."""
    records = list(records)
    machines: dict[tuple[Name, int], FoundMachine] = {}
    for record in records:
        if record.type != SRV or not isinstance(record.data, Service) or key(record.name[1:]) != key(SERVICE):
            continue
        host, port = record.data.target, record.data.port
        addresses = sorted(
            {
                address_record.data
                for address_record in records
                if address_record.type in (A, AAAA) and key(address_record.name) == key(host)
            },
            key=lambda address: (isinstance(address, IPv6Address), str(address)),
        )
        texts = next((other.data for other in records if key(other.name) == key(record.name) and other.type == 16), ())
        machine = FoundMachine(
            record.name[0],
            ".".join(host),
            port,
            tuple(str(address) for address in addresses),
            interface,
            flags_of(texts),  # type: ignore[arg-type]
        )
        previous = machines.get((key(host), port))
        if (
            previous is None
            or len(previous.name) < len(machine.name)
            or (len(previous.name), previous.name) < (len(machine.name), machine.name)
        ):
            machines[key(host), port] = machine
    return sorted(machines.values(), key=lambda machine: machine.name)


def show(machines: list[FoundMachine], as_json: bool) -> None:
    """Print machines as a table or as JSON."""
    if as_json:
        print_json(
            [
                {
                    "name": machine.name,
                    "host": machine.host,
                    "port": machine.port,
                    "addresses": list(machine.addresses),
                    "interface": machine.interface,
                }
                for machine in machines
            ]
        )
    elif machines:
        rows = [(machine.name, address_of(machine), machine.host, machine.interface) for machine in machines]
        for line in terminal.table(("NAME", "ADDRESS", "HOST", "INTERFACE"), rows):
            click.echo(line)
    else:
        click.echo("no machine answered: is it on this network, and was it started without -disable-mdns?")


def address_of(machine: FoundMachine) -> str:
    """Return the address of a machine for --address."""
    if not machine.addresses:
        return f"{machine.host}:{machine.port}"
    first = machine.addresses[0]
    return f"[{first}]:{machine.port}" if ":" in first else f"{first}:{machine.port}"


async def _query(interface: Interface, records: list[DnsRecord], wait: float) -> None:
    families = {type(address) for address in interface.addresses}
    async with trio.open_nursery() as nursery:
        for family, open_socket in ((IPv4Address, _socket_v4), (IPv6Address, _socket_v6)):
            if family in families:
                try:
                    sock, group = open_socket(interface.index)
                except OSError:
                    continue
                nursery.start_soon(_listen, sock, records)
                nursery.start_soon(_send, sock, group, wait)


async def _send(sock: trio.socket.SocketType, group: tuple[Any, ...], wait: float) -> None:
    question = encode(Message((Question(SERVICE, PTR, unicast=True),)))
    for _ in range(2):
        try:
            await sock.sendto(question, group)
        except OSError:
            return  # unreachable from this interface, but perhaps not from others
        await trio.sleep(wait * ASKED_AGAIN)


async def _listen(sock: trio.socket.SocketType, received: list[DnsRecord]) -> None:
    with sock:
        while True:
            data, _ = await sock.recvfrom(MAX_MESSAGE + 1)
            try:
                message = decode(data)
            except MdnsError:
                continue
            if message.response and len(received) < RECORDS:
                received.extend((*message.answers, *message.additionals))


def _socket_v4(index: int) -> tuple[trio.socket.SocketType, tuple[Any, ...]]:
    sock = trio.socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, struct.pack("=4s4si", bytes(4), bytes(4), index))
    sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 255)
    return sock, (GROUP_V4, PORT)


def _socket_v6(index: int) -> tuple[trio.socket.SocketType, tuple[Any, ...]]:
    sock = trio.socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, index)
    sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, 255)
    return sock, (GROUP_V6, PORT, 0, index)
