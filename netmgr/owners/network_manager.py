"""NetworkManager, through D-Bus. A device that is taken over is unmanaged until NetworkManager restarts."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import Any, Final

from netmgr.model.facts import Manager
from netmgr.model.network import UsableNetwork
from netmgr.owners.adopt import MAX_ADOPTED, from_network_manager, plain_settings
from netmgr.owners.bus import PROPERTIES, Bus, BusError, get, system_bus
from netmgr.owners.files import read, write
from schema import MachineError
from support import RunBlocking

SERVICE: Final = "org.freedesktop.NetworkManager"
ROOT: Final = "/org/freedesktop/NetworkManager"
DEVICE: Final = f"{SERVICE}.Device"
CONNECTION: Final = f"{SERVICE}.Settings.Connection"
UNKNOWN_DEVICE: Final = f"{SERVICE}.UnknownDevice"
SECRETS: Final = ("802-11-wireless-security", "802-1x")
"""Sections of a connection that have secrets."""
RUNTIME: Final = Path("/run/NetworkManager/conf.d")
"""Folder of settings that end with the next start of the computer."""
RELOAD_CONFIGURATION: Final = 0x1
"""Flag of Reload: only the configuration files."""


def _ignored(interface: str) -> str:
    return f"[device-{interface}]\nmatch-device=interface-name:{interface}\nmanaged=0\n"


async def ignore(
    interface: str,
    run_blocking: RunBlocking,
    folder: Path = RUNTIME,
    bus: Callable[[], AbstractAsyncContextManager[Bus]] = system_bus,
) -> None:
    """Make NetworkManager leave an interface alone that does not exist yet, until the next start of the computer.

    Does nothing where NetworkManager does not run. Raises MachineError.
    """
    try:
        async with bus() as connection:
            path, text = folder / f"{interface}.conf", _ignored(interface)
            await get(connection, SERVICE, ROOT, SERVICE, "Version")
            if await run_blocking(partial(read, path)) != text:
                await run_blocking(partial(write, path, text))
                await connection.call(SERVICE, ROOT, SERVICE, "Reload", "u", RELOAD_CONFIGURATION)
    except BusError as error:
        if not error.absent:
            raise


class NetworkManager:
    """NetworkManager as an owner of interfaces."""

    name: Manager = "NetworkManager"

    def __init__(self, bus: Callable[[], AbstractAsyncContextManager[Bus]] = system_bus) -> None:
        self._bus = bus

    async def manages(self, interface: str) -> bool:
        """Return whether it configures this interface now, or would if a cable or network were there."""
        async with self._bus() as bus:
            device = await _device(bus, interface)
            return device is not None and bool(await get(bus, SERVICE, device, DEVICE, "Managed"))

    async def networks(self, interface: str) -> tuple[UsableNetwork, ...]:
        """Return the networks that it would use on this interface by itself, with their credentials.

        Connections that are only for other interfaces are left out.
        """
        networks: list[UsableNetwork] = []
        async with self._bus() as bus:
            (paths,) = await bus.call(SERVICE, f"{ROOT}/Settings", f"{SERVICE}.Settings", "ListConnections")
            for path in paths[: 10 * MAX_ADOPTED]:
                network = await _network(bus, path)
                if network is not None and network.interface in ("", interface):
                    networks.append(network)
        return tuple(networks[:MAX_ADOPTED])

    async def take(self, interface: str) -> None:
        """Make it leave the interface alone, until `give_back` or the next start of the computer.

        The wifi connection ends; the addresses stay.
        """
        await self._set_managed(interface, managed=False)

    async def give_back(self, interface: str) -> None:
        """Let it configure the interface again."""
        await self._set_managed(interface, managed=True)

    async def _set_managed(self, interface: str, *, managed: bool) -> None:
        async with self._bus() as bus:
            device = await _device(bus, interface)
            if device is not None:
                await bus.call(SERVICE, device, PROPERTIES, "Set", "ssv", DEVICE, "Managed", ("b", managed))


async def _device(bus: Bus, interface: str) -> str | None:
    """Return the object of an interface; None if NetworkManager does not run, or does not know it."""
    try:
        (path,) = await bus.call(SERVICE, ROOT, SERVICE, "GetDeviceByIpIface", "s", interface)
    except BusError as error:
        if error.absent or error.name == UNKNOWN_DEVICE:
            return None
        raise
    return str(path)


async def _network(bus: Bus, path: str) -> UsableNetwork | None:
    """Return the network of a connection. One that vanishes, or whose secrets an agent has, is left out."""
    try:
        (reply,) = await bus.call(SERVICE, path, CONNECTION, "GetSettings")
        settings = plain_settings(reply)
        secrets: dict[str, Any] = {}
        for section in SECRETS:
            if section in settings:
                (secret,) = await bus.call(SERVICE, path, CONNECTION, "GetSecrets", "s", section)
                secrets |= plain_settings(secret)
    except BusError:
        return None
    try:
        return from_network_manager(settings, secrets)
    except (TypeError, ValueError, AttributeError) as error:
        raise MachineError(f"a connection of NetworkManager cannot be read: {error!r}") from None
