"""The active configuration of a machine."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import trio

from engine.planning import Decision
from engine.views import ConfigStatus
from schema import Masker
from schema.document import MachineDocument


class Configured:
    """`document` is active; `status` describes it, and newer documents that are not active."""

    def __init__(self, source: str) -> None:
        self.document = MachineDocument()
        self.status = ConfigStatus(source=source, revision="", last_updated=None)
        self.masker = Masker()  # of the secrets in all documents so far
        self.applying = True  # a document is being applied
        # the last decision, at most RETRY_INTERVAL old
        self.maintenance = Decision(False, "the maintenance sensor was not read yet")
        self.ask_maintenance: Callable[[], Awaitable[None]] = trio.lowlevel.checkpoint  # decide again, now
        self.fetched: Callable[[], bool] = lambda: True  # whether the source was read since the start

    def note(self, **facts: Any) -> None:
        """Change what the status says of the configuration; the keywords are fields of ConfigStatus."""
        self.status = replace(self.status, **facts)
