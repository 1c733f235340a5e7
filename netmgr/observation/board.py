"""The newest facts. Tasks that observe something put it here; the task that decides waits for changes."""

from __future__ import annotations

from typing import Any

import trio
from msgspec.structs import replace

from netmgr.model.facts import NetworkFacts
from support import ChangeSignal


class FactsBoard:
    """Facts about the network, with notification of changes."""

    def __init__(self) -> None:
        self._facts = NetworkFacts(now=0.0)
        self._changed = ChangeSignal()

    def facts(self) -> NetworkFacts:
        """Return the newest facts, with the present time."""
        return replace(self._facts, now=trio.current_time())

    def clear(self) -> None:
        """Forget all facts: the tasks that have observed them have ended."""
        self._facts = NetworkFacts(now=0.0)
        self.poke()

    def put(self, **parts: Any) -> None:
        """Replace fields of the facts."""
        facts = replace(self._facts, **parts)
        if facts != self._facts:
            self._facts = facts
            self.poke()

    def poke(self) -> None:
        """Notify of a change although the facts are the same: something else has changed that decisions depend on."""
        self._changed.announce()

    def put_for(self, field: str, interface: str, value: Any) -> None:
        """Replace the value of an interface in a field that is a dictionary; None removes it."""
        values = {name: old for name, old in getattr(self._facts, field).items() if name != interface}
        if value is not None:
            values[interface] = value
        self.put(**{field: values})

    @property
    def changed(self) -> trio.Event:
        """Event that is set at the next change. Read it before the facts, so that no change is missed."""
        return self._changed.next
