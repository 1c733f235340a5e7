"""SQL interface of the aggregates: a handle that is valid during one transaction.

Statements work in both SQLite and PostgreSQL: `?` for parameters, times as integers (microseconds since 1970, UTC),
JSON as text, no vendor-specific functions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol, TypeVar

T = TypeVar("T")
Value = str | int | float | bytes | None
Row = Mapping[str, Any]

FEW: Final = 50  # rows of an answer that is remembered: large ones are read once, and would be kept in memory


class Sql(Protocol):
    """Handle of one transaction. Do not use it afterwards."""

    skip_locked: str
    """Suffix of a SELECT that takes rows of a queue, so that replicas take different rows without waiting.

    The transaction must change or delete the rows that it takes. Empty if one process has the database to itself.
    """

    def run(self, statement: str, *parameters: Value) -> int:
        """Execute a statement; return the number of changed rows.

        Conflict if it violates a uniqueness or reference constraint. The transaction must then end by raising. Rows
        that may exist already need `ON CONFLICT`.
        """
        ...

    def many(self, statement: str, rows: Sequence[Sequence[Value]]) -> None:
        """Execute a statement for each of many rows."""
        ...

    def rows(self, statement: str, *parameters: Value) -> list[Row]:
        """Return all rows of a query."""
        ...

    def row(self, statement: str, *parameters: Value) -> Row | None:
        """Return the first row of a query; None if there is none."""
        ...

    def in_turn(self, subject: str) -> None:
        """Wait until all other transactions that called this with the same subject have ended.

        Rows written afterwards have higher auto-incremented numbers than all rows written before in such transactions,
        so that readers that follow the numbers of `subject` do not miss any. Returns at once if one process has the
        database to itself.
        """
        ...

    def notify(self, topic: str, subject: str) -> None:
        """Notify listeners to `topic` about `subject`, once the transaction has been committed."""
        ...


Work = Callable[[Sql], T]
"""A transaction: a plain function, which may run in another thread. It must not access anything but `Sql`.

It may run more than once, because of concurrent transactions; only the effects of its last run are kept.
"""


class Conflict(Exception):
    """A row with the same unique columns exists, or a referenced row does not exist."""


def continued_after_conflict() -> RuntimeError:
    """Return the error for a transaction that continues after a Conflict."""
    return RuntimeError("a transaction continued after a Conflict: raise an exception, or use ON CONFLICT")


class Store(Protocol):
    """A database. `read` and `write` may be called by any number of tasks."""

    async def read(self, work: Work[T]) -> T:
        """Return the result of `work`, which sees a single snapshot and must not change anything."""
        ...

    async def write(self, work: Work[T]) -> T:
        """Execute `work` as a transaction; its changes are durable when this returns.

        Any exception rolls it back. If cancelled while waiting for its turn, nothing happens; if cancelled later, the
        transaction is completed all the same. Transactions are serializable, also across processes. Auto-incremented
        numbers increase in that order among transactions that write to a common row.
        """
        ...


class Answers:
    """Answers to the queries that a transaction has made, until it changes anything: it sees a single snapshot."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, tuple[Value, ...]], Sequence[Row]] | None = {}
        self._first: dict[tuple[str, tuple[Value, ...]], Row | None] = {}

    def before(self, statement: str) -> None:
        """Forget all answers and remember no further ones if a statement may change something."""
        if self._rows is not None and not statement.lstrip().startswith("SELECT"):
            self._rows = None

    def row(self, statement: str, parameters: tuple[Value, ...], execute: Callable[[], Row | None]) -> Row | None:
        """Return the first row of a statement, by `execute` unless it is remembered."""
        self.before(statement)
        if self._rows is None:
            return execute()
        key = statement, parameters
        if key not in self._first:
            self._first[key] = execute()
        return self._first[key]

    def rows(self, statement: str, parameters: tuple[Value, ...], execute: Callable[[], list[Row]]) -> list[Row]:
        """Return the rows of a statement, by `execute` unless they are remembered: those of few rows are."""
        self.before(statement)
        if self._rows is None:
            return execute()
        key = statement, parameters
        if (remembered := self._rows.get(key)) is not None:
            return list(remembered)
        rows = execute()
        if len(rows) <= FEW:
            self._rows[key] = tuple(rows)
        return rows


def inserted(sql: Sql, table: str, row: Mapping[str, Value]) -> None:
    """Insert `row`, a mapping from columns to values."""
    columns = ", ".join(row)
    sql.run(f"INSERT INTO {table} ({columns}) VALUES ({', '.join('?' * len(row))})", *row.values())


def literal(text: str) -> str:
    """Return `text` as a pattern of `LIKE ? ESCAPE '!'` that matches only itself; add % where more may stand."""
    return text.replace("!", "!!").replace("%", "!%").replace("_", "!_")


def counted(sql: Sql, table: str, column: str, value: Value) -> int:
    """Return the number of rows of `table` with `value` in `column`, which must have an index."""
    row = sql.row(f"SELECT COUNT(*) AS count FROM {table} WHERE {column} = ?", value)
    assert row is not None
    return int(row["count"])
