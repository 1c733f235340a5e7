"""Counters of a server or client since its start: plain integers, read by telemetry and never reset."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class Statistics:
    """Counters of one server or client, over all its connections."""

    connections: int = 0  # accepted or opened
    open_connections: int = 0
    calls: int = 0  # started
    failed_calls: int = 0  # ended with a status other than OK
    cancelled_calls: int = 0  # ended by the peer or with their connection
    refusals: Counter[str] = field(default_factory=Counter)  # number of refusals by rpc.errors.Reason

    def refused(self, reason: str) -> None:
        """Count one request or action of a peer that was refused."""
        self.refusals[reason] += 1
