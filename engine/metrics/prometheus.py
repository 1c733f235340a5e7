"""Metrics of a machine in Prometheus format: `GET /metrics`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from engine.metrics.system import measure_network, measure_process
from telemetry.metrics import Family

if TYPE_CHECKING:
    from engine.calls.counts import Counts
    from engine.calls.traffic import Traffic
    from engine.views.status import MachineStatus

STATES: Final = ("unconfigured", "configuring", "ready", "unhealthy", "removing")

Kind: TypeAlias = Literal["counter", "gauge"]

_CALLS: Final[tuple[tuple[Kind, str, str, Callable[[Counts], float]], ...]] = (
    ("counter", "calls", "Calls started", lambda counts: counts.calls),
    ("counter", "call_errors", "Calls that ended with a status other than OK", lambda counts: counts.errors),
    ("counter", "call_seconds", "Time in calls that have ended", lambda counts: counts.seconds),
    ("counter", "call_received_bytes", "Bytes of request messages", lambda counts: counts.received),
    ("counter", "call_sent_bytes", "Bytes of response messages", lambda counts: counts.sent),
    ("gauge", "calls_in_flight", "Calls in flight", lambda counts: counts.active),
)
_MODULE: Final[tuple[tuple[Kind, str, str, tuple[str, ...], float], ...]] = (
    ("counter", "module_cpu_seconds", "CPU time of a module", ("UserCPUSecs", "SystemCPUSecs"), 1.0),
    ("gauge", "module_resident_memory_bytes", "Resident memory of a module", ("RssMB",), 2.0**20),
    ("gauge", "module_threads", "Threads of a module", ("Threads",), 1.0),
)
_NETWORK: Final = {
    "RxBytes": ("network_receive_bytes", "Bytes received by an interface"),
    "TxBytes": ("network_transmit_bytes", "Bytes sent by an interface"),
    "RxErrors": ("network_receive_errors", "Faulty packets received by an interface"),
    "TxErrors": ("network_transmit_errors", "Packets that an interface failed to send"),
    "RxDropped": ("network_receive_dropped", "Packets received and dropped"),
    "TxDropped": ("network_transmit_dropped", "Packets dropped before they were sent"),
}


def families(status: MachineStatus, traffic: Traffic, pids: Mapping[str, int]) -> list[Family]:
    """Measure a machine now; `pids` are the processes of its modules by name.

    Takes about as long as a sample of the flight recorder: well under a millisecond.
    """
    statistics = traffic.statistics
    return [
        Family("gauge", "machine_info", "Version of machine-server", [((status.version,), 1)], ("version",)),
        _single("gauge", "machine_running", "1 once the configuration is applied", status.state.value == "running"),
        _single("gauge", "machine_config_problems", "Errors in the configuration", len(status.config.problems)),
        _single(
            "gauge",
            "machine_config_rejected",
            "1 if the newest configuration is rejected",
            status.config.rejected != "",
        ),
        Family(
            "gauge",
            "machine_resource_state",
            "1 for the state that a resource is in",
            [((resource.name, state), resource.state == state) for resource in status.resources for state in STATES],
            ("resource", "state"),
        ),
        Family(
            "counter",
            "machine_resource_restarts",
            "Number of restarts of a resource",
            [((resource.name,), resource.restarts) for resource in status.resources],
            ("resource",),
        ),
        *_calls(traffic.calls.by_method),
        _single("gauge", "machine_rpc_open_connections", "Open connections", statistics.open_connections),
        _single("counter", "machine_rpc_connections", "Connections accepted", statistics.connections),
        Family(
            "counter",
            "machine_rpc_refusals",
            "Refused connections and calls, by reason",
            [((reason,), count) for reason, count in sorted(statistics.refusals.items())],
            ("reason",),
        ),
        _single("gauge", "machine_sessions", "Client sessions", len(traffic.sessions)),
        *_modules(pids),
        *_network(),
    ]


def _single(kind: Kind, name: str, text: str, value: float) -> Family:
    return Family(kind, name, text, [((), value)])


def _calls(by_method: Mapping[tuple[str, str], Counts]) -> Iterator[Family]:
    for kind, name, text, value in _CALLS:
        samples = [(key, value(counts)) for key, counts in sorted(by_method.items())]
        yield Family(kind, f"machine_rpc_{name}", text, samples, ("resource", "method"))


def _modules(pids: Mapping[str, int]) -> Iterator[Family]:
    measured: dict[str, dict[str, float]] = {name: {} for name in pids}
    for name, pid in pids.items():
        measure_process(measured[name], "", pid)
    for kind, metric, text, keys, factor in _MODULE:
        samples = [
            ((name,), factor * sum(values[f".{key}"] for key in keys)) for name, values in measured.items() if values
        ]
        yield Family(kind, f"machine_{metric}", text, samples, ("module",))


def _network() -> Iterator[Family]:
    values: dict[str, float] = {}
    measure_network(values)
    for word, (metric, text) in _NETWORK.items():
        samples = [
            ((name.removeprefix("net.").removesuffix(f".{word}"),), value)
            for name, value in values.items()
            if name.endswith(f".{word}")
        ]
        yield Family("counter", f"machine_{metric}", text, samples, ("interface",))
