"""The configuration of a machine that is in force."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import trio

from runtime.engine.planning.maintenance import Decision
from runtime.engine.views.status import ConfigStatus
from schema.document.machine import MachineDocument
from schema.secrets import Masker


class Configured:
    """`document` is in force; `status` is what is shown of it and of newer ones that are not."""

    def __init__(self, source: str) -> None:
        self.document = MachineDocument()
        self.status = ConfigStatus(source=source, revision="", last_updated=None)
        self.masker = Masker()  # of the secrets that documents had so far
        self.applying = True  # a document is being applied
        self.maintenance = Decision(False, "not asked yet")  # as last decided, at most RETRY_INTERVAL ago
        self.ask_maintenance: Callable[[], Awaitable[None]] = trio.lowlevel.checkpoint  # decide again, now

    def note(self, **facts: Any) -> None:
        """Change what the status says of the configuration; the keywords are fields of ConfigStatus."""
        self.status = replace(self.status, **facts)
