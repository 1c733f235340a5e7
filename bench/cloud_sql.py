"""Measure SQL of machine-cloud over Parquet files, against DuckDB alone on the same files.

`python -m bench cloud_sql [--readings 1000000] [--sources 20] [--recent 100000] [--folder FOLDER]`

Readings of a year as in `cloud_sealed`, sealed; `--recent` further ones stay rows of the database. Questions are asked
of the cloud's engine, in its confined process, and of DuckDB with one thread, in a process of its own that reads the
list of files; there the question is as short as the files allow, and recent rows are not asked for. Times are processor
time of all processes with their start, medians of five. A folder that has been filled before is used again.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Final

import trio

from bench.cloud_sealed import START, YEAR, fill
from cloud.blobs.folder import FolderBlobs
from cloud.domain.queries.gathering import gathered
from cloud.domain.queries.query_process import QueryProcesses
from cloud.server.segment_nodes import seal_all
from cloud.store.events import Events
from cloud.store.sqlite import SqliteStore
from support.worker import Worker

OWNER: Final = "a"
QUESTIONS: Final = {
    "start alone": ("SELECT 1 AS one", "SELECT 1"),
    "COUNT(*)": ("SELECT COUNT(*) AS n FROM readings", "SELECT COUNT(*) FROM {}"),
    "AVG by sensor": (
        "SELECT component_name, AVG(data.readings.temperature) AS t FROM readings GROUP BY ALL",
        'SELECT source, AVG("readings.temperature") FROM {} GROUP BY source',
    ),
    "newest 50 of a sensor": (
        "SELECT time_requested, data.readings.temperature AS t FROM readings WHERE component_name = 's1' "
        "ORDER BY time_requested DESC LIMIT 50",
        'SELECT requested, "readings.temperature" FROM {} WHERE source = 1 ORDER BY requested DESC LIMIT 50',
    ),
    "least, greatest and mean of a sensor by day": (
        "SELECT date_trunc('day', time_requested) AS d, MIN(data.readings.temperature) AS a, "
        "MAX(data.readings.temperature) AS b, AVG(data.readings.temperature) AS c FROM readings "
        "WHERE component_name = 's1' GROUP BY d",
        "SELECT date_trunc('day', make_timestamp(requested)) AS d, MIN(\"readings.temperature\"), "
        'MAX("readings.temperature"), AVG("readings.temperature") FROM {} WHERE source = 1 GROUP BY d',
    ),
    "AVG by sensor from the JSON text": (
        "SELECT component_name, AVG((data->>'$.readings.temperature')::DOUBLE) AS t FROM readings GROUP BY ALL",
        'SELECT source, AVG("readings.temperature") FROM {} GROUP BY source',
    ),
}
_ALONE: Final = """
import _duckdb, pathlib, sys
connection = _duckdb.connect(config={"threads": 1, "memory_limit": "384MB"})
files = [str(path) for path in pathlib.Path(sys.argv[1], "files").glob("??/*")]
connection.execute(sys.argv[2].format(f"read_parquet({files}, union_by_name = false)")).fetchall()
"""


def main(argv: Sequence[str]) -> int:
    """Print the figures; return 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--readings", type=int, default=1_000_000)
    parser.add_argument("--sources", type=int, default=20)
    parser.add_argument("--recent", type=int, default=0)
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as name:
        trio.run(measure, options.folder or Path(name), options.readings, options.sources, options.recent)
    return 0


async def measure(folder: Path, count: int, sources: int, recent: int) -> None:
    """Store and seal readings unless the folder has some; ask."""
    filled = await trio.Path(folder, "cloud.db").exists()
    async with (
        SqliteStore(folder / "cloud.db", Events()).opened() as store,
        FolderBlobs(folder / "files").opened() as blobs,
        (worker := Worker("readings")).opened(),
        QueryProcesses(folder / "queries").opened() as engine,
    ):
        if not filled:
            for start in range(0, count, 10_000):
                end = min(count, start + 10_000)
                await store.write(partial(fill, start=start, end=end, count=count, sources=sources))
            await seal_all(store, blobs, worker, timedelta(hours=1), lambda: START + YEAR + timedelta(days=30))
        for start in range(count, count + recent, 10_000):
            end = min(count + recent, start + 10_000)
            await store.write(partial(fill, start=start, end=end, count=count, sources=sources))
        rows = await store.read(lambda sql: sql.rows("SELECT COUNT(*) AS count FROM readings")[0]["count"])
        files = await trio.to_thread.run_sync(lambda: len(list((folder / "files").glob("??/*"))))
        print(f"{count:,} readings in {files} files, {rows:,} in the database")
        for name, (own, alone) in QUESTIONS.items():
            spent, walls = [], []
            for _ in range(5):
                before, wall = _spent(), time.perf_counter()
                await engine.execute(OWNER, own, partial(gathered, store, blobs, worker.run, OWNER))
                spent.append(1e3 * (_spent() - before))
                walls.append(1e3 * (time.perf_counter() - wall))
            other = await trio.to_thread.run_sync(partial(_clocked, partial(_alone, folder, alone)))
            own_time = statistics.median(spent)
            print(
                f"  {name:45} cloud {own_time:7.0f} ms ({statistics.median(walls):.0f} ms on the clock), "
                f"DuckDB alone {other:7.0f} ms, ratio {own_time / other:.2f}",
                flush=True,
            )


def _alone(folder: Path, question: str) -> None:
    command = [sys.executable, "-I", "-c", _ALONE, folder, question]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def _clocked(work: Callable[[], None]) -> float:
    times = []
    for _ in range(5):
        before = _spent()
        work()
        times.append(1e3 * (_spent() - before))
    return statistics.median(times)


def _spent() -> float:
    """Return the processor time of this process and of its children that have ended, in seconds."""
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in both)
