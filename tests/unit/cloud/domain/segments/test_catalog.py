"""The catalog: columns keep their numbers, segments come and go in one transaction, totals need no data."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from cloud.domain.data.segments import catalog
from cloud.domain.data.segments.columns import SegmentRow, columns_of
from cloud.domain.data.segments.parquet import written
from cloud.server.memory import MemoryCloud
from cloud.store.sql import Sql
from tests.unit.cloud.conftest import BOTH

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def sealed(sql: Sql, owner: str, path: str, *texts: str) -> list[int]:
    """Add a segment with these readings; return the numbers of its columns."""
    columns = columns_of([SegmentRow(1, number, number, number, number, text) for number, text in enumerate(texts)])
    ids = catalog.column_ids(sql, owner, columns.kinds, NOW)
    numbers = [number for number in ids if number is not None]
    assert len(numbers) == len(ids)
    content, summaries = written(columns, numbers)
    catalog.add(sql, owner, path, content, numbers, summaries, NOW)
    return numbers


def paths(sql: Sql) -> list[str]:
    return [row["path"] for row in sql.rows("SELECT path FROM ducklake_data_file ORDER BY data_file_id")]


def totals(sql: Sql, name: str) -> list[float]:
    rows = sql.rows(
        """
        SELECT segment_sums.total AS total FROM segment_sums
        JOIN ducklake_data_file ON ducklake_data_file.data_file_id = segment_sums.data_file_id
        JOIN ducklake_column ON ducklake_column.table_id = ducklake_data_file.table_id
            AND ducklake_column.column_id = segment_sums.column_id
        WHERE column_name = ? ORDER BY segment_sums.data_file_id
        """,
        name,
    )
    return [row["total"] for row in rows]


@BOTH
async def test_columns_keep_their_numbers(cloud: MemoryCloud) -> None:
    def work(sql: Sql) -> list[list[int]]:
        return [
            sealed(sql, "a", "1", '{"t":1.5}', '{"t":2.0}'),
            sealed(sql, "a", "2", '{"t":1.0,"u":true}'),
            sealed(sql, "a", "3", '{"t":"text"}'),  # another kind: another column
            sealed(sql, "a", "4", '{"T":3.0}'),  # a name that differs only in case is not the same
            sealed(sql, "b", "5", '{"t":4.0}'),
        ]

    first, second, third, fourth, other = await cloud.cloud.store.write(work)
    assert first == other == [1, 2, 3, 4, 5, 6, 7]
    assert second == [*first, 8]
    assert third == [*first[:6], 9]
    assert fourth == [*first[:6], 10]
    names = await cloud.cloud.store.read(
        lambda sql: sql.rows("SELECT column_name FROM ducklake_column WHERE table_id = 1 ORDER BY column_id")
    )
    assert [row["column_name"] for row in names][6:] == ["t", "u", "t (varchar)", "T (float64)"]
    assert await cloud.cloud.store.read(lambda sql: totals(sql, "t")) == [3.5, 1.0, 4.0]


@BOTH
async def test_a_dropped_segment_is_not_listed(cloud: MemoryCloud) -> None:
    store = cloud.cloud.store
    for path in ("1", "2", "3"):
        await store.write(lambda sql, path=path: sealed(sql, "a", path, '{"t":1.0}'))  # type: ignore[misc]
    await store.write(lambda sql: catalog.drop(sql, "b", [0], NOW))  # another organization
    await store.write(lambda sql: catalog.drop(sql, "a", [1, 7], NOW))
    assert await store.read(paths) == ["1", "3"]
    assert await store.read(lambda sql: totals(sql, "t")) == [1.0, 1.0]
    (stats,) = await store.read(lambda sql: sql.rows("SELECT * FROM ducklake_table_stats"))
    assert (stats["record_count"], stats["next_row_id"]) == (2, 3)
    assert len(await store.read(lambda sql: sql.rows("SELECT * FROM ducklake_snapshot"))) == 1
    await store.write(lambda sql: catalog.forget(sql, "a", NOW))
    assert await store.read(lambda sql: sql.rows("SELECT * FROM ducklake_column")) == []


@BOTH
async def test_a_failed_transaction_leaves_nothing(cloud: MemoryCloud) -> None:
    def work(sql: Sql) -> None:
        sealed(sql, "a", "1", '{"t":1.0}')
        raise RuntimeError("the process ends here")

    def state(sql: Sql) -> list[Any]:
        tables = ("ducklake_snapshot", "ducklake_table", "ducklake_column", "ducklake_data_file", "segment_sums")
        return [sql.rows(f"SELECT * FROM {table}") for table in tables]

    before = await cloud.cloud.store.read(state)
    with pytest.raises(RuntimeError, match="ends here"):
        await cloud.cloud.store.write(work)
    assert await cloud.cloud.store.read(state) == before
