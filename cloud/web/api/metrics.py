"""Metrics for Prometheus (`GET /metrics`): the machines that the caller may see, and the cloud process.

Metrics of the process cover all tenants, so only the organization of the first start, which operates the cloud, gets
them.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from cloud.domain.data.segments.listed import SegmentTotals
from cloud.domain.fleet.fleet import FleetMachine, FleetPart
from cloud.domain.fleet.health import STATES, state_of
from cloud.domain.machines.reported import problem_count
from rpc import Statistics
from telemetry.metrics import Family

_PART = ("organization", "location", "machine", "part", "part_id")


def machine_families(machines: Sequence[FleetMachine], now: datetime) -> list[Family]:
    """Return the metrics of machines."""
    parts = [(_labels(machine, part), part) for machine in machines for part in machine.parts]
    states = [state for state, _ in STATES]
    return [
        Family(
            "gauge",
            "machine_cloud_machine_state",
            "1 for the current state of a part of a machine",
            [((*labels, state), state_of(part, now)[0] == state) for labels, part in parts for state in states],
            (*_PART, "state"),
        ),
        Family(
            "gauge",
            "machine_cloud_machine_problems",
            "Configuration problems and failing resources in the machine's last report",
            [(labels, problem_count(part.reported)) for labels, part in parts],
            _PART,
        ),
        Family(
            "gauge",
            "machine_cloud_machine_last_seen_timestamp_seconds",
            "Time of the last contact with the machine, in seconds since 1970; absent if there was none",
            [(labels, part.seen.timestamp()) for labels, part in parts if part.seen is not None],
            _PART,
        ),
        Family(
            "gauge",
            "machine_cloud_machine_revision",
            "Revision of the saved configuration",
            [(labels, part.revision) for labels, part in parts],
            _PART,
        ),
    ]


def process_families(statistics: Statistics) -> Sequence[Family]:
    """Return the metrics that the port has counted since the cloud started."""
    return [
        Family("counter", "machine_cloud_calls", "RPC calls started", [((), statistics.calls)]),
        Family("counter", "machine_cloud_call_errors", "RPC calls that failed", [((), statistics.failed_calls)]),
        Family("counter", "machine_cloud_connections", "Connections accepted", [((), statistics.connections)]),
        Family("gauge", "machine_cloud_open_connections", "Open connections", [((), statistics.open_connections)]),
        Family(
            "counter",
            "machine_cloud_refusals",
            "Refused requests of clients, by reason",
            [((reason,), count) for reason, count in sorted(statistics.refusals.items())],
            ("reason",),
        ),
    ]


def segment_families(sealed: SegmentTotals) -> list[Family]:
    """Return how much is in Parquet files."""
    return [
        Family("gauge", "machine_cloud_sealed_files", "Parquet files of readings", [((), sealed.segments)]),
        Family("gauge", "machine_cloud_sealed_readings", "Readings in Parquet files", [((), sealed.readings)]),
        Family("gauge", "machine_cloud_sealed_bytes", "Size of the Parquet files of readings", [((), sealed.size)]),
    ]


def _labels(machine: FleetMachine, part: FleetPart) -> tuple[str, ...]:
    return (machine.location.organization, machine.location.path, machine.name, part.name, part.id)
