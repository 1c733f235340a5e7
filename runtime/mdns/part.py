"""The part of a machine that announces it: one announcer for each interface, as interfaces come and go."""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

import structlog
import trio

from nursery_graph import Node, Restart
from rpc.mdns import MdnsError
from runtime.machine import INTERNAL
from runtime.mdns.announcer import Announcer
from runtime.mdns.carrier import open_sockets
from runtime.mdns.interfaces import Address, Changes, interfaces
from runtime.mdns.places import Place, places
from runtime.mdns.records import Names, names_of
from runtime.parts import Surroundings
from runtime.serving import NODE as RPC
from schema.machine import MachineDocument

NODE: Final = f"{INTERNAL}mdns"
QUIET: Final = 0.5  # seconds without a change, after which interfaces are looked at: addresses come one by one
QUIET_AT_MOST: Final = 3.0  # seconds


class Mdns:
    """Announces the machine where its port can be reached, until its port closes."""

    def __init__(self, surroundings: Surroundings) -> None:
        self._log = structlog.get_logger("rdk.networking")
        self.announcers: dict[Place, Announcer] = {}
        self._everywhere: set[Address] = set()  # every address of this computer

    def nodes(self, document: MachineDocument) -> list[Node]:
        """One node, for the names of `document`; it lives as long as the port is open as it is."""
        names = names_of(_full_names(document), socket.gethostname())
        return [
            Node(
                NODE,
                partial(self._run, names),
                requires={RPC},
                version=names,
                stop_timeout=5.0,
                restart=Restart(intensity=1_000_000, max_delay=60.0),
            )
        ]

    async def _run(self, names: Names, deps: Mapping[str, Any], /, *, task_status: trio.TaskStatus[None]) -> None:
        bound: Sequence[str] = deps[RPC] or ()
        task_status.started()  # whatever comes: a machine that cannot be announced works all the same
        try:
            changes = Changes()
        except OSError as error:
            self._warn("changes of the network are not followed", error)
            changes = None
        try:
            async with trio.open_nursery() as nursery:
                running: dict[Place, _Running] = {}
                while True:
                    await self._reconcile(names, bound, running, nursery)
                    if changes is None:
                        await trio.sleep_forever()
                    await changes.wait()
                    await _quiet(changes)
        finally:
            if changes is not None:
                changes.close()

    async def _reconcile(
        self, names: Names, bound: Sequence[str], running: dict[Place, _Running], nursery: trio.Nursery
    ) -> None:
        try:
            found = interfaces()
        except OSError as error:
            self._warn("the machine is not announced", error)
            return
        wanted = places(bound, found)
        self._everywhere.clear()
        self._everywhere.update(address for interface in found for address in interface.addresses)
        for place in [place for place in running if place not in wanted or running[place].ended.is_set()]:
            gone = running.pop(place)
            gone.scope.cancel()
            await gone.ended.wait()
        for place in wanted:
            if place not in running:
                running[place] = _Running()
                nursery.start_soon(self._announce, names, place, running[place])

    async def _announce(self, names: Names, place: Place, running: _Running) -> None:
        announcer = Announcer(place, names, self._everywhere, self._log)
        try:
            with running.scope:
                sockets = await open_sockets(place.interface)
                self.announcers[place] = announcer
                try:
                    await announcer.run(sockets)
                finally:
                    for one in sockets:
                        one.close()
        except (OSError, MdnsError) as error:
            self._warn(f"the machine is not announced on {place.interface.name}", error)
        except BaseExceptionGroup as group:
            expected, others = group.split((OSError, MdnsError))
            if others is not None:
                raise
            assert expected is not None
            self._warn(f"the machine is not announced on {place.interface.name}", expected.exceptions[0])
        finally:
            self.announcers.pop(place, None)
            running.ended.set()

    def _warn(self, what: str, error: BaseException) -> None:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        self._log.warning(what, reason=reason, remedy="clients reach it by its address; -disable-mdns turns this off")


class _Running:
    """One announcer that runs."""

    def __init__(self) -> None:
        self.scope = trio.CancelScope()
        self.ended = trio.Event()


def _full_names(document: MachineDocument) -> list[str]:
    cloud = document.cloud
    return [document.network.fqdn, *((cloud.fqdn, cloud.local_fqdn) if cloud is not None else ())]


async def _quiet(changes: Changes) -> None:
    """Return when nothing has changed for a moment."""
    with trio.move_on_after(QUIET_AT_MOST):
        while True:
            with trio.move_on_after(QUIET) as pause:
                await changes.wait()
            if pause.cancelled_caught:
                return
