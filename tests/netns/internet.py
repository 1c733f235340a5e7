"""An Internet for scenes: a cloud and a TURN server here, a client and a machine in networks of their own.

    router: 203.0.113.1 (here) - 10.1.0.2 (client), behind 198.51.100.1 - 10.2.0.2 (machine), behind 198.51.100.2

With IPv6, addresses are not translated. `Internet.router.links` sets NAT, delay, loss and rate, also
while connections exist. Needs separate network and mount namespaces.
"""

from __future__ import annotations

import ipaddress
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager, nullcontext
from pathlib import Path
from typing import Final

import trio

from tests.netns.lan import Computer, computer, ip
from tests.netns.router import Filter, Link, Nat, Router, tun

HERE: Final = "here"
CLIENT: Final = "client"
MACHINE: Final = "machine"
DEVICE: Final = "eth0"  # not "tun0": libwebrtc gives interfaces with names of VPNs a low preference
ADDRESSES: Final = {
    HERE: {4: "203.0.113.1", 6: "2001:db8::1"},
    CLIENT: {4: "10.1.0.2", 6: "2001:db8:1::2"},
    MACHINE: {4: "10.2.0.2", 6: "2001:db8:2::2"},
}
PUBLIC: Final = {CLIENT: "198.51.100.1", MACHINE: "198.51.100.2"}

TURN: Final = f"turn:{ADDRESSES[HERE][4]}:3478"
STUN: Final = f"stun:{ADDRESSES[HERE][4]}:3478"
SECRET: Final = "shared by the cloud and the TURN server"
turnserver: Final = shutil.which("turnserver")


class Internet:
    """The network and its computers; created by `internet`."""

    def __init__(self, router: Router, computers: dict[str, Computer], addresses: dict[str, str]) -> None:
        self.router = router
        self.addresses = addresses
        self._computers = computers

    def at(self, name: str, *command: str) -> list[str]:
        """Return the command line that runs `command` on a computer."""
        return list(command) if name == HERE else self._computers[name].run_there(*command)

    def nat(self, name: str, *, symmetric: bool = False, filter: Filter = Filter.PORT) -> None:  # noqa: A002
        """Set the kind of the NAT of a computer, which keeps its mappings. It gets one if it has none."""
        link = self.router.links[name]
        link.nat = link.nat or Nat(PUBLIC[name])
        link.nat.symmetric, link.nat.filter = symmetric, filter

    def renumber(self, name: str, public: str) -> None:
        """Replace a NAT by one with another public address and without mappings, as when a router connects again."""
        self.router.links[name].nat = Nat(public)

    def each(self, **properties: float) -> None:
        """Set properties of the links of client and machine."""
        for name in (CLIENT, MACHINE):
            for key, value in properties.items():
                setattr(self.router.links[name], key, value)

    def readdress(self, name: str, old: str, new: str) -> None:
        """Replace an IPv4 address of a computer, as when it changes to another network."""
        prefix = self.at(name)
        ip("address", "del", f"{old}/24", "dev", DEVICE, prefix=prefix)
        ip("address", "add", f"{new}/24", "dev", DEVICE, prefix=prefix)
        ip("route", "replace", "default", "dev", DEVICE, prefix=prefix)


@asynccontextmanager
async def internet(*, version: int = 4, nat: bool = True) -> AsyncIterator[Internet]:
    """Create the network, with one version of IP; `nat` is at both ends and translates only IPv4."""
    with ExitStack() as stack:
        computers = {name: stack.enter_context(computer()) for name in (CLIENT, MACHINE)}
        router = Router()
        for name, addresses in ADDRESSES.items():
            with computers[name].there() if name in computers else nullcontext():
                descriptor = stack.enter_context(tun(DEVICE))
            network = ipaddress.ip_interface(f"{addresses[version]}/{24 if version == 4 else 48}")
            router.links[name] = Link(
                descriptor, network.network, Nat(PUBLIC[name]) if nat and name in PUBLIC else None
            )
            prefix = computers[name].run_there() if name in computers else []
            ip("link", "set", "lo", "up", prefix=prefix)
            ip("link", "set", DEVICE, "addrgenmode", "none", prefix=prefix)
            ip("link", "set", DEVICE, "up", prefix=prefix)
            ip("address", "add", str(network), "dev", DEVICE, *(["nodad"] if version == 6 else []), prefix=prefix)
            ip(f"-{version}", "route", "add", "default", "dev", DEVICE, prefix=prefix)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(router.run)
            yield Internet(router, computers, {name: both[version] for name, both in ADDRESSES.items()})
            nursery.cancel_scope.cancel()


@asynccontextmanager
async def cables() -> AsyncIterator[Internet]:
    """Create one network of the same computers without the router: virtual cables to a switch of the kernel."""
    addresses = {HERE: ADDRESSES[HERE][4], CLIENT: "203.0.113.2", MACHINE: "203.0.113.3"}
    with ExitStack() as stack:
        computers = {name: stack.enter_context(computer()) for name in (CLIENT, MACHINE)}
        ip("link", "add", DEVICE, "type", "bridge")
        ip("address", "add", f"{addresses[HERE]}/24", "dev", DEVICE)
        ip("link", "set", DEVICE, "addrgenmode", "none", "up")
        for name, other in computers.items():
            prefix = other.run_there()
            ip("link", "add", name, "type", "veth", "peer", "name", DEVICE, "netns", str(other.pid))
            ip("link", "set", name, "master", DEVICE, "addrgenmode", "none", "up")
            ip("link", "set", "lo", "up", prefix=prefix)
            ip("address", "add", f"{addresses[name]}/24", "dev", DEVICE, prefix=prefix)
            ip("link", "set", DEVICE, "addrgenmode", "none", "up", prefix=prefix)
            ip("route", "add", "default", "via", addresses[HERE], prefix=prefix)
        yield Internet(Router(), computers, addresses)


def name_hosts(folder: Path, *lines: str) -> None:
    """Replace /etc/hosts in this mount namespace."""
    file = folder / "hosts"
    file.write_text("\n".join(["127.0.0.1 localhost", "::1 localhost", *lines, ""]))
    subprocess.run(["mount", "--bind", str(file), "/etc/hosts"], check=True)


@contextmanager
def turn(folder: Path) -> Iterator[None]:
    """Run coturn here, as a STUN server and as a TURN server that accepts credentials made with SECRET."""
    assert turnserver is not None
    words = [turnserver, "-n", "--use-auth-secret", f"--static-auth-secret={SECRET}", "--realm=turn.test"]
    words += ["--no-tls", "--no-dtls", "--no-cli", f"--listening-ip={ADDRESSES[HERE][4]}", "--allow-loopback-peers"]
    words += [f"--pidfile={folder}/turn.pid", f"--userdb={folder}/turn.db", "--log-file=stdout", "--simple-log"]
    with (folder / "turn.log").open("wb") as log:
        process = subprocess.Popen(words, stdout=log, stderr=log)
    try:
        yield
    finally:
        process.kill()
        process.wait()
