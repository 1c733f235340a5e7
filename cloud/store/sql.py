"""SQL as the cloud's aggregates see it: a handle that lives as long as one transaction.

Statements are written once for SQLite and PostgreSQL: `?` for parameters, times as integers (microseconds since 1970,
UTC), JSON as text, no vendor's functions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

T = TypeVar("T")
Value = str | int | float | bytes | None
Row = Mapping[str, Any]


class Sql(Protocol):
    """The handle of one transaction. Not to be kept beyond it."""

    skip_locked: str
    """The end of a SELECT by which a queue's rows are taken: replicas then take different ones, none waits. Whoever
    takes a row changes or deletes it in the same transaction. Empty where one process has the database to itself."""

    def run(self, statement: str, *parameters: Value) -> int:
        """Carry out a statement; how many rows it changed.

        Conflict if it breaks a uniqueness or a reference. That is the end of the transaction: all that is left to do
        in it is to raise. What may be there already is written with `ON CONFLICT`.
        """
        ...

    def many(self, statement: str, rows: Sequence[Sequence[Value]]) -> None:
        """Carry out a statement for each of many rows."""
        ...

    def rows(self, statement: str, *parameters: Value) -> list[Row]:
        """All rows of a query."""
        ...

    def row(self, statement: str, *parameters: Value) -> Row | None:
        """The first row of a query; None if there is none."""
        ...

    def in_turn(self, subject: str) -> None:
        """Wait for every other transaction that has said the same, until it has ended.

        What is written after this has higher running numbers than all that was written so before: whoever follows the
        numbers of `subject` passes over none. At once where one process has the database to itself.
        """
        ...

    def notify(self, topic: str, subject: str) -> None:
        """Tell whoever listens to `topic` about `subject`, once the transaction has been committed."""
        ...


Work = Callable[[Sql], T]
"""A transaction: a plain function, which may be carried out in another thread. It touches nothing but `Sql`.

It may be carried out more than once, if another one came between: only what it does last is kept.
"""


class Conflict(Exception):
    """A row with the same unique columns exists, or a row that is referred to does not."""


def at_its_end() -> RuntimeError:
    """What a transaction raises that goes on after a Conflict."""
    return RuntimeError("a transaction went on after a Conflict: raise, or say ON CONFLICT in the statement")


class Store(Protocol):
    """A database. `open` it once; `read` and `write` may be called by any number of tasks."""

    async def read(self, work: Work[T]) -> T:
        """What `work` finds, all of it at one moment. It must not change anything."""
        ...

    async def write(self, work: Work[T]) -> T:
        """Carry out `work` whole or not at all: what it returns is on the disk when this returns.

        Whatever it raises undoes it. Cancelled while it waits for its turn, nothing happens; cancelled later, it is
        carried out all the same. Transactions look as if they were carried out one after the other, also those of
        other processes. Running numbers rise in that order among transactions that write to a common row.
        """
        ...


def inserted(sql: Sql, table: str, row: Mapping[str, Value]) -> None:
    """Insert `row`, its keys being columns."""
    columns = ", ".join(row)
    sql.run(f"INSERT INTO {table} ({columns}) VALUES ({', '.join('?' * len(row))})", *row.values())


def counted(sql: Sql, table: str, column: str, value: Value) -> int:
    """How many rows of `table` have `value` in `column`, which has an index."""
    row = sql.row(f"SELECT COUNT(*) AS count FROM {table} WHERE {column} = ?", value)
    assert row is not None
    return int(row["count"])
