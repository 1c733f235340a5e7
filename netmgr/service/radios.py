"""Wifi radios: their supplicants, what they hear, and the hotspot."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Final

import structlog
import trio

from netmgr.dhcp.run import run_server
from netmgr.dns.responder import serve_names
from netmgr.model.events import Joined, JoinFailed, Left
from netmgr.model.facts import OWN, AccessPoint, Association
from netmgr.model.network import UsableNetwork
from netmgr.model.plan import (
    Join,
    Leave,
    SetCountry,
    SetPowerSave,
    StartHotspot,
    StopHotspot,
)
from netmgr.netlink.advertisements import accept
from netmgr.netlink.nl80211 import RadioChanges, Radios, family
from netmgr.netlink.rfkill import Switches
from netmgr.netlink.route import Kernel
from netmgr.observation.board import FactsBoard
from netmgr.observation.kernel import HOTSPOT_INTERFACE, with_blocks
from netmgr.portal.backend import PortalActions
from netmgr.portal.serve import serve_portal
from netmgr.service.tasks import Tasks
from netmgr.wifi.attempt import Report
from netmgr.wifi.supplicant import Supplicant
from schema import ErrorKind, MachineError
from support import ChangeSignal

SCAN_OFFLINE: Final = 20.0
"""Seconds between scans while no network is joined."""
SCAN_ONLINE: Final = 120.0
"""Seconds between scans while one is joined: a scan interrupts traffic for some 100 ms for each channel."""
MAX_ACCESS_POINTS: Final = 300
"""Access points in the facts; the strongest stay."""
AGE: Final = 180.0
"""Seconds after which an access point is no longer shown."""

_log = structlog.get_logger("netmgr.wifi")


class Wifi:
    """The radios of the computer.

    `report` gets what happens to networks, `saves_power` which power saving was set for an interface.
    `ignored` makes other programs leave an interface alone before it exists.
    """

    def __init__(
        self,
        board: FactsBoard,
        kernel: Kernel,
        switches: Switches,
        tasks: Tasks,
        report: Callable[[Report], None],
        saves_power: Callable[[str, bool], None],
        ignored: Callable[[str], Awaitable[None]],
        backend: PortalActions,
        new_supplicant: Callable[..., Supplicant] = Supplicant,
    ) -> None:
        self._board, self._kernel, self._switches, self._tasks = board, kernel, switches, tasks
        self._report, self._saves_power, self._backend = report, saves_power, backend
        self._ignored, self._new_supplicant = ignored, new_supplicant
        self._radios: Radios | None = None
        self._supplicants: dict[int, Supplicant] = {}
        self._gone: set[int] = set()  # removed radios whose interfaces are still in the facts
        self._hotspot_on = ""  # the interface of the access point itself
        self._scan_now = ChangeSignal()
        self._busy = trio.Lock()  # an access point does not start during a scan of its radio

    # ---- observation

    async def follow(self) -> None:
        """Keep the radios and the connections of other programs current until cancelled. UNSUPPORTED without wifi."""
        numbers = await family()
        with Radios(numbers) as self._radios, RadioChanges(numbers) as changes:
            try:
                while True:
                    await self._observe(self._radios)
                    await changes.wait()
            finally:
                self._radios = None

    async def _observe(self, radios: Radios) -> None:
        present = with_blocks(await radios.radios(), self._switches)
        country, joined = await radios.country(), await radios.joined()
        facts = self._board.facts()
        foreign = {
            name: Association(ssid=ssid, bssid="", frequency=0)
            for name, ssid in joined.items()
            if (link := facts.link(name)) is not None and link.manager != OWN
        }
        own = {name: entry for name, entry in facts.associations.items() if name in facts.joining}
        self._board.put(radios=present, country="" if country == "00" else country, associations={**foreign, **own})
        for number in self._supplicants.keys() - {radio.number for radio in present}:
            await self._removed(number)

    async def _removed(self, number: int) -> None:
        """End everything of a radio that was removed. If it is connected again, it has another number."""
        supplicant = self._supplicants.pop(number)
        self._gone = {link.radio for link in self._board.facts().links if link.radio in (number, *self._gone)} - {None}
        names = supplicant.interface_names
        _log.info("a radio was removed", radio=number, interfaces=names)
        if self._hotspot_on in names:
            await self._end_services()
            self._board.put(hotspot="", hosted=None)
        await self._tasks.stop(f"wifi/{number}")
        for name in names:
            self._forget(name)
        await supplicant.end()

    async def scan_regularly(self) -> None:
        """Listen for networks on the interfaces of netmgr until cancelled."""
        while True:
            scan_now, changed = self._scan_now.next, self._board.changed
            facts = self._board.facts()
            names = [link.name for link in facts.links if link.kind == "wifi" and link.manager == OWN and link.up]
            if not names:
                await changed.wait()
                continue
            for name in names:
                try:
                    async with self._busy:
                        self._heard(await self._supplicant(name).scan(name))
                except MachineError as error:
                    _log.debug("a scan has failed", interface=name, reason=str(error))
            with trio.move_on_after(SCAN_ONLINE if self._board.facts().associations else SCAN_OFFLINE):
                await scan_now.wait()

    def scan(self) -> None:
        """Scan now."""
        self._scan_now.announce()

    def _heard(self, points: Iterable[AccessPoint]) -> None:
        facts = self._board.facts()
        merged = {point.bssid: point for point in (*facts.access_points, *points) if point.seen > facts.now - AGE}
        strongest = sorted(merged.values(), key=lambda point: -point.signal)[:MAX_ACCESS_POINTS]
        self._board.put(access_points=tuple(strongest))

    def _supplicant(self, interface: str) -> Supplicant:
        """Return the supplicant of the radio of an interface; it is started with its first use."""
        link = self._board.facts().link(interface)
        if link is None or link.radio is None or link.radio in self._gone:
            raise MachineError(f"there is no wifi interface {interface}", kind=ErrorKind.NOT_FOUND)
        if link.radio not in self._supplicants:
            supplicant = self._new_supplicant(link.radio, self._reported, partial(self._runs, link.radio))
            self._supplicants[link.radio] = supplicant
            self._tasks.start(f"wifi/{link.radio}", supplicant.run)
        return self._supplicants[link.radio]

    def _running(self, interface: str) -> Supplicant | None:
        """Return the supplicant of the radio of an interface; None if it has none, as after its removal."""
        link = self._board.facts().link(interface)
        return None if link is None or link.radio is None else self._supplicants.get(link.radio)

    def _runs(self, radio: int, error: MachineError | None) -> None:
        if error is not None:
            _log.error("wpa_supplicant does not run", radio=radio, reason=str(error), remedy=error.remedy)

    def _reported(self, report: Report) -> None:
        """Update the facts, and pass the report on."""
        name = report.interface
        match report:
            case Joined():
                self._tasks.start(f"association/{name}", partial(self._associate, name))
            case Left():
                self._board.put_for("associations", name, None)
                self.scan()
            case JoinFailed():
                self._forget(name)
        self._report(report)

    async def _associate(self, name: str) -> None:
        association = await self._supplicant(name).association(name)
        if name in self._board.facts().joining:
            self._board.put_for("associations", name, association)

    def _forget(self, name: str) -> None:
        for field in ("associations", "joining", "clients", "leases"):
            self._board.put_for(field, name, None)

    async def resume(self, name: str, network: UsableNetwork) -> None:
        """Continue with a network that an earlier agent has joined, if it is still connected."""
        try:
            association = await self._supplicant(name).resume(name, network)
        except MachineError as error:
            _log.info("the former connection is not continued", interface=name, reason=str(error))
            return
        if association is not None:
            for field, value in (("joining", network.label), ("clients", network), ("associations", association)):
                self._board.put_for(field, name, value)
            _log.info("the former connection is continued", interface=name)

    async def give_back(self, name: str) -> None:
        """Let other programs use an interface."""
        if (supplicant := self._running(name)) is not None:
            self._forget(name)
            await supplicant.release(name)

    # ---- effects

    async def join(self, effect: Join) -> None:
        """Start to join a network."""
        name, network = effect.interface, effect.network
        self._forget(name)
        self._board.put_for("joining", name, network.label)
        self._board.put_for("clients", name, network)
        try:
            await self._supplicant(name).join(name, network)
        except MachineError:
            self._forget(name)
            raise

    async def leave(self, effect: Leave) -> None:
        """Leave the network. An interface that was removed has left it."""
        self._forget(effect.interface)
        if (supplicant := self._running(effect.interface)) is not None:
            await supplicant.leave(effect.interface)

    async def set_country(self, effect: SetCountry) -> None:
        """Set the regulatory domain."""
        if self._radios is not None:
            await self._radios.set_country(effect.country)

    async def set_power_save(self, effect: SetPowerSave) -> None:
        """Switch power saving."""
        link = self._board.facts().link(effect.interface)
        if self._radios is None or link is None:
            return
        try:
            await self._radios.set_power_save(link.index, effect.on)
        except MachineError as error:
            if error.kind is not ErrorKind.UNSUPPORTED:
                raise
            _log.info("the driver has no power saving", interface=link.name)
        self._saves_power(link.name, effect.on)

    async def start_hotspot(self, effect: StartHotspot) -> None:
        """Start the hotspot with its services."""
        name = effect.interface
        radio = self._board.facts().radio_of(name)
        target = name
        if radio is not None and radio.both and self._radios is not None:
            await self._ignored(HOTSPOT_INTERFACE)
            await self._radios.add_hotspot_interface(radio.number, HOTSPOT_INTERFACE)
            target = HOTSPOT_INTERFACE
        else:
            self._forget(name)
        async with self._busy:
            await self._supplicant(name).start_hotspot(target, effect.hotspot)
        accept(target, None)  # a client of the hotspot must not become the device's router
        index = next(link.index for link in await self._kernel.links() if link.name == target)
        await self._kernel.set_up(index)
        address = effect.hotspot.address
        await self._kernel.add_address(index, address)
        self._hotspot_on = target
        portal = f"http://{address.ip}/captive-portal/api"
        self._tasks.start("hotspot/dhcp", partial(run_server, target, address, portal))
        self._tasks.start(
            "hotspot/dns", partial(serve_names, target, address.ip, redirect_all=effect.hotspot.redirect_all)
        )
        self._tasks.start("hotspot/portal", partial(serve_portal, self._backend, str(address.ip), interface=target))
        self._board.put(hotspot=name, hosted=effect.hotspot)
        _log.info("the hotspot runs", interface=target, ssid=effect.hotspot.ssid.decode(errors="backslashreplace"))

    async def stop_hotspot(self, effect: StopHotspot) -> None:
        """Stop the hotspot and its services."""
        target = self._hotspot_on
        await self._end_services()
        if (supplicant := self._running(effect.interface)) is not None:
            await self._end_access_point(supplicant, target)
        self._board.put(hotspot="", hosted=None)
        _log.info("the hotspot has ended")

    async def _end_services(self) -> None:
        for part in ("hotspot/portal", "hotspot/dns", "hotspot/dhcp"):
            await self._tasks.stop(part)
        self._hotspot_on = ""

    async def _end_access_point(self, supplicant: Supplicant, target: str) -> None:
        await supplicant.stop_hotspot()
        link = next((link for link in await self._kernel.links() if link.name == target), None)
        if link is not None:
            if (hosted := self._board.facts().hosted) is not None:
                await self._kernel.delete_address(link.index, hosted.address)
            if target == HOTSPOT_INTERFACE and self._radios is not None:
                await supplicant.release(target)
                await self._radios.delete_interface(link.index)
