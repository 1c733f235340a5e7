"""The clock of a computer with Windows, which tells only programs with windows that it was set."""

from __future__ import annotations

import trio


class UnreportedClockChanges:
    """Reports nothing: callers must not wait for a moment of the clock without looking at it in between."""

    async def next(self) -> None:
        """Wait until cancelled."""
        await trio.sleep_forever()

    def close(self) -> None:
        """Do nothing."""
