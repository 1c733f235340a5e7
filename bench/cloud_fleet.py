"""Ask a cloud that `machine-cloud simulate` has filled: pages, plots, SQL against DuckDB alone, retention.

`machine-cloud --data FOLDER simulate ...`, then `python -m bench cloud_fleet --folder FOLDER`

The cloud must not run. Times are processor time of all processes with their start, medians of five; of the cloud's SQL
and of retention, of three. Retention periods are tried in transactions that are rolled back. Files of DuckDB alone are
those of one sort of sensor, because files of different sensors have different columns.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final

import trio

from bench.cloud_sealed import clocked, plotted
from bench.cloud_sql import _clocked, _spent
from cloud.blobs import name_of
from cloud.blobs.folder import FolderBlobs
from cloud.domain.data import retention
from cloud.domain.data.filters import DataFilter, DataScope
from cloud.domain.data.pages import Page
from cloud.domain.data.segments import listed
from cloud.domain.data.segments.contents import SegmentContents
from cloud.domain.data.segments.reading import Files, Readings
from cloud.domain.queries.gathering import gathered
from cloud.domain.queries.query_process import QueryProcesses
from cloud.store.events import Events
from cloud.store.sql import Sql, Store
from cloud.store.sqlite import SqliteStore
from cloud.values.times import moment_of, stored
from support.worker import Worker

COMPONENT: Final = "climate"
QUESTIONS: Final = {
    "COUNT(*)": (
        f"SELECT COUNT(*) AS n FROM readings WHERE component_name = '{COMPONENT}'",
        "SELECT COUNT(*) FROM {}",
    ),
    "AVG by machine": (
        "SELECT robot_name, AVG(data.readings.temperature) AS t FROM readings "
        f"WHERE component_name = '{COMPONENT}' GROUP BY ALL",
        'SELECT source, AVG("readings.temperature") FROM {} GROUP BY source',
    ),
}
_ALONE: Final = """
import _duckdb, json, sys
connection = _duckdb.connect(config={"threads": 1, "memory_limit": "384MB"})
files = json.load(open(sys.argv[1]))
connection.execute(sys.argv[2].format(f"read_parquet({files}, union_by_name = false)")).fetchall()
"""


class _RolledBack(Exception):
    """Ends a transaction whose changes are not kept."""


def main(argv: Sequence[str]) -> int:
    """Print the figures; return 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True)
    trio.run(measure, parser.parse_args(argv).folder)
    return 0


async def measure(folder: Path) -> None:
    """Ask everything."""
    async with (
        SqliteStore(folder / "cloud.db", Events()).opened() as store,
        FolderBlobs(folder / "files").opened() as blobs,
        (worker := Worker("readings")).opened(),
        QueryProcesses(folder / "queries").opened() as engine,
    ):
        figures = await store.read(listed.figures)
        each = figures.size / figures.readings
        rows, organization, newest = await store.read(_about)
        print(f"{figures.readings:,} readings in {figures.segments:,} files, {each:.1f} bytes each; {rows:,} are rows")
        await _pages(store, Files(blobs, SegmentContents(), worker.run), organization, newest)
        await _sql(folder, store, partial(engine.execute, organization), blobs, worker, organization)
        await _retention(store, organization, newest)


def _about(sql: Sql) -> tuple[int, str, datetime]:
    (row,) = sql.rows("SELECT COUNT(*) AS count, MAX(requested) AS newest FROM readings")
    (owner,) = sql.rows("SELECT id FROM organizations")
    return int(row["count"]), str(owner["id"]), moment_of(int(row["newest"]))


async def _pages(store: Store, files: Files, organization: str, newest: datetime) -> None:
    def readings() -> Readings:
        return Readings(store, files, lambda sql: DataScope((organization,)))

    single = DataFilter(machine_name="sim-0001", component=COMPONENT)
    middle = (stored(newest - timedelta(days=180)), 0)

    def span(days: int) -> DataFilter:
        return DataFilter(
            machine_name="sim-0001", component=COMPONENT, start=newest - timedelta(days=days), end=newest + timedelta(1)
        )

    questions: dict[str, Callable[[], Awaitable[Any]]] = {
        "newest 50 of the organization": lambda: readings().page(DataFilter(), Page(limit=50, descending=True)),
        "50 of the organization in the past": lambda: readings().page(DataFilter(), Page(middle, 50, descending=True)),
        "newest 50 of a source": lambda: readings().page(single, Page(limit=50, descending=True)),
        "50 of a source in the past": lambda: readings().page(single, Page(middle, 50, descending=True)),
        "plot of a source over the year": lambda: plotted(readings(), span(365)),
        "plot of a source over a week": lambda: plotted(readings(), span(7)),
    }
    for name, question in questions.items():
        print(f"  {name:40} {await clocked(question):9.1f} ms", flush=True)


async def _sql(
    folder: Path, store: Store, execute: Callable[..., Awaitable[Any]], blobs: Any, worker: Worker, organization: str
) -> None:
    names = folder / "bench-files.json"
    names.write_text(json.dumps([str(folder / "files" / name) for name in await store.read(_files)]))
    for name, (own, alone) in QUESTIONS.items():
        spent, walls = [], []
        for _ in range(3):
            before, wall = _spent(), time.perf_counter()
            await execute(own, partial(gathered, store, blobs, worker.run, organization))
            spent.append(1e3 * (_spent() - before))
            walls.append(1e3 * (time.perf_counter() - wall))
        other = await trio.to_thread.run_sync(partial(_clocked, partial(_alone, names, alone)))
        print(
            f"  SQL: {name:35} cloud {sorted(spent)[1]:7.0f} ms ({sorted(walls)[1]:.0f} ms on the clock), "
            f"DuckDB alone {other:7.0f} ms, ratio {sorted(spent)[1] / other:.2f}",
            flush=True,
        )


def _alone(names: Path, question: str) -> None:
    command = [sys.executable, "-I", "-c", _ALONE, str(names), question]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def _files(sql: Sql) -> list[str]:
    rows = sql.rows(
        "SELECT segments.blob AS blob FROM data_sources CROSS JOIN segments "
        "WHERE component = ? AND segments.source = data_sources.number",
        COMPONENT,
    )
    return [name_of(row["blob"]) for row in rows]


async def _retention(store: Store, organization: str, newest: datetime) -> None:
    for what, days in (("nothing is old", 400), ("a day is old", 358), ("a month is old", 335)):
        times, gone = list[float](), [0, 0]

        def expire(sql: Sql, days: int, times: list[float], gone: list[int]) -> None:
            retention.set_days(sql, organization, days)
            begin, parts, count = time.process_time(), 0, 0
            while number := retention.expire(sql, newest):
                parts, count = parts + 1, count + number
            times.append(1e3 * (time.process_time() - begin))
            gone[:] = parts, count
            raise _RolledBack

        for _ in range(3):
            try:
                await store.write(partial(expire, days=days, times=times, gone=gone))
            except _RolledBack:
                pass
        print(f"  retention, {what}: {sorted(times)[1]:.1f} ms for {gone[1]:,} readings in {gone[0]} transactions")
