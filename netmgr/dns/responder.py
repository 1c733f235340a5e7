"""DNS server of the hotspot: answers with the address of the device, so that phones open the portal."""

from __future__ import annotations

import socket
from contextlib import suppress
from ipaddress import IPv4Address
from typing import Final

import trio

from rpc.network.mdns import ANY, A, DnsRecord, MdnsError, Message, decode, encode, key
from schema import ErrorKind, MachineError

PORT: Final = 53
SETUP: Final = "setup"
"""Top-level name that is answered in any case."""
TTL: Final = 5
"""Seconds for which clients keep an answer: soon after the hotspot has ended, it is wrong."""
MAX_QUERY: Final = 512
"""Bytes of a query over UDP (RFC 1035)."""
_AUTHORITATIVE: Final = 0x8400  # QR and AA
_RECURSION: Final = 0x0100  # RD, which is copied from the query
_REFUSED: Final = 5


def answer(data: bytes, address: IPv4Address, *, redirect_all: bool) -> bytes | None:
    """Return the answer to a query; None for what is none.

    Names have one IPv4 address and nothing else. Unless all are redirected, names that do not end in `.setup` are
    refused, which clients do not remember.
    """
    try:
        query = decode(data)
    except MdnsError:
        return None
    if query.response or len(query.questions) != 1:
        return None
    (question,) = query.questions
    name = key(question.name)
    is_ours = redirect_all or name[-1:] == (SETUP,)
    has_address = is_ours and question.type in (A, ANY)
    records = (DnsRecord(question.name, A, address, TTL),) if has_address else ()
    try:
        reply = encode(Message((question,), records, response=True, id=query.id))
    except (MdnsError, UnicodeError):
        return None
    flags = _AUTHORITATIVE | (int.from_bytes(data[2:4], "big") & _RECURSION) | (0 if is_ours else _REFUSED)
    return reply[:2] + flags.to_bytes(2, "big") + reply[4:]


async def serve_names(
    interface: str,
    address: IPv4Address,
    *,
    redirect_all: bool,
    port: int = PORT,
    task_status: trio.TaskStatus[int] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Answer queries that arrive through an interface until cancelled; report the port.

    An empty interface means all. Raises MachineError if the port is in use, and OSError if the interface is removed.
    """
    with _opened(interface, address, port) as connection:
        task_status.started(connection.getsockname()[1])
        while True:
            data, client = await connection.recvfrom(MAX_QUERY)
            reply = answer(data, address, redirect_all=redirect_all)
            if reply is not None:
                with suppress(OSError):  # the client has gone
                    await connection.sendto(reply, client)


def _opened(interface: str, address: IPv4Address, port: int) -> trio.socket.SocketType:
    connection = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
    try:
        if interface:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, interface.encode())
        connection.bind((str(address), port))
        connection.setblocking(False)
    except OSError as error:
        connection.close()
        raise MachineError(
            f"the DNS server of the hotspot cannot use port {port} of {address}: {error.strerror}",
            kind=ErrorKind.UNAVAILABLE, remedy=f"end the program that uses it: ss -lunp 'sport = :{port}'",
        ) from None  # fmt: skip
    return trio.socket.from_stdlib_socket(connection)
