"""What a server or client has counted since it started. Plain integers, read by telemetry, reset by nobody."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class Statistics:
    """Counters of one server or client, all its connections together."""

    connections: int = 0  # accepted or opened
    open_connections: int = 0
    calls: int = 0  # begun
    failed_calls: int = 0  # ended with another status than OK
    cancelled_calls: int = 0  # ended by the peer or with their connection
    refusals: Counter[str] = field(
        default_factory=Counter
    )  # reason -> times; the reasons are the words of rpc.errors.Reason

    def refused(self, reason: str) -> None:
        """Count one refusal: something a peer did that a bound or a rule did not let through."""
        self.refusals[reason] += 1
