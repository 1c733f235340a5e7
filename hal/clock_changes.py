"""Notification when the clock of the computer is set."""

from __future__ import annotations

import sys

if sys.platform == "win32":
    from hal.windows.clock import UnreportedClockChanges

    ClockChanges = UnreportedClockChanges
else:
    from hal.linux.timer import ClockChanges as ClockChanges
