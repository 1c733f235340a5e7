"""SQL queries over the readings of one organization: the table that they see, and the interface of the engine.

An `Engine` takes a query, and a function that says where the readings are. When the engine knows which ones the query
needs, it has those copied that cannot be read there. The only implementation,
`cloud.domain.queries.query_process`, executes the query in a separate process.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Final, Protocol

from cloud.domain.queries.view import Needs
from schema import ErrorKind, MachineError

MAX_RECENT: Final = 3_000_000  # readings that a query needs and that are not in Parquet files: they are copied
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
class Sealed:
    """Parquet files with readings, and their columns."""

    columns: Sequence[tuple[int, str, str]]  # number, name and type of fields in the catalog
    numbers: Mapping[str, int]  # of the other columns, by name
    files: Sequence[tuple[str, int, int, int, bool]]
    """Path, source, stored times of the first and last capture, and whether some readings have a text."""


@dataclass(frozen=True, slots=True)
class CopiedData:
    """What was copied for a query: recent readings in the file `RECENT` of its folder, and files to its `COPIES`."""

    longest: int = 1  # bytes of a line of recent readings
    sealed: Sealed | None = None  # instead of the earlier one, if files have come or gone in the meantime
    again: Sequence[str] = ()  # files whose readings may be among the recent ones, too


@dataclass(frozen=True, slots=True)
class Material:
    """The readings for a query. Its folder has the file `SOURCES`; `copy` makes the others that the query needs.

    `Needs` and the names of files are in `cloud.domain.queries.view`.
    """

    sealed: Sealed
    copy: Callable[[Needs], Awaitable[CopiedData]]


Gather = Callable[[Path], Awaitable[Material]]
"""Function that writes `SOURCES` into an empty folder, and tells where the readings are."""


class QueryStage(Enum):
    """What a query is doing."""

    WAITING = "waiting"  # for other queries of the organization
    COPYING = "copying"  # recent readings
    RUNNING = "running"


Report = Callable[[QueryStage, int], None]
"""Function that is called with each stage, and while running with the percentage that is done, if it is known."""


@dataclass(frozen=True, slots=True)
class QueryAnswer:
    """The result of a query: names and types of columns, as DuckDB calls them, and each row as BSON."""

    columns: Sequence[tuple[str, str]]
    rows: list[bytes]


class QueryError(MachineError):
    """A mistake in a query. `position` is the number of characters before it; None if it is not known."""

    def __init__(self, message: str, *, kind: ErrorKind, remedy: str, position: int | None) -> None:
        super().__init__(message, kind=kind, remedy=remedy)
        self.position = position


def unreported(stage: QueryStage, percent: int) -> None:
    """Ignore the progress of a query."""


class Engine(Protocol):
    """Executes SQL queries."""

    async def execute(
        self, organization: str, query: str | Sequence[bytes], gather: Gather, report: Report = unreported
    ) -> QueryAnswer:
        """Execute a query, in SQL or as stages of an aggregation in BSON; return its answer.

        The query can read what `gather` names and nothing else. MachineError: INVALID for anything but a single SELECT
        and for errors in the query, then a QueryError; EXHAUSTED if it takes too much time, memory or disk, has too
        many rows, or too many queries of the organization are waiting; UNSUPPORTED if this computer cannot execute
        queries. Cancellation takes effect at once.
        """
        ...
