"""One sample of everything that a machine counts, under flat names with dots."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import TYPE_CHECKING, Final

import trio

from nursery_graph import State
from runtime.metrics.system import count_descriptors, measure_network, measure_process

if TYPE_CHECKING:
    from runtime.machine import Machine

SERVER: Final = "proc.machine-server"
MODULES: Final = "proc.modules"

STATES: Final[Mapping[State, int]] = {
    State.READY: 0,
    State.UNCONFIGURED: 1,
    State.CONFIGURING: 1,
    State.REMOVING: 2,
    State.UNHEALTHY: 3,
}
"""Numbers of the reference server: ok, uninitialised, removing, error."""

CUMULATIVE: Final[Mapping[str, str]] = {
    "UserCPUSecs": "cores", "SystemCPUSecs": "cores",
    "RxBytes": "B/s", "TxBytes": "B/s", "RxPackets": "1/s", "TxPackets": "1/s",
    "RxErrors": "1/s", "TxErrors": "1/s", "RxDropped": "1/s", "TxDropped": "1/s",
    "RetransmittedSegments": "1/s", "ReceiveErrors": "1/s", "ReceiveDrops": "1/s",
    "Calls": "1/s", "Errors": "1/s", "TimeMs": "ms/s", "ReceivedBytes": "B/s", "SentBytes": "B/s",
    "Connections": "1/s", "Refused": "1/s", "CancelledCalls": "1/s", "FailedCalls": "1/s",
}  # fmt: skip
"""Last words of names that only count up, and the unit of their rate: what a person wants to see."""

UNITS: Final[Mapping[str, str]] = {"VssMB": "MiB", "RssMB": "MiB", "ElapsedTimeSecs": "s", "LateMs": "ms"}
"""Units of the others that have one."""


class Sampler:
    """Measures `machine`."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._graph = -1  # sequence of the snapshot that `_states` is of
        self._states: dict[str, float] = {}

    def sample(self) -> dict[str, float]:
        """Everything, now. Takes well under a millisecond on a machine of usual size, and never raises."""
        machine = self._machine
        values: dict[str, float] = {}
        measure_process(values, SERVER)
        values[f"{SERVER}.OpenFiles"] = count_descriptors()
        statistics = trio.lowlevel.current_statistics()
        values["trio.TasksLiving"] = statistics.tasks_living
        values["trio.TasksRunnable"] = statistics.tasks_runnable
        for name, pid in self._modules():
            measure_process(values, f"{MODULES}.{name}", pid)
        measure_network(values)
        self._measure_server(values)
        machine.calls.measure(values)
        self._measure_resources(values)
        return values

    def _modules(self) -> list[tuple[str, int]]:
        """Modules that run, and their processes."""
        modules = self._machine.modules
        links = modules.links if modules is not None else {}
        return [(name, link.pid) for name, link in links.items() if link.pid is not None]

    def _measure_server(self, values: MutableMapping[str, float]) -> None:
        statistics = self._machine.rpc_statistics
        values["rpc.Connections"] = statistics.connections
        values["rpc.OpenConnections"] = statistics.open_connections
        values["rpc.FailedCalls"] = statistics.failed_calls
        values["rpc.CancelledCalls"] = statistics.cancelled_calls
        values["rpc.Refused"] = statistics.refusals.total()
        values["machine.Sessions"] = len(self._machine.sessions)
        values["machine.Operations"] = len(self._machine.operations.running())

    def _measure_resources(self, values: MutableMapping[str, float]) -> None:
        snapshot = self._machine.graph.snapshot()
        if snapshot.sequence != self._graph:
            self._graph = snapshot.sequence
            self._states = {}
            for name, node in snapshot.nodes.items():
                self._states[f"{name}.State"] = STATES[node.state]
                self._states[f"{name}.Restarts"] = max(0, node.runs - 1)
            self._machine.calls.forget(lambda name: name in snapshot.nodes)
        values.update(self._states)
        for full, host in self._machine.hosts.items():
            values[f"{full}.InFlight"] = len(host.calls)
