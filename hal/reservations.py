"""Who uses what: pins, addresses and ports that only one owner may have."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from hal.errors import Fault, HalError


class Reservations:
    """The table of one machine. Things are named by words that are the same whoever says them."""

    def __init__(self) -> None:
        self._owners: dict[str, str] = {}

    def owner(self, thing: str) -> str | None:
        """Who has it now."""
        return self._owners.get(thing)

    def all(self) -> dict[str, str]:
        """Everything that is taken, and by whom."""
        return dict(self._owners)

    @contextmanager
    def hold(self, owner: str, *things: str) -> Iterator[None]:
        """Let `owner` have all of `things` while the context is open, or none: HalError (busy) names both owners."""
        with ExitStack() as held:
            for thing in things:
                if (other := self._owners.get(thing)) is not None:
                    raise HalError(
                        f"{thing} is wanted by {owner} and already used by {other}",
                        Fault.BUSY,
                        remedy="give one of them another",
                    )
                self._owners[thing] = owner
                held.callback(self._owners.pop, thing)
            yield
