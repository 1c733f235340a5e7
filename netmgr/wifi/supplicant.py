"""wpa_supplicant of a radio, with its interfaces: the client, and the hotspot."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

import trio

from netmgr.model.facts import AccessPoint, Association
from netmgr.model.network import UsableNetwork
from netmgr.model.settings import Hotspot
from netmgr.wifi.attempt import Report
from netmgr.wifi.control import Control, connect
from netmgr.wifi.interface import WifiInterface
from netmgr.wifi.network import quietest
from netmgr.wifi.process import PROGRAM, SETTINGS, START_LIMIT, UNIT_PREFIX, RunningSupplicant, running, stop_unit
from nursery_graph import Restart, back_off
from schema import ErrorKind, MachineError
from support import unwrap

FOLDER: Final = Path("/run/machine-agent/wifi")
"""Folder of the control sockets, with a folder for each radio."""
_RESTART: Final = Restart(first_delay=1.0, max_delay=60.0)
_HEALTHY: Final = 60.0  # seconds after which an end counts as the first one again


def _ignore(_: str) -> None:
    """Drop an event of the global socket, which concerns no interface."""


class Supplicant:
    """wpa_supplicant of one radio, while `run` runs. Interfaces are added when they are first used.

    `report` gets what happens to networks, `runs` None when wpa_supplicant runs and the reason when it has ended.
    Both return at once. With `separate`, it is a unit of systemd that goes on without the agent, see `running`.
    """

    def __init__(
        self,
        radio: int,
        report: Callable[[Report], None],
        runs: Callable[[MachineError | None], None],
        *,
        folder: Path = FOLDER,
        program: Sequence[str] = PROGRAM,
        separate: bool = False,
    ) -> None:
        self.error: MachineError | None = None
        """Why it does not run now."""
        self._folder = folder / f"radio{radio}"
        self._program = program
        self._unit = f"{UNIT_PREFIX}{radio}.service" if separate else ""
        self._report = report
        self._runs = runs
        self._interfaces: dict[str, WifiInterface] = {}
        self._added_before: set[str] = set()  # interfaces that an earlier agent has added
        self._ready = trio.Event()
        self._adding = trio.Lock()
        self._control: Control
        self._nursery: trio.Nursery

    async def run(self) -> None:
        """Run wpa_supplicant until cancelled, and start it again with growing pauses when it ends.

        After its end nothing is joined and there is no hotspot: each attempt was reported as failed, or as left.
        """
        failures = 0
        while True:
            begin = trio.current_time()
            try:
                async with running(self._folder, self._program, self._unit) as process:
                    await self._serve(process)
            except MachineError as error:
                self.error = error
                self._runs(error)
            failures = 1 if trio.current_time() - begin > _HEALTHY else failures + 1
            await trio.sleep(back_off(_RESTART, failures, random.random()))

    async def end(self) -> None:
        """End wpa_supplicant for good, after `run` has ended: its radio was removed. UNAVAILABLE if that fails."""
        if self._unit:
            await stop_unit(self._unit)

    @property
    def interface_names(self) -> tuple[str, ...]:
        """Interfaces in use."""
        return tuple(self._interfaces)

    @property
    def joining(self) -> dict[str, str]:
        """By interface: label of the network that is being joined or is joined."""
        interfaces = self._interfaces.items()
        return {name: interface.attempt.label for name, interface in interfaces if interface.attempt is not None}

    @property
    def hotspot(self) -> str:
        """Interface on which the hotspot runs; empty means none."""
        return next((name for name, interface in self._interfaces.items() if interface.hotspot is not None), "")

    async def join(self, interface: str, network: UsableNetwork) -> None:
        """Start to join a network, see Interface.join. A hotspot on another interface follows to its channel."""
        client = await self._interface(interface)
        hotspot = self._interfaces.get(self.hotspot)
        if hotspot is not None and hotspot is not client:
            frequency = await self._channel(client, network)
            if frequency is not None:
                await hotspot.move_hotspot(frequency)
        await client.join(network)

    async def resume(self, interface: str, network: UsableNetwork) -> Association | None:
        """Continue with a network that an earlier agent has joined, see Interface.resume."""
        if not self._unit:
            return None
        return await (await self._interface(interface)).resume(network)

    async def leave(self, interface: str) -> None:
        """Leave the network that is joined or being joined; nothing is reported."""
        if interface in self._interfaces:
            await self._interfaces[interface].leave()

    async def scan(self, interface: str) -> tuple[AccessPoint, ...]:
        """Scan, see Interface.scan."""
        return await (await self._interface(interface)).scan()

    async def access_points(self, interface: str) -> tuple[AccessPoint, ...]:
        """Return the access points of recent scans."""
        return await (await self._interface(interface)).access_points()

    async def association(self, interface: str) -> Association | None:
        """Return the connection of a client with an access point."""
        return await (await self._interface(interface)).association()

    async def start_hotspot(self, interface: str, hotspot: Hotspot) -> None:
        """Start the hotspot: on the channel of the joined network, or on one that few access points use.

        Returns when it runs. `interface` is that of the client, whose network is left, or another one of this radio.
        """
        target = await self._interface(interface)
        frequency = None
        for name, client in self._interfaces.items():
            if name != interface and client.attempt is not None:
                association = await client.association()
                frequency = association.frequency if association is not None else None
        if frequency is None:
            frequency = quietest([point.frequency for point in await self._heard_by_any()])
        await target.start_hotspot(hotspot, frequency)

    async def stop_hotspot(self) -> None:
        """Stop the hotspot, if it runs."""
        if self.hotspot:
            await self._interfaces[self.hotspot].leave()

    async def release(self, interface: str) -> None:
        """Give an interface up, so that it can be deleted or used by others. Nothing is reported."""
        released = self._interfaces.pop(interface, None)
        if released is not None:
            released.control.close()
        if released is not None or interface in self._added_before:
            self._added_before.discard(interface)
            await self._control.do(f"INTERFACE_REMOVE {interface}")

    async def _heard_by_any(self) -> list[AccessPoint]:
        return [point for interface in self._interfaces.values() for point in await interface.access_points()]

    async def _channel(self, client: WifiInterface, network: UsableNetwork) -> int | None:
        """Return the channel of the strongest access point of a network, in MHz; None if none was heard."""
        points = [point for point in await client.access_points() if point.ssid == network.ssid]
        if not points:
            points = [point for point in await client.scan(network.ssid) if point.ssid == network.ssid]
        return max(points, key=lambda point: point.signal).frequency if points else None

    async def _interface(self, name: str) -> WifiInterface:
        """Return an interface, which is added if it is new."""
        if self.error is None:
            with trio.move_on_after(START_LIMIT):
                await self._ready.wait()
        if not self._ready.is_set():
            raise self.error or MachineError("wpa_supplicant has not started", kind=ErrorKind.TIMEOUT)
        async with self._adding:
            if name not in self._interfaces:
                interface = WifiInterface(name, self._report, self._nursery)
                fields = (name, str(self._folder / SETTINGS), "nl80211", str(self._folder))
                with trio.CancelScope(shield=True):  # some ms; an interface cannot be added twice
                    if name not in self._added_before:
                        await self._control.do("INTERFACE_ADD " + "\t".join(fields))
                    self._added_before.discard(name)
                    interface.control = await connect(self._folder / name, interface.heard, self._nursery)
                    self._interfaces[name] = interface
            return self._interfaces[name]

    async def _serve(self, process: RunningSupplicant) -> None:
        """Serve requests until the process ends or does not answer; raise the reason."""
        try:
            async with trio.open_nursery() as self._nursery:
                self._nursery.start_soon(process.wait)
                self._control = await connect(process.path, _ignore, self._nursery)
                with closing(self._control):
                    self._added_before = set((await self._control.ask("INTERFACES")).split())
                    self.error = None
                    self._ready.set()
                    self._runs(None)
                    await trio.sleep_forever()
        except BaseExceptionGroup as group:
            raise unwrap(group) from None
        finally:
            self._ready = trio.Event()
            interfaces, self._interfaces = self._interfaces, {}
            for interface in interfaces.values():
                interface.control.close()
                interface.lost()
