"""Interfaces that were removed and have returned, such as a wifi adapter that is plugged in again."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

import structlog

from netmgr.model.facts import Manager, NetworkFacts
from netmgr.owners.detect import owner_named
from netmgr.owners.owner import Owner
from schema import MachineError

AGAIN: Final = 1.0
"""Seconds between two looks whether the former manager manages a returned interface."""
WATCHED: Final = 10.0
"""Seconds after the return of an interface in which its former manager may begin to manage it."""

_log = structlog.get_logger("netmgr")


class Returned:
    """Takes interfaces over again when they return: their former managers may treat them as new ones."""

    def __init__(self, owners: Sequence[Owner]) -> None:
        self._owners = owners
        self._removed: frozenset[str] = frozenset()
        self._watched: dict[str, float] = {}  # returned interfaces, and until when

    async def take_again(self, facts: NetworkFacts, managers: Mapping[str, Manager]) -> float:
        """Take returned interfaces over that are managed again; return when to look again, infinity if never.

        `managers` has the former manager of each interface that netmgr has taken over.
        """
        present = {link.name for link in facts.links}
        self._watched |= dict.fromkeys(self._removed & present, facts.now + WATCHED)
        self._removed = frozenset(managers.keys() - present)
        for name, end in list(self._watched.items()):
            owner = owner_named(managers.get(name, ""), self._owners)
            gone = name not in present or facts.now > end
            if owner is None or gone or await self._taken(owner, name):
                del self._watched[name]
        return facts.now + AGAIN if self._watched else math.inf

    async def _taken(self, owner: Owner, name: str) -> bool:
        """Take an interface over if its former manager manages it now; return whether it did."""
        try:
            if not await owner.manages(name):
                return False
            await owner.take(name)
        except MachineError as error:
            _log.debug("a returned interface cannot be taken over", interface=name, reason=str(error))
            return False
        _log.info("a returned interface was taken over again", interface=name, owner=owner.name)
        return True
