"""SQL queries over the readings of one organization: the table that they see, and the interface of the engine.

An `Engine` takes a query, and a function that puts the readings where it can read them. The only implementation,
`cloud.domain.queries.query_process`, executes the query in a separate process.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

MAX_RECENT: Final = 3_000_000  # readings that are not in Parquet files: they are copied for each query
MAX_COPIED: Final = 4 * 1024**3  # bytes that are copied for a query: recent readings, or files of a bucket
MAX_ROWS: Final = 10_000  # rows in a result
MAX_BYTES: Final = 40 * 1024 * 1024  # bytes in a result; a message can have 64 MiB


EXAMPLES: Final = (
    (
        "newest readings",
        "SELECT time_requested, robot_name, component_name, data\nFROM readings ORDER BY time_requested DESC LIMIT 50",
    ),
    (
        "readings of each component",
        "SELECT robot_name, component_name, COUNT(*) AS readings, MAX(time_requested) AS newest\n"
        "FROM readings GROUP BY ALL ORDER BY ALL",
    ),
    (
        "mean by hour",
        "SELECT date_trunc('hour', time_requested) AS hour, component_name, AVG(data.readings.value) AS mean\n"
        "FROM readings GROUP BY ALL ORDER BY hour",
    ),
)
"""Queries for people, and what they show."""


@dataclass(frozen=True, slots=True)
class Material:
    """The readings for a query: Parquet files, and files `RECENT` and `SOURCES` of the module `view` in its folder."""

    columns: Sequence[tuple[int, str, str]]  # number, name and type of fields in the catalog
    numbers: Mapping[str, int]  # of the other columns, by name
    files: Sequence[tuple[str, int, int, int]]  # path, source, and stored times of the first and last capture
    again: Sequence[str]  # files whose readings may be among the recent ones, too
    longest: int  # bytes of a line of recent readings


Gather = Callable[[Path], Awaitable[Material]]
"""Function that puts readings into an empty folder, and tells where the others are."""


class Engine(Protocol):
    """Executes SQL queries."""

    async def execute(self, organization: str, query: str, gather: Gather) -> list[bytes]:
        """Execute a query; return each row as BSON.

        The query can read what `gather` names and nothing else. MachineError: INVALID for anything but a single SELECT
        and for errors in the query; EXHAUSTED if it takes too much time, memory or disk, has too many rows, or too many
        queries of the organization are waiting; UNSUPPORTED if this computer cannot execute queries. Cancellation takes
        effect at once.
        """
        ...
