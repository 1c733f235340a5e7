"""machine-cloud is killed with SIGKILL while it migrates the database of an earlier version and seals its readings.

The earlier version had no segments; its readings are all in rows. Each of them exists exactly once afterwards, and so
does each reading that is acknowledged meanwhile. MACHINE_CLOUD_KILLS and MACHINE_CLOUD_SEED are as in
test_killed_sealing; half of the kills are between two statements of the migration, half at any moment after it.
"""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest
import trio

from cloud.blobs.folder import FolderBlobs
from cloud.store import migrations, moving, session
from cloud.store.migrations import STEPS, statements
from cloud.store.tables import data
from tests.e2e.cloud.process import cloud
from tests.e2e.cloud.test_faults import SEED
from tests.e2e.cloud.test_killed_sealing import (
    A_DAY,
    EACH,
    KILLS,
    MODULE,
    begun,
    check_files,
    kill_at_work,
    opened,
)
from tests.postgresql import Cluster

DYING = "tests.e2e.cloud.dying"
EARLIER = STEPS[: STEPS.index(data.EXPIRY)]
LATER = sum(len(statements(step)) for step in STEPS[len(EARLIER) :])
READINGS = 1500
DAY = 24 * 3600 * 1_000_000  # microseconds


def write_earlier(present: Path, earlier: Path) -> None:
    """Write the contents of a database as the earlier version had them, with more readings of its only source."""
    with closing(sqlite3.connect(earlier, isolation_level=None)) as connection:
        for step in EARLIER:
            for statement in statements(step):
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {len(EARLIER)}")
        connection.execute("ATTACH ? AS present", (str(present),))
        listing = "SELECT name FROM main.sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite!_%' ESCAPE '!'"
        for (table,) in connection.execute(listing).fetchall():
            names = ", ".join(row[1] for row in connection.execute(f"PRAGMA main.table_info({table})"))
            connection.execute(f"INSERT INTO main.{table} ({names}) SELECT {names} FROM present.{table}")
        (source, first, synced) = connection.execute("SELECT source, MIN(requested), synced FROM readings").fetchone()
        rows = []
        for number in range(EACH, READINGS):
            moment = first + number // A_DAY * DAY + number % A_DAY * 1_000_000
            rows.append((source, moment, moment, synced, f'{{"number": {number}}}'))
        insert = "INSERT INTO readings (source, requested, received, synced, data) VALUES (?, ?, ?, ?, ?)"
        connection.execute("BEGIN")
        connection.executemany(insert, rows)
        connection.execute("COMMIT")


def remaining_statements(database: Path) -> int:
    with closing(sqlite3.connect(database)) as connection:
        done = connection.execute("PRAGMA user_version").fetchone()[0]
    return sum(len(statements(step)) for step in STEPS[done:])


async def die(folder: Path, options: Sequence[str], statement: int) -> None:
    """Start a cloud that dies before a statement of its migration."""
    process = await trio.lowlevel.open_process(
        [sys.executable, "-m", DYING, "--data", "data", "--listen", "localhost:0", *options],
        cwd=folder,
        stdout=sys.stderr,
        env={**os.environ, "MACHINE_TEST_DIES_AT": str(statement)},
    )
    with trio.fail_after(120):
        assert await process.wait() == -signal.SIGKILL, f"the cloud has not died before statement {statement}"


@pytest.mark.limit(300 + 30 * (KILLS or 10))
@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
async def test_migrated_readings_survive_kill_9(
    tmp_path: Path, database: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyarrow", reason="segments need the extra `data`")
    kills, chance = (KILLS or 4) // 2, random.Random(SEED)
    options = ["--files", str(tmp_path / "files")]
    async with cloud(tmp_path, *options, "--seal-after", "never") as running, running.client() as client:
        truth = await begun(running, client)
        await truth.keep(client)
        await running.stop()
    place, url = tmp_path / "data" / "cloud.db", ""
    place.rename(tmp_path / "present.db")
    write_earlier(tmp_path / "present.db", place)
    truth.kept = READINGS
    if database == "postgresql":
        server: Cluster = request.getfixturevalue("postgresql")
        url = server.fresh()
        for module in (migrations, moving, session):
            monkeypatch.setattr(module, "STEPS", EARLIER)
        moving.move(place, url, lambda table, rows: None)
        monkeypatch.undo()
        options += ["--database", url]
    options += ["--seal-after", "1"]
    for left in range(kills, 0, -1):
        remaining = remaining_statements(place) if not url else LATER  # one transaction there, one for each step here
        await die(tmp_path, options, remaining if left == 1 else chance.randint(1, max(1, remaining // left)))
    for _ in range(kills):
        async with cloud(tmp_path, *options, module=MODULE) as running, running.client(truth.key) as client:
            await truth.check(client)
            await kill_at_work(running, client, truth, chance)
    async with cloud(tmp_path, *options, module=MODULE) as running, running.client(truth.key) as client:
        await truth.check(client)
    async with opened(tmp_path, url) as store, FolderBlobs(tmp_path / "files").opened() as files:
        figures = await check_files(store, files)
    assert figures.segments
    print(f"{database}: {2 * kills} kills; {truth.kept} readings kept, {truth.deleted} deleted; {figures}")
