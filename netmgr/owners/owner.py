"""What every owner of interfaces can do."""

from __future__ import annotations

from typing import Protocol

from netmgr.model.facts import Manager
from netmgr.model.network import UsableNetwork


class Owner(Protocol):
    """Program that configures interfaces. Every method may be repeated. Raises MachineError."""

    name: Manager

    async def manages(self, interface: str) -> bool:
        """Return whether it configures this interface now, or would if a cable or network were there."""
        ...

    async def networks(self, interface: str) -> tuple[UsableNetwork, ...]:
        """Return the networks that it would use on this interface by itself, with their credentials."""
        ...

    async def take(self, interface: str) -> None:
        """Make it leave the interface alone, until `give_back` or the next start of the computer.

        Its addresses and routes may stay on the interface: the caller removes them.
        """
        ...

    async def give_back(self, interface: str) -> None:
        """Let it configure the interface again."""
        ...
