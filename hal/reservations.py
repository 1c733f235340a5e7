"""Reservations of pins, addresses and ports that can have only one owner."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from hal.errors import Fault, HalError


class Reservations:
    """The reservations of a machine. Each pin, address or port has one canonical name."""

    def __init__(self) -> None:
        self._owners: dict[str, str] = {}

    def owner(self, thing: str) -> str | None:
        """Return the current owner of `thing`; None if it is free."""
        return self._owners.get(thing)

    def all(self) -> dict[str, str]:
        """Return all reservations with their owners."""
        return dict(self._owners)

    @contextmanager
    def hold(self, owner: str, *things: str) -> Iterator[None]:
        """Reserve all of `things` for `owner` while the context is open; HalError (busy) names both owners."""
        with ExitStack() as stack:
            for thing in things:
                if (other := self._owners.get(thing)) is not None:
                    raise HalError(
                        f"{thing} is wanted by {owner} and already used by {other}",
                        Fault.BUSY,
                        remedy="change the configuration of one of them",
                    )
                self._owners[thing] = owner
                stack.callback(self._owners.pop, thing)
            yield
