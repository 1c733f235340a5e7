"""Changes of links, addresses and routes, as events of the kernel."""

from __future__ import annotations

import errno
import socket
from typing import Final

import trio

from netmgr.netlink.socket import open_socket

# RTMGRP_... of linux/rtnetlink.h
LINKS, IPV4_ADDRESSES, IPV4_ROUTES, IPV6_ADDRESSES, IPV6_ROUTES = 0x1, 0x10, 0x40, 0x100, 0x400
ALL: Final = LINKS | IPV4_ADDRESSES | IPV4_ROUTES | IPV6_ADDRESSES | IPV6_ROUTES
_READ: Final = 1 << 16
_BATCH: Final = 1000  # notifications that one call reads at most; the next call returns at once


class NetlinkChanges:
    """Notices changes from its creation on. Close it, or use it as a context manager.

    It does not tell what has changed: the reader dumps the tables, and so cannot miss anything, also if the kernel had
    to drop notifications.
    """

    def __init__(self, groups: int = ALL) -> None:
        self._socket = open_socket(groups)

    def __enter__(self) -> NetlinkChanges:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the socket; a task that waits gets trio.ClosedResourceError."""
        trio.lowlevel.notify_closing(self._socket)
        self._socket.close()

    async def wait(self) -> None:
        """Wait until something has changed since the last call, and forget all changes until now."""
        while True:
            await trio.lowlevel.wait_readable(self._socket)
            if self._read_all():
                return

    def _read_all(self) -> bool:
        """Read what is there; return whether something of it is from the kernel."""
        changed = False
        for _ in range(_BATCH):
            try:
                _, (sender, *_) = self._socket.recvfrom(_READ, socket.MSG_DONTWAIT)
            except BlockingIOError:
                break
            except OSError as error:
                if error.errno != errno.ENOBUFS:  # otherwise notifications were dropped
                    raise
                sender = 0
            changed = changed or sender == 0
        return changed
