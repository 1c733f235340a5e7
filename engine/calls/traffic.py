"""What a machine keeps of the calls of its clients."""

from __future__ import annotations

from dataclasses import dataclass

from engine.calls.counts import Calls
from engine.calls.operations import Operations
from engine.calls.sessions import Sessions
from rpc import Statistics


@dataclass(frozen=True, slots=True)
class Traffic:
    """The calls in progress, the sessions of clients, what each method has cost, and the statistics of the port."""

    operations: Operations
    sessions: Sessions
    calls: Calls
    statistics: Statistics
