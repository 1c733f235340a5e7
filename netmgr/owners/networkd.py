"""systemd-networkd, through D-Bus and a drop-in below /run, so that a restart of the computer undoes everything.

Netplan writes the configuration of systemd-networkd or NetworkManager, and needs nothing of its own here.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import Final

from netmgr.model.facts import Manager
from netmgr.model.network import UsableNetwork
from netmgr.owners.adopt import from_wpa_supplicant
from netmgr.owners.bus import Bus, BusError, get, system_bus
from netmgr.owners.files import read, remove, write
from support import RunBlocking

SERVICE: Final = "org.freedesktop.network1"
ROOT: Final = "/org/freedesktop/network1"
MANAGER: Final = f"{SERVICE}.Manager"
LINK: Final = f"{SERVICE}.Link"
NO_SUCH_LINK: Final = f"{SERVICE}.NoSuchLink"
SYSTEMD: Final = ("org.freedesktop.systemd1", "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager")
NO_SUCH_UNIT: Final = "org.freedesktop.systemd1.NoSuchUnit"
UNMANAGED: Final = """\
# Written by machine-agent: it configures this interface itself, until it deletes this file.
[Match]
Name={interface}

[Link]
Unmanaged=yes
"""


class Networkd:
    """systemd-networkd as an owner of interfaces. `root` is the root of the file system."""

    name: Manager = "systemd-networkd"

    def __init__(
        self,
        run_blocking: RunBlocking,
        bus: Callable[[], AbstractAsyncContextManager[Bus]] = system_bus,
        root: Path = Path("/"),
    ) -> None:
        self._run_blocking, self._bus, self._root = run_blocking, bus, root

    async def manages(self, interface: str) -> bool:
        """Return whether it configures this interface now, or would if a cable or network were there."""
        async with self._bus() as bus:
            link = await _link(bus, interface)
            return link is not None and await get(bus, SERVICE, link[1], LINK, "AdministrativeState") not in (
                "unmanaged",
                "linger",
            )

    async def networks(self, interface: str) -> tuple[UsableNetwork, ...]:
        """Return the networks that it would use on this interface by itself, with their credentials.

        Wifi networks are those of wpa_supplicant's unit for the interface; wired ones are left out.
        """
        file = self._root / f"etc/wpa_supplicant/wpa_supplicant-{interface}.conf"
        return from_wpa_supplicant(await self._run_blocking(partial(read, file)), interface)

    async def take(self, interface: str) -> None:
        """Make it leave the interface alone, until `give_back` or the next start of the computer."""
        text = UNMANAGED.format(interface=interface)
        await self._run_blocking(partial(write, self._drop_in(interface), text))
        async with self._bus() as bus:
            await self._reconfigure(bus, interface)
            await _unit(bus, "StopUnit", interface)

    async def give_back(self, interface: str) -> None:
        """Let it configure the interface again."""
        await self._run_blocking(partial(remove, self._drop_in(interface)))
        async with self._bus() as bus:
            await self._reconfigure(bus, interface)
            if await _enabled(bus, interface):
                await _unit(bus, "StartUnit", interface)

    async def _reconfigure(self, bus: Bus, interface: str) -> None:
        link = await _link(bus, interface)
        if link is not None:
            await bus.call(SERVICE, ROOT, MANAGER, "Reload")
            await bus.call(SERVICE, ROOT, MANAGER, "ReconfigureLink", "i", link[0])

    def _drop_in(self, interface: str) -> Path:
        # The first matching file wins, in the order of names: this one comes before those of people and netplan.
        return self._root / f"run/systemd/network/00-machine-agent-{interface}.network"


async def _link(bus: Bus, interface: str) -> tuple[int, str] | None:
    """Return index and object of an interface; None if systemd-networkd does not run, or does not know it."""
    try:
        index, path = await bus.call(SERVICE, ROOT, MANAGER, "GetLinkByName", "s", interface)
    except BusError as error:
        if error.absent or error.name == NO_SUCH_LINK:
            return None
        raise
    return int(index), str(path)


async def _unit(bus: Bus, method: str, interface: str) -> None:
    try:
        await bus.call(*SYSTEMD, method, "ss", f"wpa_supplicant@{interface}.service", "replace")
    except BusError as error:
        if error.name != NO_SUCH_UNIT:
            raise


async def _enabled(bus: Bus, interface: str) -> bool:
    try:
        (state,) = await bus.call(*SYSTEMD, "GetUnitFileState", "s", f"wpa_supplicant@{interface}.service")
    except BusError:
        return False
    return bool(state == "enabled")
