"""The catalog of segments: a table of DuckLake for each organization, with a file for each segment.

Changes of the catalog are transactions of the cloud's database, so a segment replaces its rows at once or not at all.
Only the newest snapshot exists: files of earlier ones are in the trash.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final
from uuid import uuid4

from cloud.domain.data.segments.columns import KEYS, WHOLE, FieldKind
from cloud.domain.data.segments.parquet import Summary
from cloud.store.sql import Sql

TYPES: Final = {FieldKind.BOOL: "boolean", FieldKind.NUMBER: "float64", FieldKind.TEXT: "varchar"}
MAX_COLUMNS: Final = 2000  # of a table; further fields of an organization have no column
MAX_BOUND: Final = 200  # characters
FIRST: Final = (
    "INSERT INTO ducklake_snapshot VALUES (0, '1970-01-01 00:00:00+00', 0, 1, 0)",
    "INSERT INTO ducklake_snapshot_changes VALUES (0, 'created_schema:\"main\"', NULL, NULL, NULL)",
    "INSERT INTO ducklake_schema VALUES (0, '00000000-0000-4000-8000-000000000000', 0, NULL, 'main', '', 1)",
    "INSERT INTO ducklake_schema_versions VALUES (0, 0, NULL)",
    "INSERT INTO ducklake_metadata VALUES ('version', '1.0', NULL, NULL)",
    "INSERT INTO ducklake_metadata VALUES ('created_by', 'machine-cloud', NULL, NULL)",
    "INSERT INTO ducklake_metadata VALUES ('encrypted', 'false', NULL, NULL)",
)
"""Statements of an empty catalog."""


def column_ids(sql: Sql, owner: str, kinds: Mapping[str, FieldKind], now: datetime) -> list[int | None]:
    """Return the numbers of KEYS, WHOLE and fields in the table of an organization; add the table and new columns.

    A field that is already a column of another kind has a second column, `<path> (number)`. A field that would be a
    column beyond MAX_COLUMNS has none: None.
    """
    table = _table(sql, owner)
    if table is None:
        table = _created(sql, owner, now)
    rows = sql.rows("SELECT column_id, column_name, column_type FROM ducklake_column WHERE table_id = ?", table)
    present = {(row["column_name"], row["column_type"]): row["column_id"] for row in rows}
    names, ids = {row["column_name"].casefold() for row in rows}, list[int | None]()
    new: list[tuple[int, str, str]] = []
    for path, type_ in (
        *((name, "int64") for name in KEYS),
        (WHOLE, "varchar"),
        *((path, TYPES[kind]) for path, kind in kinds.items()),
    ):
        name = path if path.casefold() not in names or (path, type_) in present else f"{path} ({type_})"
        number = present.get((name, type_))
        if number is None and len(rows) + len(new) < MAX_COLUMNS and name.casefold() not in names:
            number = len(rows) + len(new) + 1
            new.append((number, name, type_))
            names.add(name.casefold())
        ids.append(number)
    if new:
        snapshot = _snapshot(sql, f"altered_table:{table}", now, schemas=1)
        sql.many(
            "INSERT INTO ducklake_column VALUES (?, ?, NULL, ?, ?, ?, ?, NULL, 'NULL', 1, NULL, 'literal', 'duckdb')",
            [(number, snapshot, table, number, name, type_) for number, name, type_ in new],
        )
        sql.run(
            "INSERT INTO ducklake_schema_versions VALUES (?, (SELECT schema_version FROM ducklake_snapshot "
            "WHERE snapshot_id = ?), ?)",
            snapshot,
            snapshot,
            table,
        )
    return ids


def columns_of(sql: Sql, owner: str) -> list[tuple[int, str, str]]:
    """Return number, name and type of each column in the table of an organization; none if it has no table."""
    rows = sql.rows(
        "SELECT column_id, column_name, column_type FROM ducklake_column WHERE table_id = ?", _table(sql, owner)
    )
    return [(row["column_id"], row["column_name"], row["column_type"]) for row in rows]


def add(
    sql: Sql, owner: str, path: str, content: bytes, ids: Sequence[int], summaries: Sequence[Summary], now: datetime
) -> int:
    """Add a file that is at `path` in the file store; return its number.

    The caller deletes the rows that it replaces, in the same transaction.
    """
    table = _table(sql, owner)
    assert table is not None
    rows, size = summaries[0].count + summaries[0].nulls, len(content)
    (before,) = sql.rows("SELECT next_file_id FROM ducklake_snapshot ORDER BY snapshot_id DESC LIMIT 1")
    number = int(before["next_file_id"])
    snapshot = _snapshot(sql, f"inserted_into_table:{table}", now, files=1)
    (stats,) = sql.rows("SELECT next_row_id FROM ducklake_table_stats WHERE table_id = ?", table)
    sql.run(
        "INSERT INTO ducklake_data_file VALUES "
        "(?, ?, ?, NULL, NULL, ?, 1, 'parquet', ?, ?, ?, ?, NULL, NULL, NULL, NULL)",
        number, table, snapshot, path, rows, size, int.from_bytes(content[-8:-4], "little"), stats["next_row_id"],
    )  # fmt: skip
    sql.many(
        "INSERT INTO ducklake_file_column_stats VALUES (?, ?, ?, NULL, ?, ?, ?, ?, ?, NULL)",
        [
            (
                number,
                table,
                column,
                each.count,
                each.nulls,
                _bound(each.least),
                _bound(each.greatest),
                0 if each.total is not None else None,
            )
            for column, each in zip(ids, summaries, strict=True)
        ],
    )
    sql.many(
        "INSERT INTO segment_sums VALUES (?, ?, ?)",
        [(number, column, each.total) for column, each in zip(ids, summaries, strict=True) if each.total is not None],
    )
    _count(sql, table, rows, size)
    sql.run("UPDATE ducklake_table_stats SET next_row_id = next_row_id + ? WHERE table_id = ?", rows, table)
    return number


def drop(sql: Sql, owner: str, numbers: Sequence[int], now: datetime) -> None:
    """Remove files from the table of an organization."""
    table = _table(sql, owner)
    if table is None or not numbers:
        return
    _snapshot(sql, f"deleted_from_table:{table}", now)
    for number in numbers:
        row = sql.row("SELECT record_count, file_size_bytes FROM ducklake_data_file WHERE data_file_id = ?", number)
        if row is not None:
            _count(sql, table, -row["record_count"], -row["file_size_bytes"])
    for name in ("ducklake_data_file", "ducklake_file_column_stats", "segment_sums"):
        sql.many(f"DELETE FROM {name} WHERE data_file_id = ?", [(each,) for each in numbers])


def forget(sql: Sql, owner: str, now: datetime) -> None:
    """Remove the table of an organization, which has no files any more."""
    table = _table(sql, owner)
    if table is None:
        return
    snapshot = _snapshot(sql, f"dropped_table:{table}", now, schemas=1)
    sql.run("UPDATE ducklake_table SET end_snapshot = ? WHERE table_id = ?", snapshot, table)
    for name in ("ducklake_column", "ducklake_table_stats"):
        sql.run(f"DELETE FROM {name} WHERE table_id = ?", table)


def _count(sql: Sql, table: int, rows: int, size: int) -> None:
    sql.run(
        "UPDATE ducklake_table_stats SET record_count = record_count + ?, file_size_bytes = file_size_bytes + ? "
        "WHERE table_id = ?",
        rows,
        size,
        table,
    )


def _table(sql: Sql, owner: str) -> int | None:
    row = sql.row("SELECT table_id FROM ducklake_table WHERE table_name = ? AND end_snapshot IS NULL", owner)
    return None if row is None else int(row["table_id"])


def _created(sql: Sql, owner: str, now: datetime) -> int:
    if sql.row("SELECT 1 AS present FROM ducklake_snapshot LIMIT 1") is None:
        for statement in FIRST:
            sql.run(statement)
    (row,) = sql.rows("SELECT next_catalog_id FROM ducklake_snapshot ORDER BY snapshot_id DESC LIMIT 1")
    number = int(row["next_catalog_id"])
    snapshot = _snapshot(sql, f'created_table:"main"."{owner}"', now, schemas=1, tables=1)
    sql.run(
        "INSERT INTO ducklake_table VALUES (?, ?, ?, NULL, 0, ?, ?, 1)",
        number,
        str(uuid4()),
        snapshot,
        owner,
        "",
    )
    sql.run("INSERT INTO ducklake_table_stats VALUES (?, 0, 0, 0)", number)
    return number


def _snapshot(sql: Sql, changes: str, now: datetime, *, schemas: int = 0, tables: int = 0, files: int = 0) -> int:
    """Add a snapshot; return its number."""
    (row,) = sql.rows("SELECT * FROM ducklake_snapshot ORDER BY snapshot_id DESC LIMIT 1")
    number = int(row["snapshot_id"]) + 1
    sql.run(
        "INSERT INTO ducklake_snapshot VALUES (?, ?, ?, ?, ?)",
        number,
        now.strftime("%Y-%m-%d %H:%M:%S.%f+00"),
        row["schema_version"] + schemas,
        row["next_catalog_id"] + tables,
        row["next_file_id"] + files,
    )
    sql.run("INSERT INTO ducklake_snapshot_changes VALUES (?, ?, NULL, NULL, NULL)", number, changes)
    for name in ("ducklake_snapshot", "ducklake_snapshot_changes"):
        sql.run(f"DELETE FROM {name} WHERE snapshot_id = ?", row["snapshot_id"])
    return number


def _bound(value: object) -> str | None:
    """Return a bound as DuckLake stores it: as text; None for a long one."""
    if value is None or isinstance(value, str):
        return value if value is None or len(value) <= MAX_BOUND else None
    return str(value).lower() if isinstance(value, bool) else str(value)
