"""Exports of readings to CSV (RFC 4180) and Parquet files, which are generated while they are sent.

The readings are read twice, first to determine the columns, then for the rows, so that they need not be kept in memory.
"""

from __future__ import annotations

import csv
import io
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from datetime import datetime
from functools import partial
from typing import Any, Final, TypeVar

from cloud.domain.data.readings import ReadingRecord
from cloud.domain.data.table import FIXED, TIMES, ColumnKind, cells, fixed, widen
from cloud.values.times import stored
from schema import ErrorKind, MachineError
from support.text import harmless_cell

T = TypeVar("T")

Pages = Callable[[tuple[int, int] | None], Awaitable[list[ReadingRecord]]]
"""Function that returns the page of readings after a position; empty at the end."""

Offload = Callable[[Callable[[], T]], Awaitable[T]]
"""Function that runs another function outside the event loop."""

ROWS_A_GROUP: Final = 10_000  # rows in one row group of a Parquet file


async def columns_of(pages: Pages, offload: Offload[Any]) -> dict[str, ColumnKind]:
    """Return the value columns of an export."""
    columns: dict[str, ColumnKind] = {}
    async with aclosing(_all_pages(pages)) as all_pages:
        async for page in all_pages:
            await offload(partial(widen, columns, page))
    return columns


async def as_csv(pages: Pages, offload: Offload[Any]) -> AsyncGenerator[bytes, None]:
    """Generate a CSV file in UTF-8, with a header line and times in ISO 8601."""
    columns = await columns_of(pages, offload)
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer)
    writer.writerow([*FIXED, *(harmless_cell(path) for path in columns)])
    yield _drained(buffer)

    def encoded_rows(page: Sequence[ReadingRecord]) -> bytes:
        for reading in page:
            writer.writerow(
                [*(_text(value) for value in fixed(reading)), *(_text(value) for value in cells(reading, columns))]
            )
        return _drained(buffer)

    async with aclosing(_all_pages(pages)) as all_pages:
        async for page in all_pages:
            yield await offload(partial(encoded_rows, page))


async def as_parquet(pages: Pages, offload: Offload[Any]) -> AsyncGenerator[bytes, None]:
    """Generate a Parquet file. UNSUPPORTED without pyarrow."""
    try:
        import pyarrow
    except ImportError:
        raise MachineError(
            "Parquet needs pyarrow, which is not installed with this cloud",
            kind=ErrorKind.UNSUPPORTED,
            remedy="install the extra `data`, or export as CSV",
        ) from None
    columns = await columns_of(pages, offload)
    file = await offload(lambda: _Parquet(pyarrow, columns))
    pending: list[ReadingRecord] = []
    async with aclosing(_all_pages(pages)) as all_pages:
        async for page in all_pages:
            pending += page
            if len(pending) >= ROWS_A_GROUP:
                group, pending = pending, []
                yield await offload(partial(file.add, group))
    yield await offload(partial(file.end, pending))


class _Parquet:
    """A Parquet file whose bytes can be taken while it is being written."""

    def __init__(self, arrow: Any, columns: Mapping[str, ColumnKind]) -> None:
        import pyarrow.parquet as parquet

        self._arrow = arrow
        self._columns = columns
        kinds = {ColumnKind.BOOL: arrow.bool_(), ColumnKind.NUMBER: arrow.float64(), ColumnKind.TEXT: arrow.string()}
        time = arrow.timestamp("us", tz="UTC")
        schema = [(name, time if name in TIMES else arrow.string()) for name in FIXED]
        reserved = set(FIXED)
        for path, kind in columns.items():
            schema.append((f"data.{path}" if path in reserved else path, kinds[kind]))
        self._schema = arrow.schema(schema)
        self._sink = _Sink()
        self._writer = parquet.ParquetWriter(arrow.PythonFile(self._sink, mode="w"), self._schema)

    def add(self, rows: Sequence[ReadingRecord]) -> bytes:
        """Write a group of rows; return the bytes that were appended to the file."""
        table = [(*fixed(reading), *cells(reading, self._columns)) for reading in rows]
        arrays = [
            self._arrow.array([row[number] for row in table], field.type) for number, field in enumerate(self._schema)
        ]
        self._writer.write_table(self._arrow.Table.from_arrays(arrays, schema=self._schema))
        return self._sink.taken()

    def end(self, rows: Sequence[ReadingRecord]) -> bytes:
        """Write the remaining rows and the footer; return the bytes that were appended to the file."""
        remaining = self.add(rows) if rows else b""
        self._writer.close()
        return remaining + self._sink.taken()


class _Sink(io.RawIOBase):
    """Buffer of written bytes; `tell` includes bytes that were taken out."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._size = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        piece = bytes(data)
        self._pieces.append(piece)
        self._size += len(piece)
        return len(piece)

    def tell(self) -> int:
        return self._size

    def taken(self) -> bytes:
        pieces, self._pieces = self._pieces, []
        return b"".join(pieces)


async def _all_pages(pages: Pages) -> AsyncGenerator[list[ReadingRecord], None]:
    after: tuple[int, int] | None = None
    while page := await pages(after):
        yield page
        after = stored(page[-1].requested), page[-1].number


def _text(value: str | float | bool | datetime | None) -> str | float:
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, bool):
        return "true" if value else "false"
    return harmless_cell(value) if isinstance(value, str) else value


def _drained(buffer: io.StringIO) -> bytes:
    data = buffer.getvalue().encode()
    buffer.seek(0)
    buffer.truncate()
    return data
