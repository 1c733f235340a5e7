"""Interface of wpa_supplicant: join and leave networks, scan, or be the hotspot."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, Protocol

import trio

from netmgr.model.events import JoinFailure, Left
from netmgr.model.facts import AccessPoint, Association
from netmgr.model.network import UsableNetwork
from netmgr.model.settings import Hotspot
from netmgr.wifi.attempt import Report, WifiAttempt, failed, step
from netmgr.wifi.messages import BSS_MASK, access_points, association
from netmgr.wifi.network import Requested, client, hotspot
from schema import ErrorKind, MachineError

JOIN_LIMIT: Final = 50.0
"""Seconds for an attempt to join, as in the reference: a scan of all channels takes up to 10, EAP some seconds."""
SCAN_LIMIT: Final = 30.0
HOTSPOT_LIMIT: Final = 15.0
MAX_ACCESS_POINTS: Final = 256
"""wpa_supplicant keeps 200 (bss_max_count)."""
_ANNOUNCED: Final = 5  # beacons that announce a new channel of the hotspot
_SCAN_ENDS: Final = ("CTRL-EVENT-SCAN-RESULTS", "CTRL-EVENT-SCAN-FAILED")
_SEARCHING: Final = ("wpa_state=SCANNING", "wpa_state=DISCONNECTED")
_HOTSPOT_ENDS: Final = ("AP-ENABLED", "AP-DISABLED", "CTRL-EVENT-TERMINATING")
_ENDED: Final = "wpa_supplicant has ended"


class AskedJoin(Protocol):
    """Requests to wpa_supplicant, see netmgr.wifi.control.Control."""

    async def ask(self, request: str) -> str:
        """Return the answer."""
        ...

    async def do(self, request: str) -> None:
        """Raise MachineError unless it succeeds."""
        ...

    def close(self) -> None:
        """End the connection."""
        ...


class _Waiter:
    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names
        self.event = ""
        self.arrived = trio.Event()


class WifiInterface:
    """Interface that wpa_supplicant controls. `heard` gets its events; `control` is set before the first request.

    Requests that change it run one after the other.
    """

    control: AskedJoin

    def __init__(self, name: str, report: Callable[[Report], None], nursery: trio.Nursery) -> None:
        self.name = name
        self.attempt: WifiAttempt | None = None
        self.hotspot: Hotspot | None = None
        """Hotspot that this interface is, once it runs."""
        self.frequency = 0
        """Channel of the hotspot in MHz."""
        self._report = report
        self._nursery = nursery
        self._lock = trio.Lock()
        self._waiters: list[_Waiter] = []
        self._decided = trio.Event()  # the attempt needs no limit any more

    def heard(self, event: str) -> None:
        """Handle an event of wpa_supplicant."""
        for waiter in self._waiters:
            if event.startswith(waiter.names) and not waiter.event:
                waiter.event = event
                waiter.arrived.set()
        if self.hotspot is not None and event.startswith("AP-DISABLED"):
            self.hotspot = None
        if self.attempt is None:
            return
        self.attempt, report = step(self.attempt, event)
        if report is None:
            return
        self._decided.set()
        self._report(report)
        if self.attempt is None:
            self._nursery.start_soon(self._abandon)

    async def join(self, network: UsableNetwork) -> None:
        """Start to join a network, instead of the present one. Joined, JoinFailed and Left are reported.

        It ends with the failure TIMEOUT after JOIN_LIMIT seconds. After Left, wpa_supplicant tries to join it again,
        until `leave`. INVALID, without a report, if a credential of the network cannot be used.
        """
        requested = client(network, sae=await self.sae(), now=time.time())
        async with self._lock:
            await self._configure(requested)
            attempt = self.attempt = WifiAttempt(interface=self.name, label=network.label)
            try:
                await self.control.do("SELECT_NETWORK any")
            except BaseException:
                if self.attempt is attempt:
                    self.attempt = None
                raise
            self._decided = trio.Event()
            self._nursery.start_soon(self._limit, self._decided)

    async def resume(self, network: UsableNetwork) -> Association | None:
        """Continue with a network that an earlier agent has joined with the same settings; return the connection.

        None, and nothing changes, if it is not connected with this network. Nothing is reported.
        """
        async with self._lock:
            present = await self.association()
            if self.attempt is not None or self.hotspot is not None or present is None or present.ssid != network.ssid:
                return None
            self.attempt = WifiAttempt(interface=self.name, label=network.label, phase="joined")
            return present

    async def leave(self) -> None:
        """Leave the network, or stop the hotspot; nothing is reported."""
        async with self._lock:
            await self._clear()

    async def scan(self, ssid: bytes = b"") -> tuple[AccessPoint, ...]:
        """Listen on all channels, and return the access points; `ssid` is asked for by its name.

        If a scan is in progress already, wait for its end instead. UNAVAILABLE if the radio cannot scan now, TIMEOUT
        after SCAN_LIMIT seconds.
        """
        with self._waiting(_SCAN_ENDS) as waiter:
            answer = await self.control.ask(f"SCAN TYPE=ONLY{f' ssid {ssid.hex()}' if ssid else ''}")
            if answer not in ("OK", "FAIL-BUSY"):
                raise MachineError(f"{self.name} cannot scan now", kind=ErrorKind.UNAVAILABLE)
            event = await _arrival(waiter, SCAN_LIMIT, f"the scan of {self.name} has not ended")
        await self._search_on()
        if event.startswith(_SCAN_ENDS[1]):
            raise MachineError(f"the scan of {self.name} has failed", kind=ErrorKind.UNAVAILABLE)
        return await self.access_points()

    async def _search_on(self) -> None:
        """Let wpa_supplicant 2.10 look for the network that is being joined: a scan has replaced its own one."""
        if self.attempt is None or self.attempt.phase == "joined":
            return
        status = await self.control.ask("STATUS")
        if any(state in status for state in _SEARCHING):
            await self.control.do("REASSOCIATE")

    async def access_points(self) -> tuple[AccessPoint, ...]:
        """Return the access points of recent scans, without a new one."""
        points: list[AccessPoint] = []
        first = 0
        while len(points) < MAX_ACCESS_POINTS:
            answer = await self.control.ask(f"BSS RANGE={first}- MASK=0x{BSS_MASK}")
            more, highest = access_points(answer, trio.current_time())
            if highest is None or highest < first:
                break
            points += more
            first = highest + 1
        return tuple(points[:MAX_ACCESS_POINTS])

    async def association(self) -> Association | None:
        """Return the connection with an access point; None unless the authentication is complete."""
        return association(await self.control.ask("STATUS"), await self.control.ask("SIGNAL_POLL"))

    async def sae(self) -> bool:
        """Return whether wpa_supplicant and the driver can use WPA3."""
        return "SAE" in (await self.control.ask("GET_CAPABILITY key_mgmt")).split()

    async def start_hotspot(self, settings: Hotspot, frequency: int) -> None:
        """Become a hotspot on a channel, in MHz; return when it runs. UNAVAILABLE or TIMEOUT if it does not."""
        requested = hotspot(settings, frequency)
        async with self._lock:
            await self._configure(requested)
            try:
                await self._enable_hotspot()
            except BaseException:
                self._nursery.start_soon(self._abandon)
                raise
            self.hotspot, self.frequency = settings, frequency

    async def _enable_hotspot(self) -> None:
        with self._waiting(_HOTSPOT_ENDS) as waiter:
            await self.control.do("SELECT_NETWORK any")
            event = await _arrival(waiter, HOTSPOT_LIMIT, f"the hotspot on {self.name} did not start")
        if not event.startswith("AP-ENABLED"):
            raise MachineError(
                f"the hotspot on {self.name} did not start: {event[:40]}", kind=ErrorKind.UNAVAILABLE,
                remedy="check that the country is set and that the channel may be used there",
            )  # fmt: skip

    async def move_hotspot(self, frequency: int) -> None:
        """Move the hotspot to a channel: announced to its clients, or by a restart if the driver cannot do that."""
        settings = self.hotspot
        if settings is None or frequency == self.frequency:
            return
        async with self._lock:
            with self._waiting(("AP-CSA-FINISHED", "AP-DISABLED")) as waiter:
                if await self.control.ask(f"CHAN_SWITCH {_ANNOUNCED} {frequency} ht") == "OK":
                    event = await _arrival(
                        waiter, HOTSPOT_LIMIT, f"the hotspot on {self.name} did not change its channel"
                    )
                    if event.startswith("AP-CSA"):
                        self.frequency = frequency
                        return
        await self.start_hotspot(settings, frequency)

    def lost(self) -> None:
        """Report the end of wpa_supplicant; what waits for an event gets MachineError."""
        for waiter in self._waiters:
            waiter.arrived.set()
        attempt, self.attempt, self.hotspot = self.attempt, None, None
        self._decided.set()
        if attempt is None:
            return
        if attempt.phase == "joined":
            self._report(Left(interface=attempt.interface, label=attempt.label, detail=_ENDED))
        else:
            self._report(failed(attempt, JoinFailure.RADIO, _ENDED))

    async def _configure(self, requested: Requested) -> None:
        """Replace the networks by new ones, which are not yet enabled."""
        await self._clear()
        for name, data in requested.blobs.items():
            await self.control.do(f"SET blob {name} {data.hex()}")
        for values in requested.alternatives:
            number = await self.control.ask("ADD_NETWORK")
            if not number.isdecimal():
                raise MachineError(f"wpa_supplicant adds no network to {self.name}", kind=ErrorKind.UNAVAILABLE)
            for key, value in values.items():
                await self.control.do(f"SET_NETWORK {number} {key} {value}")

    async def _clear(self) -> None:
        self._decided.set()
        self.attempt = self.hotspot = None
        await self.control.do("REMOVE_NETWORK all")

    async def _abandon(self) -> None:
        """Remove the network of an attempt that has failed, unless another one has begun."""
        async with self._lock:
            if self.attempt is None and self.hotspot is None:
                try:
                    await self._clear()
                except MachineError:
                    return  # it has ended, which `lost` reports

    async def _limit(self, decided: trio.Event) -> None:
        with trio.move_on_after(JOIN_LIMIT):
            await decided.wait()
            return
        attempt, self.attempt = self.attempt, None
        if attempt is not None:
            self._report(failed(attempt, JoinFailure.TIMEOUT))
        await self._abandon()

    def _waiting(self, names: tuple[str, ...]) -> _Listening:
        return _Listening(self._waiters, _Waiter(names))


class _Listening:
    """Keeps a waiter in a list for a block."""

    def __init__(self, waiters: list[_Waiter], waiter: _Waiter) -> None:
        self._waiters, self._waiter = waiters, waiter

    def __enter__(self) -> _Waiter:
        self._waiters.append(self._waiter)
        return self._waiter

    def __exit__(self, *_: object) -> None:
        self._waiters.remove(self._waiter)


async def _arrival(waiter: _Waiter, limit: float, text: str) -> str:
    with trio.move_on_after(limit):
        await waiter.arrived.wait()
        if not waiter.event:
            raise MachineError(_ENDED, kind=ErrorKind.UNAVAILABLE)
        return waiter.event
    raise MachineError(f"{text} within {limit:g} s", kind=ErrorKind.TIMEOUT)
