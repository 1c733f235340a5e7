"""ifupdown: interfaces of /etc/network/interfaces."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Final

from netmgr.model.facts import Manager
from netmgr.model.network import UsableNetwork
from netmgr.owners.adopt import from_wpa_supplicant
from netmgr.owners.files import read
from netmgr.programs import run
from support import RunBlocking

STATE: Final = "run/network/ifstate"
LIMIT: Final = 90.0
"""Seconds for `ifup`, which waits for a lease of DHCP."""


class Ifupdown:
    """ifupdown as an owner of interfaces. `root` is the root of the file system."""

    name: Manager = "ifupdown"

    def __init__(self, run_blocking: RunBlocking, root: Path = Path("/")) -> None:
        self._run_blocking, self._root = run_blocking, root

    async def manages(self, interface: str) -> bool:
        """Return whether it configures this interface now, or would if a cable or network were there.

        An interface that was configured by `ifup`. The loopback interface is not one.
        """
        text = await self._run_blocking(partial(read, self._root / STATE))
        return interface in {line.partition("=")[0].strip() for line in text.splitlines()} - {"", "lo"}

    async def networks(self, interface: str) -> tuple[UsableNetwork, ...]:
        """Return the networks that it would use on this interface by itself, with their credentials.

        Options such as `wpa-ssid` of /etc/network/interfaces are left out.
        """
        file = self._root / "etc/wpa_supplicant/wpa_supplicant.conf"
        return from_wpa_supplicant(await self._run_blocking(partial(read, file)), interface)

    async def take(self, interface: str) -> None:
        """Make it leave the interface alone, until `give_back` or the next start of the computer."""
        await run(["ifdown", interface], limit=LIMIT)

    async def give_back(self, interface: str) -> None:
        """Let it configure the interface again."""
        await run(["ifup", interface], limit=LIMIT)
