"""Requests to the kernel on a netlink socket."""

from __future__ import annotations

import errno
import socket
from typing import Any, Final

import trio

from netmgr.netlink.codecs import CLASSES, Classes, NetlinkError, encode, marshal
from schema import ErrorKind, MachineError

# linux/netlink.h
REQUEST, ACK, DUMP, EXCLUSIVE, CREATE, REPLACE = 0x1, 0x4, 0x300, 0x200, 0x400, 0x100
_INTERRUPTED: Final = 0x10  # NLM_F_DUMP_INTR
_ERROR, _DONE = 2, 3
_SOL_NETLINK, _EXT_ACK = 270, 11
_BUFFER: Final = 1 << 20  # bytes that the kernel keeps for a slow reader
_READ: Final = 1 << 16  # bytes; the kernel's dumps use at most 32 KiB for each datagram
_DUMPS: Final = 5  # attempts, if the tables change during a dump
_KINDS: Final = {
    errno.EPERM: ErrorKind.PERMISSION,
    errno.ENODEV: ErrorKind.NOT_FOUND,
    errno.ESRCH: ErrorKind.NOT_FOUND,
    errno.EADDRNOTAVAIL: ErrorKind.NOT_FOUND,
    errno.EEXIST: ErrorKind.EXISTS,
    errno.EINVAL: ErrorKind.INVALID,
    errno.ENETUNREACH: ErrorKind.PRECONDITION,
}


class KernelError(MachineError):
    """Refusal of the kernel; `number` is its errno."""

    def __init__(self, number: int, text: str) -> None:
        super().__init__(text, kind=_KINDS.get(number, ErrorKind.UNAVAILABLE))
        self.number = number


def open_socket(groups: int = 0, protocol: int = socket.NETLINK_ROUTE) -> socket.socket:
    """Open a netlink socket that receives the notifications of multicast groups (RTMGRP_..., as bits)."""
    connection = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, protocol)
    try:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
        connection.setsockopt(_SOL_NETLINK, _EXT_ACK, 1)  # errors have a text
        connection.bind((0, groups))
        connection.setblocking(False)
    except OSError:
        connection.close()
        raise
    return connection


class NetlinkRequests:
    """Socket for requests, one at a time. Close it, or use it as a context manager.

    `classes` are those of the messages, by type: of rtnetlink, unless others are passed with their `protocol`.
    A cancelled request may have been carried out; its late answers are recognized by their number, and ignored.
    """

    def __init__(self, classes: Classes = CLASSES, protocol: int = socket.NETLINK_ROUTE) -> None:
        self._socket = trio.socket.from_stdlib_socket(open_socket(protocol=protocol))
        self._classes = classes
        self._marshal = marshal(classes)
        self._lock = trio.Lock()
        self._number = 0

    def __enter__(self) -> NetlinkRequests:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    async def change(
        self, kind: int, fields: dict[str, int], attributes: list[tuple[str, Any]], *, flags: int = 0
    ) -> None:
        """Send a request that changes something. Raises KernelError with the kernel's reason."""
        async with self._lock:
            await self._exchange(kind, REQUEST | ACK | flags, fields, attributes)

    async def ask(self, kind: int, fields: dict[str, int], attributes: list[tuple[str, Any]]) -> list[Any]:
        """Return the messages that answer a request. Raises KernelError with the kernel's reason."""
        async with self._lock:
            messages, _ = await self._exchange(kind, REQUEST | ACK, fields, attributes)
            return messages

    async def dump(self, kind: int, family: int = socket.AF_UNSPEC) -> list[Any]:
        """Return all messages of a table of rtnetlink. UNAVAILABLE if it changes faster than it can be read."""
        return await self.dump_all(kind, {"family": family}, [])

    async def dump_all(self, kind: int, fields: dict[str, int], attributes: list[tuple[str, Any]]) -> list[Any]:
        """Return all messages that answer a request. UNAVAILABLE if they change faster than they can be read."""
        async with self._lock:
            for _ in range(_DUMPS):
                messages, whole = await self._exchange(kind, REQUEST | DUMP, fields, attributes)
                if whole:
                    return messages
        raise MachineError("the tables of the kernel change too fast to be read", kind=ErrorKind.UNAVAILABLE)

    async def _exchange(
        self, kind: int, flags: int, fields: dict[str, int], attributes: list[tuple[str, Any]]
    ) -> tuple[list[Any], bool]:
        """Return the messages that answer a request, and whether they are from one state of the kernel."""
        self._number = self._number % 0xFFFF_FFFF + 1
        number, whole = self._number, True
        messages: list[Any] = []
        await self._socket.send(encode(self._classes[kind], kind, flags, number, fields, attributes))
        while True:
            data = await self._receive()
            for message in self._marshal.parse(data):
                header = message["header"]
                if header["sequence_number"] != number:
                    continue
                whole = whole and not header["flags"] & _INTERRUPTED
                if (error := header["error"]) is not None:
                    raise _explained(error)
                if header["type"] in (_ERROR, _DONE):
                    return messages, whole
                messages.append(message)

    async def _receive(self) -> bytes:
        while True:
            data, (sender, *_) = await self._socket.recvfrom(_READ)
            if sender == 0:  # other processes can send to this socket too
                return bytes(data)


def _explained(error: Exception) -> Exception:
    if not isinstance(error, NetlinkError):
        return error
    number, text = error.code, str(error.args[1] or "")
    return KernelError(number, f"{text or errno.errorcode.get(number, number)}")
