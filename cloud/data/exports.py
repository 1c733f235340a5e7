"""Readings as a file, made piece by piece while it is sent: CSV (RFC 4180) and Parquet.

What is exported is read twice: first for its columns, then for its rows; so nothing of it is kept in memory.
"""

from __future__ import annotations

import csv
import io
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from datetime import datetime
from functools import partial
from typing import Any, Final, TypeVar

from cloud.data.readings import ReadingRecord
from cloud.data.table import FIXED, TIMES, Kind, cells, fixed, widen
from cloud.times import stored
from schema.errors import ErrorKind, MachineError
from schema.spreadsheet import harmless

T = TypeVar("T")

Pages = Callable[[tuple[int, int] | None], Awaitable[list[ReadingRecord]]]
"""The page of readings behind a place; none at the end."""

Aside = Callable[[Callable[[], T]], Awaitable[T]]
"""Carries out a function beside the event loop."""

ROWS_A_GROUP: Final = 10_000  # of a Parquet file


async def columns_of(pages: Pages, aside: Aside[Any]) -> dict[str, Kind]:
    """The columns of values that an export has."""
    columns: dict[str, Kind] = {}
    async with aclosing(_each(pages)) as each:
        async for found in each:
            await aside(partial(widen, columns, found))
    return columns


async def as_csv(pages: Pages, aside: Aside[Any]) -> AsyncGenerator[bytes, None]:
    """A CSV file in UTF-8 with one line of names; times in ISO 8601."""
    columns = await columns_of(pages, aside)
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer)
    writer.writerow([*FIXED, *(harmless(path) for path in columns)])
    yield _taken(buffer)

    def piece(found: Sequence[ReadingRecord]) -> bytes:
        for one in found:
            writer.writerow([*(_text(value) for value in fixed(one)), *(_text(value) for value in cells(one, columns))])
        return _taken(buffer)

    async with aclosing(_each(pages)) as each:
        async for found in each:
            yield await aside(partial(piece, found))


async def as_parquet(pages: Pages, aside: Aside[Any]) -> AsyncGenerator[bytes, None]:
    """A Parquet file. UNSUPPORTED without pyarrow."""
    try:
        import pyarrow
    except ImportError:
        raise MachineError(
            "Parquet needs pyarrow, which is not installed with this cloud",
            kind=ErrorKind.UNSUPPORTED,
            remedy="install the extra `parquet`, or export as CSV",
        ) from None
    columns = await columns_of(pages, aside)
    file = await aside(lambda: _Parquet(pyarrow, columns))
    waiting: list[ReadingRecord] = []
    async with aclosing(_each(pages)) as each:
        async for found in each:
            waiting += found
            if len(waiting) >= ROWS_A_GROUP:
                group, waiting = waiting, []
                yield await aside(partial(file.add, group))
    yield await aside(partial(file.end, waiting))


class _Parquet:
    """A Parquet file that is taken away while it grows."""

    def __init__(self, arrow: Any, columns: Mapping[str, Kind]) -> None:
        import pyarrow.parquet as parquet

        self._arrow = arrow
        self._columns = columns
        kinds = {Kind.BOOL: arrow.bool_(), Kind.NUMBER: arrow.float64(), Kind.TEXT: arrow.string()}
        time = arrow.timestamp("us", tz="UTC")
        schema = [(name, time if name in TIMES else arrow.string()) for name in FIXED]
        taken = set(FIXED)
        for path, kind in columns.items():
            schema.append((f"data.{path}" if path in taken else path, kinds[kind]))
        self._schema = arrow.schema(schema)
        self._sink = _Sink()
        self._writer = parquet.ParquetWriter(arrow.PythonFile(self._sink, mode="w"), self._schema)

    def add(self, rows: Sequence[ReadingRecord]) -> bytes:
        """Write a group of rows; the bytes that the file has grown by."""
        table = [(*fixed(one), *cells(one, self._columns)) for one in rows]
        arrays = [
            self._arrow.array([row[number] for row in table], field.type) for number, field in enumerate(self._schema)
        ]
        self._writer.write_table(self._arrow.Table.from_arrays(arrays, schema=self._schema))
        return self._sink.taken()

    def end(self, rows: Sequence[ReadingRecord]) -> bytes:
        """Write what is left and the file's end."""
        begun = self.add(rows) if rows else b""
        self._writer.close()
        return begun + self._sink.taken()


class _Sink(io.RawIOBase):
    """Takes what is written; `tell` goes on counting after it was taken away."""

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


async def _each(pages: Pages) -> AsyncGenerator[list[ReadingRecord], None]:
    after: tuple[int, int] | None = None
    while found := await pages(after):
        yield found
        after = stored(found[-1].requested), found[-1].number


def _text(value: str | float | bool | datetime | None) -> str | float:
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, bool):
        return "true" if value else "false"
    return harmless(value) if isinstance(value, str) else value


def _taken(buffer: io.StringIO) -> bytes:
    data = buffer.getvalue().encode()
    buffer.seek(0)
    buffer.truncate()
    return data
