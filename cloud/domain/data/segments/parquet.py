"""Segments as Parquet files: writing, reading, and the bounds and sums of their columns. Blocking: for a thread."""

from __future__ import annotations

import io
import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from cloud.domain.data.segments.columns import KEYS, WHOLE, Columns, FieldKind, SegmentRow
from schema import ErrorKind, MachineError

GROUP: Final = 5000  # rows of a row group, which are read together
Position = tuple[int, int]
"""Place of a reading in the order of its source: `requested` and `number`."""
FIELD_ID: Final = b"PARQUET:field_id"  # by which a catalog knows a column


@dataclass(frozen=True, slots=True)
class Summary:
    """What the catalog says about a column, so that totals need no data. `total` is the sum of numbers."""

    name: str
    count: int  # of values
    nulls: int
    least: Any
    greatest: Any
    total: float | None


def written(columns: Columns, ids: Sequence[int]) -> tuple[bytes, list[Summary]]:
    """Return a segment as a file, and the summaries of its columns.

    `ids` are the numbers of the columns in the catalog: of KEYS, of WHOLE, and of the fields. UNSUPPORTED without
    pyarrow.
    """
    arrow, parquet = _libraries()
    kinds = {FieldKind.BOOL: arrow.bool_(), FieldKind.NUMBER: arrow.float64(), FieldKind.TEXT: arrow.string()}
    types = [*[arrow.int64()] * len(KEYS), arrow.string(), *(kinds[kind] for kind in columns.kinds.values())]
    names = [*KEYS, WHOLE, *columns.kinds]
    values = [*columns.keys.values(), columns.whole, *columns.fields.values()]
    schema = arrow.schema(
        [
            arrow.field(name, type_, metadata={FIELD_ID: str(number).encode()})
            for name, type_, number in zip(names, types, ids, strict=True)
        ]
    )
    table = arrow.table([arrow.array(each, type_) for each, type_ in zip(values, types, strict=True)], schema=schema)
    sink = io.BytesIO()
    parquet.write_table(
        table,
        sink,
        compression="zstd",
        row_group_size=GROUP,
        use_dictionary=[WHOLE, *columns.kinds],
        column_encoding=dict.fromkeys(KEYS, "DELTA_BINARY_PACKED"),
    )
    return sink.getvalue(), [_summary(table, name) for name in names]


def read(content: bytes) -> Columns:
    """Return the columns of a segment. UNSUPPORTED without pyarrow."""
    return _columns(_opened(content).read())


def between(
    content: bytes, low: Position | None, high: Position | None, most: int | None = None, *, newest: bool = False
) -> list[SegmentRow]:
    """Return the readings of a segment of one source after `low` and before `high`, in order of their positions.

    With `most`, the first ones, or with `newest` the last ones. Only row groups that have some are read.
    """
    file = _opened(content)
    rows: list[SegmentRow] = []
    for group, _, start, end in _parts(file, low, high, most, newest=newest):
        table = file.read_row_group(group, use_threads=False)
        part = list(_columns(table.slice(start, end - start)).rows())
        rows = part + rows if newest else rows + part
    return rows


class RowGroupPlaces:
    """Readings of a segment in one row group: their positions, which were read, and the rest, which is not."""

    def __init__(self, file: Any, group: int, start: int, positions: Sequence[Position]) -> None:
        self.positions = positions
        self._file, self._group, self._start = file, group, start

    def rows(self, first: int, last: int) -> list[SegmentRow]:
        """Return the readings at `positions[first]` to `positions[last]`."""
        table = self._file.read_row_group(self._group, use_threads=False)
        return list(_columns(table.slice(self._start + first, last + 1 - first)).rows())


def places(
    content: bytes, low: Position | None, high: Position | None, most: int, *, newest: bool = False
) -> list[RowGroupPlaces]:
    """Return where the readings are that `between` returns."""
    file = _opened(content)
    parts = _parts(file, low, high, most, newest=newest)
    return [RowGroupPlaces(file, group, start, every.slice(start, end)) for group, every, start, end in parts]


def counted(content: bytes, low: Position | None, high: Position | None) -> int:
    """Return how many readings of a segment of one source are after `low` and before `high`."""
    return sum(end - start for _, _, start, end in _parts(_opened(content), low, high, None))


def firsts(content: bytes, low: Position | None, high: Position | None, origin: int, step: int) -> list[SegmentRow]:
    """Return the first reading of each step of time, counted from `origin`, of those after `low` and before `high`."""
    file = _opened(content)
    chosen: dict[int, SegmentRow] = {}
    for group in _groups(file, low, high):
        positions = _Positions(file, group)
        start, end = _bounds(positions, low, high)
        places, before = [], None
        for place, moment in enumerate(positions.moments.slice(start, end - start).to_pylist(), start):
            part = (moment - origin) // step
            if part != before:
                places.append(place)
                before = part
        if places:
            for row in _columns(file.read_row_group(group, use_threads=False).take(places)).rows():
                chosen.setdefault((row.requested - origin) // step, row)
    return list(chosen.values())


def _opened(content: bytes) -> Any:
    arrow, parquet = _libraries()
    return parquet.ParquetFile(arrow.BufferReader(content))  # without calls of Python for each read


def _groups(file: Any, low: Position | None, high: Position | None) -> Iterator[int]:
    """Yield the row groups that may have readings after `low` and before `high`."""
    place = KEYS.index("requested")
    for group in range(file.num_row_groups):
        bounds = file.metadata.row_group(group).column(place).statistics
        if (low is None or bounds.max >= low[0]) and (high is None or bounds.min <= high[0]):
            yield group


def _parts(
    file: Any, low: Position | None, high: Position | None, most: int | None, *, newest: bool = False
) -> Iterator[tuple[int, _Positions, int, int]]:
    """Yield the row groups with readings after `low` and before `high`: positions, and start and end of those readings.

    With `most`, only so many, in the order of time, or with `newest` in the opposite order.
    """
    groups = list(_groups(file, low, high))
    for group in reversed(groups) if newest else groups:
        every = _Positions(file, group)
        start, end = _bounds(every, low, high)
        if most is not None:
            start, end = (max(start, end - most), end) if newest else (start, min(end, start + most))
            most -= end - start
        if start < end:
            yield group, every, start, end
        if most == 0:
            return


class _Positions(Sequence[Position]):
    """Positions of the readings in a row group, of which only those that are asked for become Python objects."""

    def __init__(self, file: Any, group: int) -> None:
        table = file.read_row_group(group, columns=["requested", "number"], use_threads=False)
        self.moments = table.column("requested")
        self._numbers = table.column("number")

    def __len__(self) -> int:
        return len(self.moments)

    def __getitem__(self, place: Any) -> Any:
        return self.moments[place].as_py(), self._numbers[place].as_py()

    def slice(self, start: int, end: int) -> list[Position]:
        """Return the positions from `start` to before `end`."""
        parts = (each.slice(start, end - start).to_pylist() for each in (self.moments, self._numbers))
        return list(zip(*parts, strict=True))


def _bounds(positions: _Positions, low: Position | None, high: Position | None) -> tuple[int, int]:
    start = 0 if low is None else bisect_right(positions, low)
    return start, len(positions) if high is None else max(start, bisect_left(positions, high))


def _columns(table: Any) -> Columns:
    arrow, _ = _libraries()
    kinds = {arrow.bool_(): FieldKind.BOOL, arrow.float64(): FieldKind.NUMBER, arrow.string(): FieldKind.TEXT}
    columns = Columns({name: table.column(name).to_pylist() for name in KEYS})
    columns.whole = table.column(len(KEYS)).to_pylist()
    for place in range(len(KEYS) + 1, table.num_columns):
        name = table.schema.field(place).name
        columns.kinds[name] = kinds[table.schema.field(place).type]
        columns.fields[name] = table.column(place).to_pylist()
    return columns


def _summary(table: Any, name: str) -> Summary:
    import pyarrow.compute as compute

    place = table.column_names.index(name)
    values = table.column(place)
    bounds = compute.min_max(values).as_py()
    total = compute.sum(values).as_py() if str(values.type) == "double" else None
    if total is not None and not math.isfinite(total):
        total = None
    return Summary(name, len(values) - values.null_count, values.null_count, bounds["min"], bounds["max"], total)


def _libraries() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet as parquet
    except ImportError:
        raise MachineError(
            "segments need pyarrow, which is not installed with this cloud",
            kind=ErrorKind.UNSUPPORTED,
            remedy="install the extra `data`",
        ) from None
    return pyarrow, parquet
