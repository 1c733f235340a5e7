"""Name servers of the system: through systemd-resolved if it answers for the system, or in /etc/resolv.conf."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from netmgr.owners.bus import Bus, system_bus
from netmgr.owners.files import read, remove, write
from schema import ErrorKind, MachineError
from support import RunBlocking

RESOLV_CONF: Final = Path("/etc/resolv.conf")
RESOLVED: Final = "/systemd/resolve/"
"""Part of the path to which /etc/resolv.conf is linked where systemd-resolved answers for the system."""
MARK: Final = "# Written by machine-agent. The former file is "
SAVED: Final = ".before-machine-agent"
MAX_SERVERS: Final = 3
"""Name servers that the C library uses (resolv.conf(5))."""
SERVICE: Final = "org.freedesktop.resolve1"
MANAGER: Final = "org.freedesktop.resolve1.Manager"
OBJECT: Final = "/org/freedesktop/resolve1"

Servers = Mapping[str, tuple[str, ...]]
"""By interface, in the order of preference."""


class Resolver:
    """Sets the name servers of the system, and gives back what it has changed."""

    def __init__(
        self,
        run_blocking: RunBlocking,
        *,
        file: Path = RESOLV_CONF,
        bus: Callable[[], AbstractAsyncContextManager[Bus]] = system_bus,
        index_of: Callable[[str], int] = socket.if_nametoindex,
    ) -> None:
        self._run_blocking, self._file, self._bus, self._index_of = run_blocking, file, bus, index_of
        self._linked: set[str] = set()  # interfaces whose servers systemd-resolved has from here

    async def set(self, servers: Servers, domains: Servers) -> None:
        """Replace the name servers and search domains of all interfaces. UNAVAILABLE if that is not possible."""
        if await self._run_blocking(self._has_resolved):
            await self._set_links(servers, domains)
        else:
            await self._run_blocking(partial(self._write, servers, domains))

    async def give_back(self) -> None:
        """Undo all changes."""
        await self.set({}, {})

    def _has_resolved(self) -> bool:
        return self._file.is_symlink() and RESOLVED in str(self._file.readlink())

    async def _set_links(self, servers: Servers, domains: Servers) -> None:
        async with self._bus() as bus:
            for name in [*servers, *(self._linked - servers.keys())]:
                try:
                    index = self._index_of(name)
                except OSError:  # it was removed, and its servers with it
                    self._linked.discard(name)
                    continue
                for method, signature, arguments in link_calls(index, servers.get(name, ()), domains.get(name, ())):
                    await bus.call(SERVICE, OBJECT, MANAGER, method, signature, *arguments)
                (self._linked.add if name in servers else self._linked.discard)(name)

    def _write(self, servers: Servers, domains: Servers) -> None:
        """Write the file, or restore the former one if there are no servers. Blocks."""
        saved = self._file.with_name(self._file.name + SAVED)
        present = read(self._file)
        is_ours = present.startswith(MARK)
        if not servers:
            if is_ours:
                write(self._file, read(saved))
                remove(saved)
            return
        if self._file.is_symlink():
            raise MachineError(
                f"{self._file} is a link to {self._file.readlink()}: another program sets the name servers",
                kind=ErrorKind.PRECONDITION,
                remedy=f"replace the link by a file: cp --remove-destination $(readlink -f {self._file}) {self._file}",
            )
        if not is_ours:
            write(saved, present)
        text = content(saved, read(saved), servers, domains)
        if text != present:
            write(self._file, text)


def link_calls(
    index: int, servers: Iterable[str], domains: Iterable[str]
) -> tuple[tuple[str, str, tuple[object, ...]], ...]:
    """Return the calls of systemd-resolved for an interface: method, signature and arguments."""
    addresses = [ip_address(server) for server in servers]
    if not addresses:
        return (("RevertLink", "i", (index,)),)
    packed = [(socket.AF_INET if entry.version == 4 else socket.AF_INET6, entry.packed) for entry in addresses]
    return (
        ("SetLinkDNS", "ia(iay)", (index, packed)),
        ("SetLinkDomains", "ia(sb)", (index, [(domain, False) for domain in domains])),
        ("SetLinkDefaultRoute", "ib", (index, True)),
    )


def content(saved: Path, former_text: str, servers: Servers, domains: Servers) -> str:
    """Return the content of resolv.conf. Servers of the former file come last, for interfaces of other programs."""
    addresses = [address for entry in servers.values() for address in entry]
    names = [name for entry in domains.values() for name in entry]
    kept: list[str] = []
    for line in former_text.splitlines():
        word, _, value = line.strip().partition(" ")
        if word == "nameserver":
            addresses.append(value.strip())
        elif word == "search":
            names += value.split()
        elif word == "options":
            kept.append(line.strip())
    lines = [f"{MARK}{saved}."]
    lines += [f"search {' '.join(dict.fromkeys(names))}"] if names else []
    lines += [f"nameserver {address}" for address in list(dict.fromkeys(addresses))[:MAX_SERVERS]]
    return "\n".join([*lines, *kept]) + "\n"
