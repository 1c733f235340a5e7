"""Questions in SQL about the readings of one organization: the table they see, and the interface of what answers them.

An `Engine` is given the question and the readings and gives back rows. The one there is, `cloud.data.query_process`,
copies the readings into a process of its own.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from typing import Final, Protocol

import msgspec

from cloud.data.readings import ReadingRecord

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
"""As published. Times are text in UTC, such as 2026-01-31 12:00:00.000000; `tags`, `data` are JSON."""

MAX_READINGS: Final = 250_000  # in the copy: about 200 MiB
MAX_ROWS: Final = 10_000  # of an answer
MAX_BYTES: Final = 40 * 1024 * 1024  # of an answer; a message holds 64 MiB
_STAMP: Final = "%Y-%m-%d %H:%M:%S.%f"

_encode: Final = msgspec.json.Encoder().encode

Cells = tuple[str, ...]
"""One reading in the order of COLUMNS."""


class Engine(Protocol):
    """What answers questions."""

    async def ask(self, organization: str, question: str, readings: AsyncIterator[Sequence[Cells]]) -> list[bytes]:
        """The rows of the answer, each as BSON.

        `readings` gives those of the organization, some at a time; nothing else can be reached from the question.
        MachineError: INVALID for what is no SELECT or wrong, EXHAUSTED for what takes too long, too much memory or has
        too many rows, and if too many questions of the organization wait. Cancelled, it ends at once.
        """
        ...


def cells(record: ReadingRecord) -> Cells:
    """A reading as a row of the table."""
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
        _encode(record.data).decode(),  # numbers that are not finite are null: SQLite reads JSON
    )
