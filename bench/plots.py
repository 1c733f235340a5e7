"""Plots of much data in a browser: `python -m bench plots [--days 365] [--without-index]`.

A cloud has readings of one source, one each second for `days`, and of 10 sources with two fields
each, one each second for a day. All are rows of the database: nothing is sealed. The cloud has completed its check of
the database, which follows each start. Chromium opens the plot of the first source over its whole time, and of all
sources over the day. Reported are the time from the navigation until the first chart is drawn, and that of the request
for the numbers; then the frames per second, and the longest pause between two frames, while the crosshair moves over
the charts, while the range is dragged with the mouse, and while it is moved by keys; and, for comparison, during
the same drags over canvases of the same size on which only a box moves, and over a page that has uPlot and the same
numbers, and nothing else. Without the index, only the first
chart is measured, and a minute of patience is all that a page gets: take few days.
"""

from __future__ import annotations

import argparse
import random
import sqlite3
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
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
SHIFT: Final = 8  # of the modifiers of an input event
START: Final = datetime(2025, 1, 1, tzinfo=UTC)
PATIENCE: Final = 60.0
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
  const seen = window.frames_seen = [];
  const next = (time) => { seen.push(time); if (seen === window.frames_seen) requestAnimationFrame(next); };
  requestAnimationFrame(next);
})()
"""
_COUNTED: Final = """
(() => {
  const seen = frames_seen;
  frames_seen = null;
  return [seen.slice(1).map((time, at) => time - seen[at]), redraws.splice(0).length];
})()
"""
_REDRAWS: Final = """
(() => {
  window.redraws = [];
  const clear = CanvasRenderingContext2D.prototype.clearRect;
  CanvasRenderingContext2D.prototype.clearRect = function (...box) {
    redraws.push(performance.now());
    return clear.apply(this, box);
  };
})()
"""  # a chart clears its canvas each time it is drawn
_EMPTY: Final = """
(() => {
  const charts = [...document.querySelectorAll(".u-wrap")].map((each) => each.getBoundingClientRect());
  document.body.replaceChildren(...charts.map((box) => {
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [box.width, box.height];
    canvas.style = `position:fixed;left:${box.left}px;top:${box.top}px`;
    return canvas;
  }));
  const contexts = [...document.querySelectorAll("canvas")].map((each) => each.getContext("2d"));
  addEventListener("pointermove", (event) => {
    for (const context of contexts) {
      context.clearRect(0, 0, 2000, 1000);
      context.fillRect(event.clientX % 300, 20, 40, 100);
    }
  });
})()
"""  # canvases of the same size, on which a box moves
_PLAIN: Final = """
(async () => {
  const asked = performance.getEntriesByType("resource").filter((one) => one.name.includes("/data/series")).at(-1);
  const answer = await (await fetch(asked.name)).json();
  const places = [...document.querySelectorAll("canvas")].map((each) => each.getBoundingClientRect());
  const names = [...new Set(answer.series.flatMap((source) => source.fields.map((field) => field.name)))];
  document.body.replaceChildren();
  const charts = names.map((name, at) => {
    const target = document.createElement("div"), series = [{}], bands = [], data = [answer.times.map((t) => t / 1000)];
    target.style = `position:fixed;left:${places[at].left}px;top:${places[at].top}px`;
    document.body.append(target);
    for (const field of answer.series.flatMap((source) => source.fields.filter((each) => each.name === name))) {
      series.push({ stroke: "#1e66c9", width: 1.5, points: { show: false } });
      data.push(field.mean);
      if (field.min.every((least, index) => least === field.max[index])) continue;
      bands.push({ series: [series.length, series.length + 1], fill: "#1e66c940" });
      for (const edge of [field.max, field.min]) {
        series.push({ stroke: "#1e66c900", width: 0, points: { show: false } });
        data.push(edge);
      }
    }
    const { width, height } = places[at];
    return new uPlot({ width, height, series, bands, legend: { show: false }, cursor: { show: false } }, data, target);
  });
  const from = answer.from / 1000, length = (answer.to - answer.from) / 1000;
  let start = null;
  addEventListener("pointerdown", (event) => { start = event.clientX; });
  addEventListener("pointerup", () => { start = null; });
  addEventListener("pointermove", (event) => {
    if (start === null) return;
    const by = (start - event.clientX) / places[0].width * length;
    for (const chart of charts) chart.setScale("x", { min: from + by, max: from + by + length });
  });
})()
"""  # a page with uPlot and nothing else, which draws the same numbers
_UPLOT: Final = Path(__file__).parents[1] / "web" / "node_modules" / "uplot" / "dist" / "uPlot.iife.min.js"


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
        try:
            rows.append(await page.until(_PAINT, limit=PATIENCE))
        except AssertionError:
            print(f"| {name} | none after {PATIENCE:.0f} s | | |", flush=True)
            return
    paint, asked, charts = sorted(rows)[len(rows) // 2]
    print(f"| {name} | {paint:.0f} | {asked:.0f} | {charts} |", flush=True)


async def moved(page: Page, name: str) -> None:
    """Print rows with the frames of the crosshair, of the range that is dragged, and of one that keys move."""
    box = await page.evaluate("document.querySelector('.u-over').getBoundingClientRect().toJSON()")
    idle = "document.querySelector('.plotting').ariaBusy === 'false'"

    async def crosshair() -> None:
        for _ in range(60):
            x = box["x"] + random.random() * box["width"]
            await page.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=box["y"] + 50)

    async def left() -> None:
        await dragged(page, box, 0.7, 0.3)

    async def right() -> None:
        await dragged(page, box, 0.3, 0.7)

    async def keys() -> None:
        for key in ("Shift+ArrowLeft", "Shift+ArrowRight"):
            await page.press(key)
            await page.until(idle, limit=PATIENCE)

    await page.focus(".canvas")
    await page.evaluate(_REDRAWS)
    await counted(page, f"{name}: the crosshair moves", [crosshair], idle)
    await counted(page, f"{name}: the range is dragged", [left, right], idle)
    await counted(page, f"{name}: the range moves by keys", [keys], idle)
    await page.evaluate(_EMPTY)
    await counted(page, "nothing but empty canvases of the same size, the same drags", [left, right], "true")
    if _UPLOT.exists():  # where the packages of web/ are installed
        await page.evaluate(f"{_UPLOT.read_text()}; window.uPlot = uPlot;")
        await page.evaluate(_PLAIN)
        await counted(page, "a page with uPlot only, the same numbers and drags", [left, right], "true")


async def counted(page: Page, name: str, gestures: Sequence[Callable[[], Awaitable[None]]], idle: str) -> None:
    """Print a row with the frames during whole gestures, for 5 seconds; waiting for numbers does not count."""
    pauses: list[float] = []
    redraws, own, whole, end = 0, 0.0, 0.0, trio.current_time() + 5
    await page.call("Performance.enable")
    while trio.current_time() < end:
        for gesture in gestures:
            own_begin, whole_begin = await page_time(page)
            await page.evaluate(_FRAMES)
            await gesture()
            more, drawn = await page.evaluate(_COUNTED)
            own_end, whole_end = await page_time(page)
            pauses, redraws = pauses + more, redraws + drawn
            own, whole = own + own_end - own_begin, whole + whole_end - whole_begin
            await page.until(idle, limit=PATIENCE)
    frames, slow = len(pauses), sum(pause > 34 for pause in pauses)
    rate, each = 1000 * frames / sum(pauses), 1000 / frames
    row = f"| {name} | {rate:.0f} | {max(pauses):.0f} | {slow} of {frames} | {redraws} | {own * each:.1f} |"
    print(f"{row} {whole * each:.1f} |", flush=True)


async def page_time(page: Page) -> tuple[float, float]:
    """Return the seconds in scripts, styles and layout, and those of all tasks, with drawing, of the page's thread."""
    metrics = (await page.call("Performance.getMetrics"))["metrics"]
    parts = ("ScriptDuration", "LayoutDuration", "RecalcStyleDuration")
    values = {each["name"]: float(each["value"]) for each in metrics}
    return sum(values[part] for part in parts), values["TaskDuration"]


async def dragged(page: Page, box: Mapping[str, float], first: float, last: float) -> None:
    """Drag the range with Shift from a part of the width to another, in 60 steps."""
    x, y = box["x"], box["y"] + box["height"] / 2
    for at in range(61):
        x = box["x"] + box["width"] * (first + (last - first) * at / 60)
        kind = "mousePressed" if at == 0 else "mouseMoved"
        await page.call(
            "Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=1, modifiers=SHIFT, clickCount=1
        )
    await page.call("Input.dispatchMouseEvent", type="mouseReleased", x=x, y=y, button="left", modifiers=SHIFT)


async def checked(running: CloudProcess, log: Path) -> None:
    """Wait until the cloud has checked its database, as it says in its log."""
    with trio.fail_after(10 * PATIENCE):
        while "the check continues" in (text := await trio.Path(log).read_text()) and "found no damage" not in text:
            await trio.sleep(1)  # the log of a process is a file: there is no event
            assert running.process.returncode is None, text


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
        async with cloud(folder / "cloud", "--seal-after", "never") as running, browser(folder) as page:
            await checked(running, folder / "cloud" / "cloud.log")
            await page.size(1440, 1000)
            await sign_in(page, running, key)
            base = f"http://{running.address}/data?view=readings"
            year = f"{base}&component=year&start=2025-01-01T00:00&end={(START + timedelta(days=days)):%Y-%m-%dT%H:%M}"
            day = f"{base}&tag=many&start=2025-01-01T00:00&end=2025-01-02T00:00"
            print("| plot | first chart, ms | its numbers, ms | charts |\n|---|---|---|---|")
            await painted(page, f"1 source, {days} days of 1 Hz", year)
            if without_index:
                return
            await painted(page, f"{2 * MANY} series, a day of 1 Hz", day)
            print(
                "\n| while | frames/s | longest pause, ms | later than 34 ms | charts drawn "
                "| the page itself, ms | its thread, ms |"
                "\n|---|---|---|---|---|---|---|"
            )
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
