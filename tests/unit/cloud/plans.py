"""Plans of statements in populated databases: the tables that a statement reads whole, and what it sorts.

SQLite chooses plans by the schema alone, because the cloud never runs ANALYZE. PostgreSQL chooses them by what is
stored, so the tables have rows, and statistics are collected.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from cloud.store.dialect import numbered
from cloud.store.migrations import migrate
from cloud.store.session import SETTINGS, plain
from cloud.store.session import migrate as migrate_postgres
from tests.unit.cloud.statements import Executed

ROWS: Final = 2000  # of each table, except of those in SIZES
SIZES: Final = {
    "organizations": 40,
    "locations": 200,
    "readings": 40_000,
    "log_entries": 20_000,
    "audit": 20_000,
    "alert_events": 20_000,
    "deliveries": 20_000,
    "training_events": 20_000,
    "files": 10_000,
    "segments": 10_000,
    "ducklake_data_file": 10_000,
    "ducklake_file_column_stats": 10_000,
    "segment_sums": 10_000,
    "file_tags": 10_000,
    "file_labels": 10_000,
    "dataset_files": 10_000,
}
GROWING: Final = frozenset(
    {
        "readings", "segments", "ducklake_data_file", "ducklake_file_column_stats", "segment_sums",
        "log_entries", "files", "file_tags", "file_labels", "dataset_files", "data_uploads", "audit",
        "deliveries", "delivery_attempts", "trigger_events", "training_events",
        "alert_events", "alert_notices",
    }
)  # fmt: skip
SHARED: Final = 40  # different values of columns that are not unique
LIMIT: Final = 100  # rows
FEW: Final = 200  # rows that PostgreSQL expects to sort; sorting more is a cost that grows with what is stored
_SCAN: Final = re.compile(r"SCAN (\w+)")
_MARK: Final = re.compile(r"(LIMIT )?\?")
_AUTOMATIC: Final = re.compile(r"SEARCH (\w+) USING AUTOMATIC")


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table. `unique` if it alone is unique, or the last of columns that are."""

    name: str
    type: str
    parent: str  # table that it refers to; empty if none
    unique: bool


def sqlite() -> sqlite3.Connection:
    """Return a populated database in memory."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    migrate(connection)
    connection.execute("BEGIN")
    for table, columns in tables(connection).items():
        marks = ", ".join("?" * len(columns))
        connection.executemany(f"INSERT INTO {table} VALUES ({marks})", rows_of(table, columns))
    connection.execute("COMMIT")
    return connection


def postgresql(url: str) -> Any:
    """Populate an empty schema, and return a connection with the settings of the cloud."""
    import psycopg

    migrate_postgres(url)
    with sqlite3.connect(":memory:", isolation_level=None) as model:
        migrate(model)
        every = tables(model)
    model.close()
    connection = psycopg.connect(url, autocommit=True, cursor_factory=psycopg.RawCursor)
    connection.execute("SET session_replication_role = replica")  # references are not checked: any order of tables
    for table, columns in every.items():
        names = ", ".join(column.name for column in columns)
        with connection.cursor() as cursor, cursor.copy(f"COPY {table} ({names}) FROM STDIN") as copy:
            for row in rows_of(table, columns):
                copy.write_row(row)
    connection.execute("SET session_replication_role = origin")
    connection.execute("ANALYZE")
    for name, value in (*SETTINGS, ("plan_cache_mode", "force_generic_plan")):
        connection.execute("SELECT set_config($1, $2, false)", (name, value))
    return connection


def tables(connection: sqlite3.Connection) -> dict[str, list[Column]]:
    """Return the columns of all tables of a database."""
    query = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%' ORDER BY rootpage"
    return {name: list(_columns(connection, name)) for (name,) in connection.execute(query).fetchall()}


def _columns(connection: sqlite3.Connection, table: str) -> Iterator[Column]:
    parents = {row[3]: row[2] for row in connection.execute(f"PRAGMA foreign_key_list({table})")}
    unique = set()
    for _, index, is_unique, *_ in connection.execute(f"PRAGMA index_list({table})").fetchall():
        if is_unique:
            unique.add(connection.execute(f"PRAGMA index_info({index})").fetchall()[-1][2])
    for _, name, kind, _, _, key in connection.execute(f"PRAGMA table_info({table})"):
        yield Column(name, kind, parents.get(name, ""), name in unique or bool(key and kind == "INTEGER"))


def rows_of(table: str, columns: Sequence[Column]) -> Iterator[tuple[Any, ...]]:
    """Yield different rows of a table: columns that are not unique have SHARED values, each as often."""
    most = min([SIZES.get(column.parent, ROWS) for column in columns if column.parent and column.unique], default=None)
    size = SIZES.get(table, ROWS)
    for number in range(size if most is None else min(most, size)):
        yield tuple(_value(column, number) for column in columns)


def _value(column: Column, number: int) -> str | int | float | bytes:
    if column.parent:
        place = number % SIZES.get(column.parent, ROWS)
        return f"id{place}" if column.type == "TEXT" else place
    place = number if column.unique else number % SHARED
    return {"TEXT": f"{column.name}{place}", "REAL": float(place), "BLOB": b"x", "INTEGER": place}[column.type]


def costs_in_sqlite(connection: sqlite3.Connection, executed: Executed) -> set[str]:
    """Return what a statement reads whole or sorts, such as `scans readings` and `sorts`.

    A sort counts if the statement reads a table that grows with what machines send.
    """
    query = "SELECT name FROM sqlite_master WHERE type = 'table'"
    names = {name for (name,) in connection.execute(query)}
    costs, read = set(), set()
    for _, _, _, text in connection.execute(f"EXPLAIN QUERY PLAN {executed.text}", executed.parameters).fetchall():
        for pattern in (_SCAN, _AUTOMATIC):
            if (match := pattern.match(text)) is not None and match[1] in names:
                costs.add(f"scans {match[1]}")
        if text.startswith(("SCAN ", "SEARCH ")):
            read.add(text.split()[1])
        if text.startswith("USE TEMP B-TREE FOR") and "RIGHT PART" not in text:
            costs.add("sorts")
    return costs if read & GROWING else costs - {"sorts"}


def tables_of_indexes(connection: Any) -> dict[str, str]:
    """Return the tables of all indexes of a PostgreSQL database."""
    return dict(connection.execute("SELECT indexname, tablename FROM pg_indexes").fetchall())


def costs_in_postgresql(connection: Any, indexes: Mapping[str, str], executed: Executed) -> set[str]:
    """Return the same for PostgreSQL, with the plan for any parameters, which it uses for repeated statements.

    `indexes` has the result of `tables_of_indexes`.
    """
    from psycopg import errors

    try:
        connection.execute(f"PREPARE explained AS {numbered(_with_limits(executed))}")
    except errors.IndeterminateDatatype:  # the type of a parameter is that of its value
        explained = f"EXPLAIN (FORMAT JSON) {numbered(executed.text)}"
        plan = connection.execute(explained, plain(executed.parameters)).fetchone()[0]
    else:
        query = "SELECT parameter_types FROM pg_prepared_statements WHERE name = 'explained'"
        ((types,),) = connection.execute(query).fetchall()
        arguments = f"({', '.join(['NULL'] * len(types))})" if types else ""
        plan = connection.execute(f"EXPLAIN (FORMAT JSON) EXECUTE explained{arguments}").fetchone()[0]
        connection.execute("DEALLOCATE explained")
    return set(_costs(plan[0]["Plan"], indexes))


def _with_limits(executed: Executed) -> str:
    """Return a statement with limits instead of marks, for which PostgreSQL would expect a tenth of all rows.

    They are at most LIMIT, because tables of clouds are much larger than limits.
    """
    values = iter(executed.parameters)

    def value(match: re.Match[str]) -> str:
        parameter = next(values)
        return f"{match[1]}{min(int(parameter or 0), LIMIT)}" if match[1] else "?"

    return _MARK.sub(value, executed.text)


def _costs(node: Mapping[str, Any], indexes: Mapping[str, str]) -> Iterator[str]:
    kind = node["Node Type"]
    if kind == "Seq Scan" or ("Index" in kind and "Scan" in kind and "Index Cond" not in node):
        yield f"scans {node.get('Relation Name') or indexes[node['Index Name']]}"
    if kind == "Sort" and node["Plan Rows"] > FEW:
        yield "sorts"
    for inner in node.get("Plans", ()):
        yield from _costs(inner, indexes)
