"""A sample of all metrics of a machine, by dotted name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping
from typing import TYPE_CHECKING, Final

import trio

from engine.metrics.system import count_descriptors, measure_host, measure_network, measure_process
from engine.planning.reasons import state_of
from nursery_graph import State

if TYPE_CHECKING:
    from engine.calls.traffic import Traffic
    from engine.roster import Roster
    from nursery_graph import Graph

SERVER: Final = "proc.machine-server"
MODULES: Final = "proc.modules"

STATES: Final[Mapping[State, int]] = {
    State.READY: 0,
    State.UNCONFIGURED: 1,
    State.CONFIGURING: 1,
    State.REMOVING: 2,
    State.UNHEALTHY: 3,
}
"""Numbers as in the reference server: ok, uninitialised, removing, error."""

CUMULATIVE: Final[Mapping[str, str]] = {
    "UserCPUSecs": "cores", "SystemCPUSecs": "cores", "BusySecs": "cores", "IdleSecs": "cores",
    "RxBytes": "B/s", "TxBytes": "B/s", "RxPackets": "1/s", "TxPackets": "1/s",
    "RxErrors": "1/s", "TxErrors": "1/s", "RxDropped": "1/s", "TxDropped": "1/s",
    "RetransmittedSegments": "1/s", "ReceiveErrors": "1/s", "ReceiveDrops": "1/s",
    "Calls": "1/s", "Errors": "1/s", "TimeMs": "ms/s", "ReceivedBytes": "B/s", "SentBytes": "B/s",
    "Connections": "1/s", "Refused": "1/s", "CancelledCalls": "1/s", "FailedCalls": "1/s",
}  # fmt: skip
"""Last parts of the names of counters, and the unit of the rate that is shown to people."""

UNITS: Final[Mapping[str, str]] = {
    "VssMB": "MiB", "RssMB": "MiB", "ElapsedTimeSecs": "s", "LateMs": "ms",
    "MemoryUsedPct": "%", "DiskUsedPct": "%", "TemperatureCelsius": "°C",
}  # fmt: skip
"""Units of the other names that have one."""


class Sampler:
    """Measures a machine; `pids` returns the processes of its modules by name."""

    def __init__(
        self, graph: Graph, roster: Roster, traffic: Traffic, pids: Callable[[], Mapping[str, int]] = dict
    ) -> None:
        self._graph = graph
        self._roster = roster
        self._traffic = traffic
        self._pids = pids
        self._sequence = -1  # of the snapshot that `_states` is of
        self._states: dict[str, float] = {}

    def sample(self) -> dict[str, float]:
        """Measure everything now. Takes well under a millisecond on a machine of usual size, and never raises."""
        values: dict[str, float] = {}
        measure_process(values, SERVER)
        values[f"{SERVER}.OpenFiles"] = count_descriptors()
        statistics = trio.lowlevel.current_statistics()
        values["trio.TasksLiving"] = statistics.tasks_living
        values["trio.TasksRunnable"] = statistics.tasks_runnable
        for name, pid in self._pids().items():
            measure_process(values, f"{MODULES}.{name}", pid)
        measure_host(values)
        measure_network(values)
        self._measure_server(values)
        self._traffic.calls.measure(values)
        self._measure_resources(values)
        return values

    def _measure_server(self, values: MutableMapping[str, float]) -> None:
        statistics = self._traffic.statistics
        values["rpc.Connections"] = statistics.connections
        values["rpc.OpenConnections"] = statistics.open_connections
        values["rpc.FailedCalls"] = statistics.failed_calls
        values["rpc.CancelledCalls"] = statistics.cancelled_calls
        values["rpc.Refused"] = statistics.refusals.total()
        values["machine.Sessions"] = len(self._traffic.sessions)
        values["machine.Operations"] = len(self._traffic.operations.running())

    def _measure_resources(self, values: MutableMapping[str, float]) -> None:
        snapshot = self._graph.snapshot()
        if snapshot.sequence != self._sequence:
            self._sequence = snapshot.sequence
            self._states = {}
            for name, node in snapshot.nodes.items():
                self._states[f"{name}.State"] = STATES[state_of(node)]
                self._states[f"{name}.Restarts"] = max(0, node.runs - 1)
            self._traffic.calls.forget(lambda name: name in snapshot.nodes)
        values.update(self._states)
        for full, host in self._roster.hosts.items():
            values[f"{full}.InFlight"] = len(host.calls)
