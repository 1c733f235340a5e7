"""What a machine keeps of the calls of its clients."""

from __future__ import annotations

from dataclasses import dataclass

from rpc import Statistics
from runtime.engine.calls.counts import Calls
from runtime.engine.calls.operations import Operations
from runtime.engine.calls.sessions import Sessions


@dataclass(frozen=True, slots=True)
class Traffic:
    """The calls in progress, the sessions of clients, what each method has cost, and the statistics of the port."""

    operations: Operations
    sessions: Sessions
    calls: Calls
    statistics: Statistics
