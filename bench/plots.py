"""Plots of much data in a browser: `python -m bench plots [--days 365] [--without-index]`.

A cloud has readings of one source, one each second for `days`, and of 10 sources with two fields
each, one each second for a day. Chromium
opens the plot of the first source over its whole time, and of all sources over the day. Reported are the time from
the navigation until the first chart is drawn, and that of the request for the numbers; then the frames per second,
and the longest pause between two frames, while the crosshair moves over the charts, and while the range is moved by
keys. The longest time without an answer is not limited by the page.
"""

from __future__ import annotations

import argparse
import random
import sqlite3
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import trio

from tests.e2e.browser.chromium import browser
from tests.e2e.browser.page import Page
from tests.e2e.browser.signing import sign_in
from tests.e2e.cloud.process import CloudProcess, cloud

APP: Final = "viam.app.v1.AppService"
SYNC: Final = "viam.app.datasync.v1.DataSyncService"
SECOND: Final = 1_000_000
MANY: Final = 10  # sources with two fields each
START: Final = datetime(2025, 1, 1, tzinfo=UTC)
PATIENCE: Final = 600.0
_FILL: Final = """
    INSERT INTO readings (source, requested, received, synced, data)
    WITH RECURSIVE steps(at) AS (SELECT 0 UNION ALL SELECT at + 1 FROM steps WHERE at + 1 < ?)
    SELECT ?, ? + at * 1000000, ? + at * 1000000, ? + at * 1000000,
        '{"readings":{"celsius":' || round(20 + 8 * ((at / 86400) % 30) / 30.0 + (at * 7919 % 100) / 25.0, 2) || ?
    FROM steps
"""
_PAINT: Final = """
new Promise((done) => {
  const look = () => {
    const drawn = document.querySelectorAll(".chart canvas").length;
    if (!drawn) { requestAnimationFrame(look); return; }
    const asked = performance.getEntriesByType("resource").filter((one) => one.name.includes("/data/series")).at(-1);
    requestAnimationFrame(() => done([performance.now(), asked.duration, drawn]));
  };
  look();
})
"""
_FRAMES: Final = """
(() => {
  window.frames_seen = [];
  window.counting = true;
  const next = (time) => { frames_seen.push(time); if (counting) requestAnimationFrame(next); };
  requestAnimationFrame(next);
})()
"""
_COUNTED: Final = """
(() => {
  counting = false;
  const pauses = frames_seen.slice(1).map((time, at) => time - frames_seen[at]);
  const length = frames_seen.at(-1) - frames_seen[0];
  return [1000 * pauses.length / length, Math.max(...pauses), pauses.filter((each) => each > 34).length, pauses.length];
})()
"""


async def prepare(running: CloudProcess) -> None:
    """Make a machine, and one reading of each source."""
    async with running.client() as client:
        robot = await client.call(APP, "", "new_robot", name="plant", location=running.facts["location"])
        part = (await client.call(APP, "", "get_robot_parts", robot_id=robot))[0]["id"]
        for name in ("year", *(f"s{number:02}" for number in range(MANY))):
            metadata: dict[str, Any] = {"part_id": part, "component_name": name, "method_name": "Readings"}
            metadata["type"] = "TABULAR_SENSOR"
            metadata["component_type"] = "rdk:component:sensor"
            metadata["tags"] = [] if name == "year" else ["many"]
            contents = [{"metadata": {"time_requested": START}, "struct": {"readings": {"celsius": 20.0}}}]
            await client.call(SYNC, "", "data_capture_upload", metadata=metadata, sensor_contents=contents)


def fill(path: Path, days: int) -> None:
    """Add the readings to the database of a cloud that does not run."""
    connection = sqlite3.connect(path)
    connection.executescript("PRAGMA synchronous = OFF; PRAGMA cache_size = -500000;")
    query = "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND tbl_name = 'readings' AND sql IS NOT NULL"
    indexes = connection.execute(query).fetchall()
    for name, _ in indexes:  # made at once is faster
        connection.execute(f"DROP INDEX {name}")
    begin = int(START.timestamp()) * SECOND
    for number, name in connection.execute("SELECT number, component FROM data_sources").fetchall():
        count, rest = (days * 86_400, "}}") if name == "year" else (86_400, ',"percent":47.5}}')
        connection.execute(_FILL, (count, number, begin, begin, begin, rest))
        connection.commit()
    for _, statement in indexes:
        connection.execute(statement)
    connection.commit()
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


async def painted(page: Page, name: str, url: str) -> None:
    """Print a row with the time until the first chart is drawn; the page was open before, so its files are cached."""
    rows = []
    for _ in range(3):
        await page.goto(url)
        rows.append(await page.until(_PAINT, limit=PATIENCE))
    paint, asked, charts = sorted(rows)[len(rows) // 2]
    print(f"| {name} | {paint:.0f} | {asked:.0f} | {charts} |", flush=True)


async def moved(page: Page, name: str) -> None:
    """Print a row with the frames while the crosshair moves for 5 seconds, and while the range is moved by keys."""
    box = await page.evaluate("document.querySelector('.u-over').getBoundingClientRect().toJSON()")
    results: list[list[Any]] = []
    await page.evaluate(_FRAMES)
    with trio.move_on_after(5):
        while True:
            x = box["x"] + random.random() * box["width"]
            await page.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=box["y"] + 50)
    results.append(await page.evaluate(_COUNTED))
    await page.focus(".canvas")
    await page.evaluate(_FRAMES)
    with trio.move_on_after(5):
        while True:
            for key in ("Shift+ArrowLeft", "Shift+ArrowRight"):
                await page.press(key)
                await page.until("document.querySelector('.plotting').ariaBusy === 'false'", limit=PATIENCE)
    results.append(await page.evaluate(_COUNTED))
    for what, (rate, longest, slow, frames) in zip(("crosshair", "moving the range"), results, strict=True):
        print(f"| {name}, {what} | {rate:.0f} | {longest:.0f} | {slow} of {frames} |", flush=True)


async def run(days: int, *, without_index: bool) -> None:
    """Fill a cloud and print the tables."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        async with cloud(folder / "cloud") as running:
            await prepare(running)
            key = running.key
            await running.stop()
        database = folder / "cloud" / "data" / "cloud.db"
        begin = time.perf_counter()
        fill(database, days)
        size = database.stat().st_size
        print(f"filled in {time.perf_counter() - begin:.0f} s, {size / 1e9:.1f} GB\n", flush=True)
        if without_index:
            with sqlite3.connect(database) as connection:
                connection.execute("DROP INDEX readings_source")
        async with cloud(folder / "cloud") as running, browser(folder) as page:
            await page.size(1440, 1000)
            await sign_in(page, running, key)
            base = f"http://{running.address}/data?view=readings"
            year = f"{base}&component=year&start=2025-01-01T00:00&end={(START + timedelta(days=days)):%Y-%m-%dT%H:%M}"
            day = f"{base}&tag=many&start=2025-01-01T00:00&end=2025-01-02T00:00"
            print("| plot | first chart, ms | its numbers, ms | charts |\n|---|---|---|---|")
            await painted(page, f"1 source, {days} days of 1 Hz", year)
            await painted(page, f"{2 * MANY} series, a day of 1 Hz", day)
            print("\n| while | frames/s | longest pause, ms | frames later than 34 ms |\n|---|---|---|---|")
            await moved(page, f"{2 * MANY} series")
            await page.goto(year)
            await page.until(_PAINT, limit=PATIENCE)
            await moved(page, "1 source")


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--days", type=int, default=365)
    parser.add_argument("--without-index", action="store_true", help="what the same costs without the index")
    options = parser.parse_args(argv)
    trio.run(lambda: run(options.days, without_index=options.without_index))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
