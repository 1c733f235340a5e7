"""Links, routes and radio switches of the kernel as facts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import trio
from msgspec.structs import replace

from netmgr.model.facts import Manager, NetworkLink, WifiRadio
from netmgr.netlink.advertisements import metric_of
from netmgr.netlink.rfkill import Switches
from netmgr.netlink.route import Kernel
from netmgr.netlink.watch import NetlinkChanges
from netmgr.observation.board import FactsBoard

SETTLE: Final = 0.05
"""Seconds between two readings of the tables: a cable that is plugged in causes a dozen notifications."""

HOTSPOT_INTERFACE: Final = "machine-hotspot"
"""Virtual interface of the hotspot, on a radio that can be a client at the same time. It joins no networks."""

ManagerOf = Callable[[str], Awaitable[Manager]]
"""Returns the program that configures an interface."""


class Managers:
    """Programs that configure the interfaces. They are asked again only when an interface has changed.

    Reading the settings of router advertisements takes some 20 µs for each interface.
    """

    def __init__(self, manager_of: ManagerOf) -> None:
        self._manager_of = manager_of
        self._asked: dict[str, tuple[NetworkLink, Manager]] = {}
        self.power_save: dict[str, bool] = {}
        """By interface: the power saving that netmgr has set."""

    async def named(self, links: tuple[NetworkLink, ...]) -> tuple[NetworkLink, ...]:
        """Return the links with their managers. Links that are never configured have none."""
        self._asked = {link.name: self._asked[link.name] for link in links if link.name in self._asked}
        return tuple([await self._named(link) for link in links])

    def forget(self, interface: str) -> None:
        """Ask again at the next time: the interface was taken over or given back."""
        self._asked.pop(interface, None)

    async def _named(self, link: NetworkLink) -> NetworkLink:
        if link.name == HOTSPOT_INTERFACE:
            link = replace(link, kind="other")
        if link.kind == "other":
            return link
        asked = self._asked.get(link.name)
        if asked is None or asked[0] != link:
            asked = self._asked[link.name] = (link, await self._manager_of(link.name))
        return replace(
            link, manager=asked[1], ra_metric=metric_of(link.name), power_save=self.power_save.get(link.name)
        )


async def read_kernel(board: FactsBoard, kernel: Kernel, managers: Managers) -> None:
    """Read links and routes now."""
    board.put(links=await managers.named(await kernel.links()), routes=await kernel.routes())


async def follow_kernel(
    board: FactsBoard,
    kernel: Kernel,
    managers: Managers,
    *,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Keep links and routes current until cancelled; `started` after the first reading. Raises MachineError."""
    with NetlinkChanges() as changes:
        first = True
        while True:
            await read_kernel(board, kernel, managers)
            if first:
                task_status.started()
                first = False
            await changes.wait()
            await trio.sleep(SETTLE)


async def follow_switches(
    board: FactsBoard, switches: Switches, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
) -> None:
    """Keep the blocks of the radios current until cancelled."""
    task_status.started()
    while True:
        board.put(radios=with_blocks(board.facts().radios, switches))
        await switches.wait()


def with_blocks(radios: tuple[WifiRadio, ...], switches: Switches) -> tuple[WifiRadio, ...]:
    """Return the radios with the present blocks."""
    return tuple(replace(radio, blocked=switches.blocked(radio.number)) for radio in radios)
