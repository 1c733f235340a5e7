"""SQL queries over the readings of one organization: the table that they see, and the interface of the engine.

An `Engine` takes a query and the readings, and returns rows. The only implementation,
`cloud.domain.queries.query_process`, copies the readings to a separate process.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from typing import Final, Protocol

import msgspec

from cloud.domain.data.readings import ReadingRecord

TABLE: Final = "readings"
COLUMNS: Final = (
    "organization_id",
    "location_id",
    "robot_id",
    "robot_name",
    "part_id",
    "part_name",
    "component_type",
    "component_name",
    "method_name",
    "time_requested",
    "time_received",
    "tags",
    "additional_parameters",
    "data",
)
"""Columns as published. Times are text in UTC, such as 2026-01-31 12:00:00.000000; `tags` and `data` are JSON."""

MAX_READINGS: Final = 250_000  # readings in the copy: about 200 MiB
MAX_ROWS: Final = 10_000  # rows in a result
MAX_BYTES: Final = 40 * 1024 * 1024  # bytes in a result; a message can have 64 MiB
_STAMP: Final = "%Y-%m-%d %H:%M:%S.%f"

_encode: Final = msgspec.json.Encoder().encode

Cells = tuple[str, ...]
"""One reading, in the order of COLUMNS."""


class Engine(Protocol):
    """Executes SQL queries."""

    async def execute(self, organization: str, query: str, readings: AsyncIterator[Sequence[Cells]]) -> list[bytes]:
        """Execute a query; return each row as BSON.

        `readings` yields the readings of the organization in batches; the query cannot access anything else.
        MachineError: INVALID for statements other than SELECT and for errors in the query; EXHAUSTED if it takes too
        much time or memory, has too many rows, or too many queries of the organization are waiting. Cancellation takes
        effect at once.
        """
        ...


def cells(record: ReadingRecord) -> Cells:
    """Return a reading as a row of the table."""
    source = record.source
    return (
        source.organization_id,
        source.location_id,
        source.machine_id,
        source.machine,
        source.part_id,
        source.part,
        source.component_type,
        source.component,
        source.method,
        record.requested.strftime(_STAMP),
        record.received.strftime(_STAMP),
        json.dumps(record.tags),
        source.parameters,
        _encode(record.data).decode(),  # numbers that are not finite become null, because SQLite parses this JSON
    )
