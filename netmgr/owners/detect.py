"""Find the owner of an interface."""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from netmgr.model.facts import Manager
from netmgr.owners.dhcpcd import Dhcpcd
from netmgr.owners.ifupdown import Ifupdown
from netmgr.owners.network_manager import NetworkManager
from netmgr.owners.networkd import Networkd
from netmgr.owners.owner import Owner
from schema import MachineError
from support import RunBlocking

_log = structlog.get_logger("netmgr.owners")


def every_owner(run_blocking: RunBlocking) -> tuple[Owner, ...]:
    """Return all programs that can own an interface, in the order in which they are asked."""
    return (NetworkManager(), Networkd(run_blocking), Dhcpcd(run_blocking), Ifupdown(run_blocking))


async def owner_of(interface: str, owners: Sequence[Owner]) -> Owner | None:
    """Return the program that configures an interface; None if none does. A program that fails counts as not there."""
    for owner in owners:
        try:
            if await owner.manages(interface):
                return owner
        except MachineError as error:
            _log.debug("a manager of interfaces cannot be asked", manager=owner.name, reason=str(error))
    return None


def owner_named(name: Manager, owners: Sequence[Owner]) -> Owner | None:
    """Return the owner with this name."""
    return next((owner for owner in owners if owner.name == name), None)
