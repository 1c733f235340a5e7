"""Measure what machine-cloud takes to seal readings, to read them back, and what DuckDB takes for the same files.

`python -m bench cloud_sealed [--readings 1000000] [--sources 20] [--duckdb PYTHON] [--folder FOLDER]`

Readings of a year: three values of sensors with one decimal (a random walk), evenly in time, in the order of arrival.
They are rows of a SQLite file first, and each question is asked of rows; then they are sealed, and each is asked of
segments. Times are processor time of the process, medians of five. With `--duckdb`, an interpreter that has `duckdb`
with its extensions for DuckLake and SQLite, questions are also asked of the files, in a separate process with one
thread: by the catalog, and with a list of files.
"""

from __future__ import annotations

import argparse
import random
import statistics
import subprocess
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final

import trio

from bench.cloud_stored import _READING, _SOURCE, SECOND
from cloud.blobs import Blobs
from cloud.blobs.folder import FolderBlobs
from cloud.domain.data.filters import DataFilter, DataScope
from cloud.domain.data.pages import MAX_PAGE, Page
from cloud.domain.data.readings import position
from cloud.domain.data.segments import listed, plotting
from cloud.domain.data.segments.contents import SegmentContents
from cloud.domain.data.segments.reading import Files, Readings
from cloud.server.segment_nodes import seal_all
from cloud.store.events import Events
from cloud.store.sql import Sql, Store, Value
from cloud.store.sqlite import SqliteStore
from cloud.values.times import stored
from support.worker import Worker

START: Final = datetime(2026, 1, 1, tzinfo=UTC)
YEAR: Final = timedelta(days=365)
AVERAGE: Final = 'SELECT source, AVG("readings.temperature") FROM {} GROUP BY source'
_DUCKDB: Final = """
import duckdb, importlib, pathlib, sys, time
folder, way, query = sys.argv[1:]
connection = duckdb.connect(config={"threads": 1})
if way == "catalog":
    for name in ("sqlite_scanner", "ducklake"):
        (place,) = importlib.import_module(f"duckdb_extension_{name}").__path__
        (path,) = pathlib.Path(place).rglob(f"{name}.duckdb_extension")
        connection.execute(f"LOAD '{path}'")
    connection.execute(f"ATTACH 'ducklake:sqlite:{folder}/cloud.db' AS lake (DATA_PATH '{folder}/files/', READ_ONLY)")
    table = "lake.a"
else:
    table = f"read_parquet({[str(path) for path in pathlib.Path(folder, 'files').glob('??/*')]})"
connection.execute(query.format(table)).fetchall()
print(f"{1e3 * time.process_time():.0f} ms")
"""


def main(argv: Sequence[str]) -> int:
    """Print the figures; return 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--readings", type=int, default=1_000_000)
    parser.add_argument("--sources", type=int, default=20)
    parser.add_argument("--duckdb", default="")
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        trio.run(measure, Path(name), options.readings, options.sources)
        for way in ("catalog", "list of files") if options.duckdb else ():
            for query in ("SELECT COUNT(*) FROM {}", AVERAGE):
                command = [options.duckdb, "-c", _DUCKDB, name, way, query]
                done = subprocess.run(command, check=True, capture_output=True, text=True)
                print(f"DuckDB, {way}: {query.split(' FROM')[0]}: {done.stdout.strip()} with the start")
    return 0


async def measure(folder: Path, count: int, sources: int) -> None:
    """Store readings, ask, seal, ask."""
    database = folder / "cloud.db"
    async with (
        SqliteStore(database, Events()).opened() as store,
        FolderBlobs(folder / "files").opened() as blobs,
        (worker := Worker("segments")).opened(),
    ):
        for start in range(0, count, 10_000):
            await store.write(partial(fill, start=start, end=min(count, start + 10_000), count=count, sources=sources))
        print(f"{count:,} readings of {sources} sources over a year: {database.stat().st_size / count:.0f} bytes each")
        await ask("rows", store, blobs, worker, count, sources)
        begin, wall = time.process_time(), time.perf_counter()
        timed = _Timed(store)
        await seal_all(timed, blobs, worker, timedelta(hours=1), lambda: START + YEAR + timedelta(days=30))
        spent, wall = time.process_time() - begin, time.perf_counter() - wall
        figures = await store.read(listed.figures)
        print(
            f"sealed {figures.readings:,} into {figures.segments}: {figures.size / figures.readings:.2f} bytes, "
            f"{spent / count * 1e6:.1f} µs of processor time and {wall / count * 1e6:.1f} µs each; longest transaction "
            f"{1e3 * timed.longest:.0f} ms"
        )
        await ask("segments", store, blobs, worker, count, sources)
        average = await clocked(lambda: store.read(averages))
        print(f"segments: AVG of all from the sums: {average:.1f} ms")


def fill(sql: Sql, start: int, end: int, count: int, sources: int) -> None:
    """Store readings from number `start` to before `end`."""
    if not start:
        sql.run("INSERT INTO organizations (id, name, created) VALUES ('a', 'a', 0)")
        numbers = range(1, sources + 1)
        sql.many(_SOURCE, [(n, f"k{n}", "a", f"m{n}", f"m{n}", f"p{n}", f"s{n}") for n in numbers])
    chance, step = random.Random(start), int(YEAR.total_seconds() * SECOND) // count
    values = [[20.0, 40.0, 300.0] for _ in range(sources)]
    rows: list[tuple[Value, ...]] = []
    for number in range(start, end):
        source = number % sources
        each = values[source] = [round(value + chance.choice((-0.1, 0.0, 0.0, 0.1)), 1) for value in values[source]]
        moment = stored(START) + number * step
        data = '{"readings":{"humidity":%.1f,"lux":%.1f,"temperature":%.1f}}' % tuple(each)  # noqa: UP031
        rows.append((source + 1, moment + chance.randrange(900), moment + 1000, moment + 2000, data))
    sql.many(_READING, rows)


async def ask(where: str, store: Store, blobs: Blobs, worker: Worker, count: int, sources: int) -> None:
    """Print the time of each question."""

    def readings() -> Readings:  # nothing in memory yet
        return Readings(store, Files(blobs, SegmentContents(), worker.run), lambda sql: DataScope(("a",)))

    newest, middle = Page(limit=50, descending=True), (stored(START + YEAR / 2), 0)
    month = DataFilter(start=START + timedelta(days=90), end=START + timedelta(days=120))
    single, whole = DataFilter(component="s1"), DataFilter(component="s1", start=START, end=START + YEAR)

    async def export() -> None:
        source, after = readings(), None
        while page := await source.page(single, Page(after, MAX_PAGE)):
            after = position(page[-1])

    questions: dict[str, Callable[[], Awaitable[Any]]] = {
        "newest 50 of the organization": lambda: readings().page(DataFilter(), newest),
        "50 of the organization in the past": lambda: readings().page(DataFilter(), Page(middle, 50, descending=True)),
        "50 of a source in the past": lambda: readings().page(single, Page(middle, 50, descending=True)),
        "count of a month": lambda: readings().total(month),
        "plot of a source over the year": lambda: plotted(readings(), whole),
        "plot of a source over a week": lambda: plotted(
            readings(), DataFilter(component="s1", start=START + YEAR / 2, end=START + YEAR / 2 + timedelta(days=7))
        ),
        f"export of {count // sources:,} readings of a source": export,
    }
    for name, question in questions.items():
        print(f"  {where:9} {name:45} {await clocked(question):9.1f} ms", flush=True)


async def plotted(readings: Readings, data_filter: DataFilter) -> None:
    captured = await plotting.captured(readings, data_filter, 600)
    assert captured is not None
    captured.parsed()


def averages(sql: Sql) -> object:
    """Return the mean of a field of each source from the sums of segments."""
    return sql.rows(
        """
        SELECT segments.source AS source, SUM(segment_sums.total) / SUM(value_count) AS mean FROM ducklake_column
        JOIN segment_sums ON segment_sums.column_id = ducklake_column.column_id
        JOIN ducklake_file_column_stats ON ducklake_file_column_stats.data_file_id = segment_sums.data_file_id
            AND ducklake_file_column_stats.column_id = segment_sums.column_id
        JOIN segments ON segments.number = segment_sums.data_file_id
        WHERE column_name = 'readings.temperature' GROUP BY segments.source
        """
    )


async def clocked(question: Callable[[], Awaitable[Any]]) -> float:
    """Return the median of the processor time of a question in milliseconds."""
    times = []
    for _ in range(5):
        begin = time.process_time()
        await question()
        times.append(1e3 * (time.process_time() - begin))
    return statistics.median(times)


class _Timed:
    """A store that remembers its longest transaction that writes."""

    def __init__(self, store: Store) -> None:
        self.read = store.read
        self.longest = 0.0
        self._store = store

    async def write(self, work: Callable[[Sql], Any]) -> Any:
        def timed(sql: Sql) -> Any:
            begin = time.perf_counter()
            try:
                return work(sql)
            finally:
                self.longest = max(self.longest, time.perf_counter() - begin)

        return await self._store.write(timed)
