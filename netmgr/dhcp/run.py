"""Run the DHCP client or server on an interface."""

from __future__ import annotations

import random
import socket
from collections.abc import Callable
from ipaddress import IPv4Address, IPv4Interface

import structlog
import trio

from netmgr.dhcp import client as machine
from netmgr.dhcp.codec import ANY, BROADCAST, DhcpKind, DhcpMessage
from netmgr.dhcp.server import DhcpServer
from netmgr.dhcp.socket import BROADCAST as EVERYWHERE
from netmgr.dhcp.socket import CLIENT_PORT, SERVER_PORT, PacketSocket
from netmgr.model.facts import AddressLease
from schema import ErrorKind, MachineError

_log = structlog.get_logger("netmgr.dhcp")


async def run_client(
    interface: str,
    identity: machine.ClientIdentity,
    remembered: AddressLease | None,
    changed: Callable[[AddressLease | None], None],
    *,
    in_use: AddressLease | None = None,
    chance: machine.Chance = random.random,
) -> None:
    """Keep a lease until cancelled; `changed` is called with each new one, and with None when it is lost.

    Raises MachineError if the interface cannot be used. A restart asks for the remembered address first. `in_use` is
    that lease if its address is still that of the interface: it stays in use until the server answers or does not.
    """
    with _opened(interface, CLIENT_PORT) as connection:
        lease = in_use
        step = machine.start(identity, remembered, trio.current_time(), chance)
        while True:
            for sending in step.send:
                await _send(connection, step.client, sending)
            if step.client.lease != lease and (in_use is None or step.client.phase is not machine.DhcpPhase.REBOOTING):
                lease = step.client.lease
                changed(lease)
            message = None
            with trio.move_on_at(step.client.deadline):
                message, _ = await connection.receive()
            now = trio.current_time()
            if message is None:
                step = machine.expired(step.client, now, chance)
            else:
                step = machine.received(step.client, message, now, chance)


async def _send(connection: PacketSocket, client: machine.Client, sending: machine.Send) -> None:
    """Send a message. One that is lost is repeated in any case, so that errors need no other answer."""
    source = client.lease.address.ip if client.lease is not None else ANY
    try:
        if sending.server is not None:
            await connection.send_routed(sending.message, source, sending.server)
        else:
            await connection.send(sending.message, source)
    except OSError as error:
        _log.debug("a message could not be sent", error=error.strerror)


async def run_server(
    interface: str,
    address: IPv4Interface,
    portal: str = "",
    *,
    task_status: trio.TaskStatus[DhcpServer] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Answer clients until cancelled. `started` with the server when it receives. Raises MachineError."""
    with _opened(interface, SERVER_PORT) as connection, _reserved(interface, address.ip):
        server = DhcpServer(address, portal)
        task_status.started(server)
        while True:
            message, _ = await connection.receive()
            answer = server.received(message, trio.current_time())
            if answer is None:
                continue
            target, mac = destination(message, answer)
            try:
                await connection.send(answer, address.ip, target, mac)
            except OSError as error:
                _log.debug("an answer could not be sent", error=error.strerror)


def destination(message: DhcpMessage, answer: DhcpMessage) -> tuple[IPv4Address, bytes]:
    """Return the address and the hardware address to which an answer is sent (RFC 2131, 4.1)."""
    if answer.kind == DhcpKind.NAK or (message.ciaddr.is_unspecified and message.flags & BROADCAST):
        return EVERYWHERE, b"\xff" * 6
    return (message.ciaddr if not message.ciaddr.is_unspecified else answer.yiaddr), message.mac


def _opened(interface: str, port: int) -> PacketSocket:
    try:
        return PacketSocket(interface, port)
    except OSError as error:
        raise MachineError(
            f"DHCP cannot use {interface}: {error.strerror}", kind=ErrorKind.UNAVAILABLE,
            remedy="machine-agent needs root, or CAP_NET_RAW, for DHCP",
        ) from None  # fmt: skip


def _reserved(interface: str, address: IPv4Address) -> socket.socket:
    """Return a socket with the port of the server, so that the kernel does not answer clients that it is closed."""
    connection = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
    try:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, interface.encode())
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        connection.bind((str(address), SERVER_PORT))
    except OSError as error:
        connection.close()
        raise MachineError(
            f"the DHCP server cannot use port {SERVER_PORT} of {interface}: {error.strerror}",
            kind=ErrorKind.UNAVAILABLE, remedy=f"end the program that uses it: ss -lunp 'sport = :{SERVER_PORT}'",
        ) from None  # fmt: skip
    return connection
