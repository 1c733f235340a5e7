"""Give the network back after the agent has ended: interfaces to their former managers, and what netmgr has added."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import trio

from netmgr.dns.resolver import Resolver
from netmgr.model.plan import PROTOCOL, PlannedRoute
from netmgr.netlink.advertisements import reset
from netmgr.netlink.route import Kernel
from netmgr.netlink.socket import NetlinkRequests
from netmgr.owners.detect import every_owner, owner_named
from netmgr.store.store import load
from netmgr.wifi.process import stop_units
from netmgr.wifi.supplicant import FOLDER
from schema import MachineError


async def _inline(function: Callable[[], Any]) -> Any:
    """Run a function at once: nothing else runs on this event loop."""
    await trio.lowlevel.checkpoint()
    return function()


async def give_back(runtime: Path) -> tuple[str, ...]:
    """Undo the takeovers in the file `runtime`, and end wpa_supplicant.

    Return what was done and what has failed, for people. Call it when no agent runs.
    """
    stored = load(runtime)
    await stop_units(FOLDER)
    if not stored.managers and not stored.addresses:
        return ()
    results: list[str] = []
    with NetlinkRequests() as requests:
        kernel = Kernel(requests)
        indexes = {link.name: link.index for link in await kernel.links()}
        for route in await kernel.routes():
            if route.protocol == PROTOCOL:
                planned = PlannedRoute(destination=route.destination, gateway=route.gateway, metric=route.metric)
                await kernel.delete_route(indexes[route.interface], planned)
        for name, address in stored.addresses:
            if name in indexes:
                await kernel.delete_address(indexes[name], address)
    owners = every_owner(_inline)
    for name, manager in stored.managers.items():
        owner = owner_named(manager, owners)
        try:
            if name in indexes:
                reset(name)
            if owner is not None:
                await owner.give_back(name)
                results.append(f"{name}: given back to {manager}")
        except MachineError as error:
            results.append(f"{name}: not given back to {manager}: {error}")
    try:
        await Resolver(_inline).give_back()
    except MachineError as error:
        results.append(f"the name servers of the system are not restored: {error}")
    return tuple(results)
