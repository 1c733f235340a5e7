"""Hot-plug events of devices, from a netlink socket.

If udev runs, its own multicast group is used: its messages are sent after its rules, when the device node has its final
owner, mode and links. Otherwise the group of the kernel is used. Messages that are not from root are ignored.
"""

from __future__ import annotations

import errno
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import trio

from hal.errors import HalError
from hal.linux.uevent import LOST, parse_kernel, parse_udev
from hal.ports.hotplug import HotplugEvent, HotplugEvents

# From linux/netlink.h, and sd-device's device-monitor.c for udev's group
_NETLINK_KOBJECT_UEVENT: Final = 15
_KERNEL: Final = 1
_UDEV: Final = 2

_SO_RCVBUFFORCE: Final = 33  # asm-generic/socket.h
_BUFFER: Final = 1024 * 1024  # bytes of the socket buffer, enough for a hub with many devices
_LONGEST: Final = 64 * 1024  # bytes of a message: the kernel's are at most 2 KiB of properties, udev's a few KiB
_CREDENTIALS: Final = struct.Struct("iII")  # struct ucred: process, user, group

UDEV_CONTROL: Final = Path("/run/udev/control")
"""This file exists if udev runs."""


@asynccontextmanager
async def listen() -> AsyncIterator[HotplugEvents]:
    """Listen while the context is open. HalError if the system has no such socket or denies access."""
    udev = UDEV_CONTROL.exists()
    with _open(_UDEV if udev else _KERNEL) as sock:
        yield _Events(sock, udev)


def _open(group: int) -> socket.socket:
    try:
        sock = socket.socket(
            socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK, _NETLINK_KOBJECT_UEVENT
        )
    except OSError as error:
        raise HalError.of(error, "device events") from error
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        try:
            sock.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER)
        except PermissionError:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
        sock.bind((0, group))
    except OSError as error:
        sock.close()
        raise HalError.of(error, "device events") from error
    return sock


class _Events:
    def __init__(self, sock: socket.socket, udev: bool) -> None:
        self._sock = sock
        self._udev = udev

    def __aiter__(self) -> _Events:
        return self

    async def __anext__(self) -> HotplugEvent:
        await trio.lowlevel.checkpoint()
        while True:
            try:
                event = self.accepted(*self._sock.recvmsg(_LONGEST, socket.CMSG_SPACE(_CREDENTIALS.size)))
            except BlockingIOError:
                await trio.lowlevel.wait_readable(self._sock)
            except OSError as error:
                if error.errno == errno.ENOBUFS:
                    self._drain()
                    return LOST
                raise HalError.of(error, "device events") from error
            else:
                if event is not None:
                    return event

    def _drain(self) -> None:
        """Read all pending messages: until then the kernel drops further events, and it reports that only once."""
        while True:
            try:
                self._sock.recv(_LONGEST)
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno != errno.ENOBUFS:
                    raise HalError.of(error, "device events") from error

    def accepted(
        self, data: bytes, ancillary: list[tuple[int, int, bytes]], flags: int, sender: object
    ) -> HotplugEvent | None:
        """Return the event of a message; None if it is incomplete or not from a trusted sender."""
        if flags & socket.MSG_TRUNC or not self._trusted(sender, ancillary):
            return None
        return parse_udev(data) if self._udev else parse_kernel(data)

    def _trusted(self, sender: object, ancillary: list[tuple[int, int, bytes]]) -> bool:
        """Return whether a message is from the kernel, whose port 0 cannot be forged, or from udev, which is root."""
        if not self._udev:
            return sender == (0, _KERNEL)
        return any(
            level == socket.SOL_SOCKET and kind == socket.SCM_CREDENTIALS and _CREDENTIALS.unpack(data)[1] == 0
            for level, kind, data in ancillary
        )
