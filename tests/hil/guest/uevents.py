"""Wait for devices through udev's messages, so that permissions and links exist too when a wait ends."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import TypeVar

import trio

KOBJECT_UEVENT = 15  # NETLINK_KOBJECT_UEVENT of linux/netlink.h
UDEV_GROUP = 2  # sent by udev after its rules were applied (the kernel's own group is 1)
KERNEL_GROUP = 1
Found = TypeVar("Found")


async def wait_until(look: Callable[[], Found]) -> Found:
    """Call `look` now and after every event, until its result is true; return the result."""
    sock = socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, KOBJECT_UEVENT)
    sock.bind((0, UDEV_GROUP | KERNEL_GROUP))
    with trio.socket.from_stdlib_socket(sock) as events:
        while not (result := look()):
            try:
                await events.recv(65536)
            except OSError:  # ENOBUFS: some of many events were lost; look again
                continue
        return result
