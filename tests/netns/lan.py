"""Two computers on one network: this network namespace and another one, joined by a virtual cable."""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

CABLE = "lan0"
HERE, THERE = "10.77.0.1", "10.77.0.2"

_libc = ctypes.CDLL(None, use_errno=True)
_NEW_NET = 0x40000000  # CLONE_NEWNET


class Computer:
    """Another network namespace; created by `computer`."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.path = f"/proc/{pid}/ns/net"

    def run_there(self, *command: str) -> list[str]:
        """Return the command line that runs `command` on the other computer."""
        return ["nsenter", f"--net={self.path}", *command]

    @contextmanager
    def there(self) -> Iterator[None]:
        """Create sockets of the other computer in the block."""
        with open("/proc/self/ns/net") as here, open(self.path) as there:
            _enter(there.fileno())
            try:
                yield
            finally:
                _enter(here.fileno())


def ip(*words: str, prefix: list[str] | None = None) -> None:
    """Run iproute2."""
    subprocess.run([*(prefix or []), "ip", *words], check=True, timeout=10)


@contextmanager
def computer() -> Iterator[Computer]:
    """Create a network namespace without interfaces; needs a separate one, see `tests.e2e.harness.in_namespace`."""
    other = subprocess.Popen(
        ["unshare", "--net", "sh", "-c", "echo ready; exec sleep infinity"], stdout=subprocess.PIPE, text=True
    )
    assert other.stdout is not None
    try:
        assert other.stdout.readline() == "ready\n"
        yield Computer(other.pid)
    finally:
        other.kill()
        other.wait()
        other.stdout.close()


@contextmanager
def lan() -> Iterator[Computer]:
    """Create the network; yield the other computer. Needs a separate network namespace, as `computer` does."""
    assert CABLE not in os.listdir("/sys/class/net")
    with computer() as other:
        ip("link", "add", CABLE, "type", "veth", "peer", "name", CABLE, "netns", str(other.pid))
        for prefix, address in (([], HERE), (other.run_there(), THERE)):
            ip("address", "add", f"{address}/24", "dev", CABLE, prefix=prefix)
            # no automatic IPv6 address: it would appear a second later, in the middle of a scene
            ip("link", "set", CABLE, "addrgenmode", "none", prefix=prefix)
            ip("link", "set", CABLE, "up", prefix=prefix)
        yield other


def _enter(descriptor: int) -> None:
    if _libc.setns(descriptor, _NEW_NET):
        raise OSError(ctypes.get_errno(), "setns")
