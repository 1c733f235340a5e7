"""The network between this computer and a guest of User-Mode Linux: a tap in a network namespace of its own.

No address or route of this computer changes, and simultaneous guests may have the same addresses. The namespace ends
with the last of its descriptors and processes.
"""

from __future__ import annotations

import ctypes
import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import trio

from tests.hil.rig.qemu import GUEST_ADDRESS, HOST_ADDRESS

DEVICE: Final = "tap0"
TUN: Final = "/dev/net/tun"
_NEW_NET: Final = 0x40000000  # CLONE_NEWNET
_libc = ctypes.CDLL(None, use_errno=True)


class Tap:
    """A tap in its namespace; sockets and programs created within `with tap.inside():` belong to the namespace."""

    def __init__(self) -> None:
        with _kept():
            if _libc.unshare(_NEW_NET):
                raise OSError(ctypes.get_errno(), "unshare(CLONE_NEWNET): making a network namespace needs root")
            self._namespace = _own()
            for words in (
                ("link", "set", "lo", "up"),
                ("tuntap", "add", "mode", "tap", "name", DEVICE),
                ("address", "add", f"{HOST_ADDRESS}/24", "dev", DEVICE),
                ("link", "set", DEVICE, "addrgenmode", "none"),
                ("link", "set", DEVICE, "up"),
            ):
                subprocess.run(["ip", *words], check=True, timeout=30)

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Run the block in the namespace. The block must not await."""
        with _kept():
            _enter(self._namespace)
            yield

    async def connect(self, port: int) -> trio.SocketStream:
        """Connect to a TCP port of the guest."""
        with self.inside():
            plain = socket.socket()
        sock = trio.socket.from_stdlib_socket(plain)
        try:
            await sock.connect((GUEST_ADDRESS, port))
        except BaseException:
            sock.close()
            raise
        return trio.SocketStream(sock)

    def listen(self) -> trio.socket.SocketType:
        """Return a socket that listens on a free TCP port, which the guest reaches at HOST_ADDRESS."""
        with self.inside():
            plain = socket.socket()
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            plain.bind((HOST_ADDRESS, 0))
            plain.listen(100)
        return trio.socket.from_stdlib_socket(plain)

    def close(self) -> None:
        """Close the descriptor of the namespace."""
        os.close(self._namespace)


def _own() -> int:
    return os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)


def _enter(namespace: int) -> None:
    if _libc.setns(namespace, _NEW_NET):
        raise OSError(ctypes.get_errno(), "setns")


@contextmanager
def _kept() -> Iterator[None]:
    """Return to the previous namespace at the end of the block."""
    before = _own()
    try:
        yield
    finally:
        _enter(before)
        os.close(before)
