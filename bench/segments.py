"""Measure readings in Parquet segments whose catalog is the tables of DuckLake in a database of ours.

`python -m bench segments [--readings 10000000] [--sources 100] [--folder FOLDER]`

It needs packages that are no dependency of the project yet, in the interpreter that runs it: `duckdb`,
`duckdb-extension-ducklake`, `duckdb-extension-sqlite-scanner`, `pyarrow` and `numpy`. Three values of sensors with one
decimal, one reading a second and source, sorted by source and time; columns of an integer have the deltas of Parquet.

The catalog is written with Python's sqlite3 in one transaction that also forgets the recent rows, and not by DuckDB.
Each question is then answered in a separate process, with one thread and 96 MB: by DuckDB attached to the catalog, by
DuckDB with a list of files, which needs no extension, and by pyarrow. Times are processor time with the start of the
process.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

SEGMENT: Final = 1_000_000  # readings
GROUP: Final = 100_000  # readings in a row group
START: Final = 1_767_225_600_000_000  # 2026-01-01, in microseconds
KEYS: Final = ("source", "requested", "received", "synced", "number")
VALUES: Final = ("temperature", "humidity", "lux")
_OPEN: Final = """
import duckdb, importlib, pathlib, sys
connection = duckdb.connect(config={"threads": 1, "memory_limit": "96MB"})
for name in ("sqlite_scanner", "ducklake"):
    (folder,) = importlib.import_module(f"duckdb_extension_{name}").__path__
    (path,) = pathlib.Path(folder).rglob(f"{name}.duckdb_extension")
    connection.execute(f"LOAD '{path}'")
"""
_CREATE: Final = f"""{_OPEN}
connection.execute(f"ATTACH 'ducklake:sqlite:{{sys.argv[1]}}/own.db' AS lake (DATA_PATH '{{sys.argv[1]}}/files/')")
columns = "{", ".join(f"{name} BIGINT" for name in KEYS)}, {", ".join(f"{name} DOUBLE" for name in VALUES)}"
connection.execute(f"CREATE TABLE lake.readings ({{columns}})")
"""
_ATTACHED: Final = f"""{_OPEN}
connection.execute(f"ATTACH 'ducklake:sqlite:{{sys.argv[1]}}/own.db' AS lake (READ_ONLY)")
table = "lake.readings"
"""
_FILES: Final = """
import duckdb, sqlite3, sys
connection = duckdb.connect(config={"threads": 1, "memory_limit": "96MB"})
query = "SELECT path FROM ducklake_data_file WHERE end_snapshot IS NULL"
rows = sqlite3.connect(f"{sys.argv[1]}/own.db").execute(query)
table = f"read_parquet({[f'{sys.argv[1]}/files/main/readings/{row[0]}' for row in rows]})"
"""
_ARROW: Final = """
import pyarrow, pyarrow.dataset, sqlite3, sys
pyarrow.set_cpu_count(1)
query = "SELECT path FROM ducklake_data_file WHERE end_snapshot IS NULL"
rows = sqlite3.connect(f"{sys.argv[1]}/own.db").execute(query)
files = pyarrow.dataset.dataset([f"{sys.argv[1]}/files/main/readings/{row[0]}" for row in rows])
files.to_table(columns=["source", "temperature"]).group_by("source").aggregate([("temperature", "mean")])
"""
_QUESTIONS: Final = {
    "start alone": "SELECT 1",
    "COUNT(*)": "SELECT COUNT(*) FROM {}",
    "AVG by sensor": "SELECT source, AVG(temperature) FROM {} GROUP BY source",
    "newest 50 of a sensor": "SELECT requested, temperature FROM {} WHERE source = 7 ORDER BY requested DESC LIMIT 50",
    "least, greatest, mean of a sensor in buckets": "SELECT requested // 36000000 AS bucket, MIN(temperature), "
    "MAX(temperature), AVG(temperature) FROM {} WHERE source = 7 GROUP BY bucket",
}
_MEASURED: Final = """
import pathlib, time
(peak,) = (line.split()[1] for line in pathlib.Path("/proc/self/status").read_text().splitlines() if "VmHWM" in line)
print(f"{1e3 * time.process_time():7.0f} ms of processor time, {int(peak) // 1024} MiB resident at most")
"""


def main(argv: Sequence[str]) -> int:
    """Print the figures; return 0, or 1 without the packages."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--readings", type=int, default=10_000_000)
    parser.add_argument("--sources", type=int, default=100)
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args(argv)
    for name in ("duckdb", "duckdb_extension_ducklake", "duckdb_extension_sqlite_scanner", "pyarrow", "numpy"):
        try:
            importlib.import_module(name)
        except ImportError:
            print(f"{name} is missing: pip install {name.replace('_', '-')}", file=sys.stderr)
            return 1
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        measure(Path(name), options.readings, options.sources)
    return 0


def measure(folder: Path, count: int, sources: int) -> None:
    """Write segments, ask questions, drop a segment."""
    files = folder / "files" / "main" / "readings"
    files.mkdir(parents=True)
    run(_CREATE, folder)
    database = sqlite3.connect(folder / "own.db", isolation_level=None)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = FULL")
    database.execute("CREATE TABLE recent (number INTEGER PRIMARY KEY, data TEXT NOT NULL)")
    written, committed = list[float](), list[float]()
    for number, table in enumerate(tables(count, sources)):
        begin = time.process_time()
        path = files / f"{number}.parquet"
        write(path, table)
        written.append(time.process_time() - begin)
        begin = time.process_time()
        commit(database, path, table, number)
        committed.append(time.process_time() - begin)
    size = sum(path.stat().st_size for path in files.iterdir())
    print(
        f"{count:,} readings of {sources} sources: {size / count:.2f} bytes, {sum(written) / count * 1e6:.2f} µs each"
    )
    print(f"commit of a segment: {1e3 * sum(committed) / len(committed):.1f} ms of processor time")
    for way, program in (("attached", _ATTACHED), ("list of files", _FILES)):
        for name, query in _QUESTIONS.items():
            asked = f"{program}\nconnection.execute({query!r}.format(table)).fetchall()"
            print(f"{way:14} {name:45} {run(asked + _MEASURED, folder)}", flush=True)
    print(f"{'pyarrow':14} {'AVG by sensor':45} {run(_ARROW + _MEASURED, folder)}", flush=True)
    begin = time.process_time()
    drop(database, 0)
    print(f"a segment dropped: {1e3 * (time.process_time() - begin):.1f} ms of processor time")
    counted = f"{_ATTACHED}\nprint(connection.execute('SELECT COUNT(*) FROM lake.readings').fetchone()[0])"
    assert int(run(counted, folder)) == count - SEGMENT
    database.close()


def run(program: str, folder: Path) -> str:
    """Run a program in a separate process. Two copies of SQLite in one process would break each other's locks."""
    done = subprocess.run([sys.executable, "-c", program, str(folder)], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def tables(count: int, sources: int) -> Iterator[Any]:
    """Yield the readings of each segment as an Arrow table, sorted by source and time."""
    arrow, numpy = importlib.import_module("pyarrow"), importlib.import_module("numpy")
    chance, each = numpy.random.default_rng(1), SEGMENT // sources
    total = each * sources
    for number in range(count // SEGMENT):
        seconds = numpy.arange(each) + number * each
        requested = START + numpy.tile(seconds * 1_000_000, sources) + chance.integers(0, 900, total)
        columns = {
            "source": numpy.repeat(numpy.arange(sources), each),
            "requested": requested,
            "received": requested + chance.integers(300, 900, total),
            "synced": START + numpy.tile(seconds // 10 * 10_000_000, sources),
            "number": numpy.arange(total) + number * total,
        }
        for name, middle in zip(VALUES, (20, 40, 300), strict=True):
            walk = numpy.cumsum(chance.choice([-0.1, 0.0, 0.0, 0.1], total))
            columns[name] = numpy.round(middle + walk, 1)
        fields = [
            arrow.field(
                name,
                arrow.int64() if name in KEYS else arrow.float64(),
                metadata={"PARQUET:field_id": str(place)},  # by which DuckLake knows a column
            )
            for place, name in enumerate(columns, 1)
        ]
        yield arrow.table(columns, schema=arrow.schema(fields))


def write(path: Path, table: Any) -> None:
    """Write a segment, and sync it."""
    parquet = importlib.import_module("pyarrow.parquet")
    deltas = dict.fromkeys(KEYS, "DELTA_BINARY_PACKED")
    parquet.write_table(
        table, path, compression="zstd", row_group_size=GROUP, use_dictionary=list(VALUES), column_encoding=deltas
    )
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


def commit(database: sqlite3.Connection, path: Path, table: Any, number: int) -> None:
    """Add a segment to the catalog and delete its recent rows, in one transaction."""
    compute = importlib.import_module("pyarrow.compute")
    content = path.read_bytes()
    footer, count = int.from_bytes(content[-8:-4], "little"), len(table)
    database.execute("BEGIN IMMEDIATE")
    snapshot = _snapshot(database, "inserted_into_table:1", 1)
    database.execute(
        "INSERT INTO ducklake_data_file VALUES "
        "(?, 1, ?, NULL, NULL, ?, 1, 'parquet', ?, ?, ?, ?, NULL, NULL, NULL, NULL)",
        (number, snapshot, path.name, count, len(content), footer, number * count),
    )
    for place, name in enumerate(table.column_names, 1):
        bounds = compute.min_max(table.column(name)).as_py()
        database.execute(
            "INSERT INTO ducklake_file_column_stats VALUES (?, 1, ?, NULL, ?, 0, ?, ?, ?, NULL)",
            (number, place, count, str(bounds["min"]), str(bounds["max"]), None if name in KEYS else 0),
        )
    if number == 0:
        database.execute("INSERT INTO ducklake_table_stats VALUES (1, 0, 0, 0)")
    database.execute(
        "UPDATE ducklake_table_stats SET record_count = record_count + ?, next_row_id = next_row_id + ?, "
        "file_size_bytes = file_size_bytes + ?",
        (count, count, len(content)),
    )
    database.execute("DELETE FROM recent WHERE number < ?", (number * count,))
    database.execute("COMMIT")


def drop(database: sqlite3.Connection, number: int) -> None:
    """Take a segment out of the newest snapshot."""
    database.execute("BEGIN IMMEDIATE")
    snapshot = _snapshot(database, "deleted_from_table:1", 0)
    database.execute("UPDATE ducklake_data_file SET end_snapshot = ? WHERE data_file_id = ?", (snapshot, number))
    database.execute("COMMIT")


def _snapshot(database: sqlite3.Connection, changes: str, files: int) -> int:
    """Add a snapshot to the catalog, and return its number."""
    number, schema, catalog, file = database.execute(
        "SELECT snapshot_id, schema_version, next_catalog_id, next_file_id FROM ducklake_snapshot "
        "ORDER BY snapshot_id DESC LIMIT 1"
    ).fetchone()
    database.execute(
        "INSERT INTO ducklake_snapshot VALUES (?, '2026-01-01 00:00:00+00', ?, ?, ?)",
        (number + 1, schema, catalog, file + files),
    )
    database.execute("INSERT INTO ducklake_snapshot_changes VALUES (?, ?, NULL, NULL, NULL)", (number + 1, changes))
    return int(number) + 1
