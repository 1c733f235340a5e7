"""Attempts of a source whose device fails: growing delays, and one line in the log for each reason."""

from __future__ import annotations

from typing import Final

import structlog
import trio

from support import doubled

FIRST_DELAY: Final = 0.2  # seconds before the next attempt after an error; twice as long after each further one
MAX_DELAY: Final = 5.0


class Retries:
    """The failures of one source. `missing` and `again` are its lines in the log, with `fields`."""

    def __init__(self, log: structlog.stdlib.BoundLogger, missing: str, again: str, **fields: str) -> None:
        self._log = log
        self._missing = missing
        self._again = again
        self._fields = fields
        self._failures = 0
        self._reason = ""

    def note(self, error: Exception) -> str:
        """Log an error whose reason is new, and return its reason."""
        reason = str(error) or repr(error)
        if reason != self._reason:
            self._reason = reason
            self._log.warning(self._missing, error=reason, **self._fields)
        return reason

    async def wait(self) -> None:
        """Wait before the next attempt."""
        self._failures += 1
        await trio.sleep(doubled(FIRST_DELAY, MAX_DELAY, self._failures))

    async def failed(self, error: Exception) -> None:
        """Log an error, and wait before the next attempt."""
        self.note(error)
        await self.wait()

    def succeeded(self) -> None:
        """Forget the failures, and log their end."""
        if self._failures:
            self._log.info(self._again, **self._fields)
            self._failures, self._reason = 0, ""
