"""Announcement of a machine on all interfaces where its port can be reached, as interfaces come and go."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from typing import Final

import structlog
import trio

from rpc.network import Address, InterfaceChanges, interfaces
from rpc.network.mdns import MdnsError
from runtime.parts.mdns.announcer import Announcer
from runtime.parts.mdns.carrier import open_sockets
from runtime.parts.mdns.names import Names
from runtime.parts.mdns.places import AnnouncedPlace, places

QUIET: Final = 0.5  # seconds without a change before interfaces are read, because addresses come one by one
QUIET_AT_MOST: Final = 3.0  # seconds


class Follower:
    """Runs an announcer for each place. `bound` are the addresses at which the port listens."""

    def __init__(self, names: Names, bound: Sequence[str]) -> None:
        self._names = names
        self._bound = bound
        self._log = structlog.get_logger("rdk.networking")
        self._running: dict[AnnouncedPlace, _Running] = {}
        self._everywhere: set[Address] = set()  # every address of this computer

    async def run(self) -> None:
        """Announce until cancelled. Failures are logged as warnings, and retried when the network changes."""
        try:
            changes = InterfaceChanges()
        except OSError as error:
            if error.errno == errno.EOPNOTSUPP:
                self._warn("the machine is not announced", error)
                await trio.sleep_forever()
            self._warn("changes of the network cannot be followed", error)
            changes = None
        try:
            async with trio.open_nursery() as nursery:
                while True:
                    await self._reconcile(nursery)
                    if changes is None:
                        await trio.sleep_forever()
                    await changes.wait()
                    await _quiet(changes)
        finally:
            if changes is not None:
                changes.close()

    async def _reconcile(self, nursery: trio.Nursery) -> None:
        try:
            all_interfaces = interfaces()
        except OSError as error:
            self._warn("the machine is not announced", error)
            return
        current = places(self._bound, all_interfaces)
        self._everywhere.clear()
        self._everywhere.update(address for interface in all_interfaces for address in interface.addresses)
        running = self._running
        for place in [place for place in running if place not in current or running[place].ended.is_set()]:
            ended = running.pop(place)
            ended.scope.cancel()
            await ended.ended.wait()
        for place in current:
            if place not in running:
                running[place] = _Running()
                nursery.start_soon(self._announce, place, running[place])

    async def _announce(self, place: AnnouncedPlace, running: _Running) -> None:
        announcer = Announcer(place, self._names, self._everywhere, self._log)
        try:
            with running.scope:
                sockets = await open_sockets(place.interface)
                try:
                    await announcer.run(sockets)
                finally:
                    for opened in sockets:
                        opened.close()
        except (OSError, MdnsError) as error:
            self._warn(f"the machine is not announced on {place.interface.name}", error)
        except BaseExceptionGroup as group:
            expected, others = group.split((OSError, MdnsError))
            if others is not None:
                raise
            assert expected is not None
            self._warn(f"the machine is not announced on {place.interface.name}", expected.exceptions[0])
        finally:
            running.ended.set()

    def _warn(self, what: str, error: BaseException) -> None:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        self._log.warning(
            what,
            reason=reason,
            remedy="clients reach the machine by its address; -disable-mdns turns announcements off",
        )


class _Running:
    """The cancel scope and the end of a running announcer."""

    def __init__(self) -> None:
        self.scope = trio.CancelScope()
        self.ended = trio.Event()


async def _quiet(changes: InterfaceChanges) -> None:
    """Return after QUIET seconds without a change, or after QUIET_AT_MOST seconds."""
    with trio.move_on_after(QUIET_AT_MOST):
        while True:
            with trio.move_on_after(QUIET) as pause:
                await changes.wait()
            if pause.cancelled_caught:
                return
