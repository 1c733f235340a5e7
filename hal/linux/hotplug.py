"""Devices coming and going, as the kernel tells on a netlink socket.

Where udev runs, its own group is heard: its messages come after its rules, so the device's node has its final owner,
mode and links. Elsewhere the kernel's. Only root may send to these groups; who else does is not believed.
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
_BUFFER: Final = 1024 * 1024  # bytes of the socket: a hub with everything on it
_LONGEST: Final = 64 * 1024  # bytes of a message: the kernel's are at most 2 KiB of properties, udev's a few KiB
_CREDENTIALS: Final = struct.Struct("iII")  # struct ucred: process, user, group

UDEV_CONTROL: Final = Path("/run/udev/control")
"""Where it is, udev runs."""


@asynccontextmanager
async def listen() -> AsyncIterator[HotplugEvents]:
    """Listen until left. HalError where the system has no such socket or does not allow it."""
    udev = UDEV_CONTROL.exists()
    with _open(_UDEV if udev else _KERNEL) as sock:
        yield _Events(sock, udev)


def _open(group: int) -> socket.socket:
    try:
        sock = socket.socket(
            socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK, _NETLINK_KOBJECT_UEVENT
        )
    except OSError as error:
        raise HalError.of(error, "events of devices") from error
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        try:
            sock.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER)
        except PermissionError:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
        sock.bind((0, group))
    except OSError as error:
        sock.close()
        raise HalError.of(error, "events of devices") from error
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
                raise HalError.of(error, "events of devices") from error
            else:
                if event is not None:
                    return event

    def _drain(self) -> None:
        """Take what is left: until then the kernel drops every further event, and says so only once."""
        while True:
            try:
                self._sock.recv(_LONGEST)
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno != errno.ENOBUFS:
                    raise HalError.of(error, "events of devices") from error

    def accepted(
        self, data: bytes, ancillary: list[tuple[int, int, bytes]], flags: int, sender: object
    ) -> HotplugEvent | None:
        """The event of a message, if it is a whole one of somebody to be believed."""
        if flags & socket.MSG_TRUNC or not self._trusted(sender, ancillary):
            return None
        return parse_udev(data) if self._udev else parse_kernel(data)

    def _trusted(self, sender: object, ancillary: list[tuple[int, int, bytes]]) -> bool:
        """The kernel itself is port 0 and cannot be imitated; udev is root."""
        if not self._udev:
            return sender == (0, _KERNEL)
        return any(
            level == socket.SOL_SOCKET and kind == socket.SCM_CREDENTIALS and _CREDENTIALS.unpack(data)[1] == 0
            for level, kind, data in ancillary
        )
