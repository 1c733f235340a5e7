"""Plots of captured data in a real browser: a day with known numbers, zoom, keyboard, live values, files, a phone."""

from __future__ import annotations

import math
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import trio

from rpc.api.client import ApiClient
from rpc.client.channel import Channel
from rpc.client.credentials import ApiKey
from tests.e2e.browser.chromium import browser, needs_chromium
from tests.e2e.browser.looking import PHONE, faults
from tests.e2e.browser.page import Page
from tests.e2e.browser.signing import sign_in
from tests.e2e.cloud.process import CloudProcess, cloud

pytestmark = needs_chromium
APP = "viam.app.v1.AppService"
ROBOT = "viam.app.v1.RobotService"
SYNC = "viam.app.datasync.v1.DataSyncService"
START = datetime(2026, 1, 1, tzinfo=UTC)
DAY = 1440  # minutes
STATUS = ".plotting [role=status]"
CHARTS = "document.querySelectorAll('.chart canvas').length"
INKS = """(() => {
    const canvas = document.querySelector(".chart canvas"), size = [canvas.width, canvas.height];
    const pixels = canvas.getContext("2d").getImageData(0, 0, ...size).data;
    let ink = 0, first = 1;
    for (let at = 0; at < pixels.length; at += 4) {
        if (!(pixels[at + 3] > 200 && pixels[at + 2] - pixels[at] > 60)) continue;
        ink += 1;
        first = Math.min(first, at / 4 % size[0] / size[0]);
    }
    return [ink, first];
})()"""
"""Pixels of the first chart in the color of its first line, a blue, and the part of its width where they begin."""
INK = f"{INKS}[0]"


async def upload(
    running: CloudProcess, part: str, component: str, readings: list[tuple[datetime, dict[str, Any]]]
) -> None:
    async with running.client() as client:
        metadata = {"part_id": part, "component_name": component, "method_name": "Readings", "type": "TABULAR_SENSOR"}
        metadata["component_type"] = "rdk:component:sensor"
        contents = [{"metadata": {"time_requested": time}, "struct": {"readings": fields}} for time, fields in readings]
        await client.call(SYNC, "", "data_capture_upload", metadata=metadata, sensor_contents=contents)


async def fill(running: CloudProcess) -> str:
    """Upload a day of readings of a boiler, one a minute, with a gap of two hours, and of a tank; return the part."""
    async with running.client() as client:
        robot = await client.call(APP, "", "new_robot", name="rover", location=running.facts["location"])
        part = str((await client.call(APP, "", "get_robot_parts", robot_id=robot))[0]["id"])
    times = [(minute, START + timedelta(minutes=minute)) for minute in range(DAY) if not 600 <= minute < 720]
    wave = {minute: round(50 + 20 * math.sin(minute / 120) + minute % 7, 2) for minute, _ in times}
    boiler = [
        (
            time,
            {"water_celsius": wave[minute], "gas_celsius": wave[minute] / 2, "on": minute % 240 < 120, "mode": "auto"},
        )
        for minute, time in times
    ]
    await upload(running, part, "boiler", boiler)
    await upload(
        running, part, "tank", [(time, {"level": minute % 60, "gps": {"lat": 47.5}}) for minute, time in times]
    )
    return part


async def drag(page: Page, first: float, last: float) -> None:
    """Drag over the first chart, from a part of its width to another."""
    await page.evaluate("document.querySelector('.u-over').scrollIntoView({block: 'center', behavior: 'instant'})")
    box = await page.evaluate("document.querySelector('.u-over').getBoundingClientRect().toJSON()")
    y = box["y"] + box["height"] / 2
    for kind, share in (("mouseMoved", first), ("mousePressed", first), ("mouseMoved", last), ("mouseReleased", last)):
        x = box["x"] + box["width"] * share
        await page.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)


async def is_dragged_at_once(page: Page) -> None:
    """Drag the range with Shift while the server does not answer: the numbers that are there move with the pointer."""
    status = await page.evaluate(f"document.querySelector('{STATUS}').innerText")
    await page.evaluate("document.querySelector('.u-over').scrollIntoView({block: 'center', behavior: 'instant'})")
    await page.evaluate("window.drawing = document.querySelector('.chart canvas')")
    box = await page.evaluate("document.querySelector('.u-over').getBoundingClientRect().toJSON()")
    whole, ink = await newest_answer(page), await page.evaluate(INK)

    async def mouse(kind: str, share: float) -> None:
        x, y = box["x"] + box["width"] * share, box["y"] + box["height"] / 2
        await page.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", modifiers=8, clickCount=1)

    await mouse("mousePressed", 0.2)
    await mouse("mouseMoved", 0.95)
    await page.until(f"{INK} < {0.6 * ink}")  # three quarters of the numbers are beyond the right edge
    await page.until(f"{INKS}[1] > 0.7")
    assert await page.evaluate(f"document.querySelector('{STATUS}').innerText") == status, "nothing was loaded yet"
    await mouse("mouseReleased", 0.95)
    await page.until(f"document.querySelector('{STATUS}').innerText.startsWith('2025-12-31')")
    await page.until("document.querySelector('.plotting').ariaBusy === 'false'")
    part = await newest_answer(page)
    assert abs((whole["from"] - part["from"]) / (whole["to"] - whole["from"]) - 0.75) < 0.02
    assert await page.evaluate("drawing === document.querySelector('.chart canvas')"), "the plot was made again"
    await page.click(".tools .group button:nth-of-type(5)")
    await page.until(f"document.querySelector('{STATUS}').innerText.startsWith('2026-01-01 00:00')")
    await page.until("document.querySelector('.plotting').ariaBusy === 'false'")


async def keeps_its_charts_in_an_empty_range(page: Page) -> None:
    """Move the range to where there are no numbers, and back, on the same charts."""
    charts = await page.evaluate(CHARTS)
    await page.focus(".canvas")
    for _ in range(3):
        await page.press("Shift+ArrowRight")
        await page.until("document.querySelector('.plotting').ariaBusy === 'false'")
    await page.until(f"document.querySelector('{STATUS}').innerText.startsWith('No numbers')")
    assert await page.evaluate(CHARTS) == charts
    assert await page.evaluate(INK) == 0
    assert await page.evaluate("document.querySelector('.tools .group + .group button').disabled")  # Save as CSV
    for _ in range(3):
        await page.press("Shift+ArrowLeft")
    await page.until(f"document.querySelector('{STATUS}').innerText.startsWith('2026-01-01 00:00')")
    assert await page.evaluate(INK) > 100


async def newest_answer(page: Page) -> dict[str, Any]:
    """Return what the server answers to the newest request of the plots."""
    answer: dict[str, Any] = await page.evaluate(
        "fetch(performance.getEntriesByType('resource').map((one) => one.name)"
        ".filter((name) => name.includes('/data/series')).at(-1)).then((reply) => reply.json())"
    )
    return answer


async def look(page: Page, name: str) -> None:
    """Save a screenshot for a person, in the folder that MACHINE_SCREENSHOTS names."""
    if folder := os.environ.get("MACHINE_SCREENSHOTS"):
        await page.screenshot(Path(folder) / f"{name}.png")


async def dark(page: Page, *, on: bool) -> None:
    scheme = {"name": "prefers-color-scheme", "value": "dark" if on else "light"}
    await page.call("Emulation.setEmulatedMedia", features=[scheme])


async def is_zoomed_by_mouse_and_keyboard(page: Page) -> None:
    whole = await newest_answer(page)
    await drag(page, 0.5, 0.6)
    await page.until(f"!document.querySelector('{STATUS}').innerText.startsWith('2026-01-01 00:00')")
    await page.until("document.querySelector('.plotting').ariaBusy === 'false'")
    part = await newest_answer(page)
    assert part["step"] < whole["step"] / 3
    assert abs((part["to"] - part["from"]) / (whole["to"] - whole["from"]) - 0.1) < 0.01
    assert await page.evaluate(INK) > 100
    await page.evaluate(
        "document.querySelector('.u-over').dispatchEvent(new MouseEvent('dblclick', {bubbles: true, cancelable: true}))"
    )
    await page.until(f"document.querySelector('{STATUS}').innerText.startsWith('2026-01-01 00:00')")
    await page.focus(".canvas")
    await page.press("Home")
    await page.until("document.querySelector('.canvas').ariaValueText.startsWith('2026-01-01 00:00')")
    assert "water_celsius" in await page.evaluate("document.querySelector('.canvas').ariaValueText")
    await page.until_text("2026-01-01 00:00", ".chart .when")
    await page.press("ArrowRight")
    await page.until("!document.querySelector('.canvas').ariaValueText.startsWith('2026-01-01 00:00')")
    await page.press("=")
    await page.until(f"!document.querySelector('{STATUS}').innerText.startsWith('2026-01-01 00:00')")
    await page.press("Escape")
    await page.until(f"document.querySelector('{STATUS}').innerText.startsWith('2026-01-01 00:00')")


async def is_saved(page: Page) -> None:
    """Save the plots as CSV and as PNG, and read what the browser would write to the disk."""
    await page.evaluate(
        "window.saved = [], URL.createObjectURL = (blob) => {"
        " saved.push(blob); document.body.dataset.saved = saved.length; return '#'; }, 0"
    )
    await page.click(".group:last-of-type button:nth-of-type(1)")
    await page.until("document.body.dataset.saved === '1'")
    head, first, *rest = str(await page.evaluate("saved[0].text()")).splitlines()
    assert head.startswith("time,boiler gas_celsius mean,boiler gas_celsius min,boiler gas_celsius max,")
    assert first.startswith("2026-01-01T00:00:00.000Z,")
    assert 600 < len(rest) < 1320
    await page.click(".group:last-of-type button:nth-of-type(2)")
    await page.until("document.body.dataset.saved === '2'")
    size = await page.evaluate("createImageBitmap(saved[1]).then((picture) => [picture.width, picture.height])")
    assert size[0] > 400
    assert size[1] > 1000
    if folder := os.environ.get("MACHINE_SCREENSHOTS"):
        content = await page.evaluate("saved[1].arrayBuffer().then((data) => [...new Uint8Array(data)])")
        await trio.Path(folder, "saved.png").write_bytes(bytes(content))


async def test_a_day_is_drawn_zoomed_and_followed(tmp_path: Path) -> None:
    async with cloud(tmp_path / "cloud") as running:
        async with browser(tmp_path) as page:
            await page.call("Emulation.setTimezoneOverride", timezoneId="UTC")
            await sign_in(page, running, path="/data?view=readings")
            await page.until_text("No machine has uploaded a reading yet")
            await look(page, "empty")
            part = await fill(running)
            url = f"http://{running.address}/data?view=readings"
            await page.size(1280, 900)
            await page.goto(url)
            await page.until(f"{CHARTS} === 4")
            assert await page.texts(".chart h2") == ["temperature in °C", "boiler on", "tank gps.lat", "tank level"]
            label = await page.evaluate("document.querySelector('.canvas').ariaLabel")
            assert "boiler water_celsius: 1320 numbers from " in label
            answer = await newest_answer(page)
            level = answer["series"][1]["fields"][1]
            assert (sum(level["count"]), min(n for n in level["min"] if n is not None)) == (1320, 0)
            assert level["count"].count(0) >= 7_200_000 / answer["step"] - 1  # the gap
            assert await page.evaluate(INK) > 1000
            assert await faults(page) == []
            await look(page, "desk-light")
            await dark(page, on=True)
            await look(page, "desk-dark")
            assert await faults(page) == []
            await dark(page, on=False)
            await is_saved(page)
            await is_dragged_at_once(page)
            await keeps_its_charts_in_an_empty_range(page)
            await is_zoomed_by_mouse_and_keyboard(page)
            now = datetime.now(UTC)
            await page.click(".tools button:nth-of-type(1)")
            await page.until_text("live", STATUS)
            await upload(running, part, "tank", [(now, {"level": 4711})])
            await page.until_text("4711", ".plotting", limit=20)  # without any input
            await look(page, "live")
            await page.size(PHONE, 740, phone=True)
            await page.goto(url + "&end=2026-01-02T00:00")
            await page.until(f"{CHARTS} === 4")
            assert await page.overflow() == 0
            assert await faults(page) == []
            await page.size(PHONE, 740, phone=True)  # `faults` changes it
            await look(page, "phone-light")
            await dark(page, on=True)
            await look(page, "phone-dark")
            await page.scripts(enabled=False)
            await page.goto(url + "&end=2026-01-02T00:00")
            await page.click("noscript a")
            await page.until_text("boiler", ".plots")
            assert await page.count(".plots polyline") == 5
            assert await page.overflow() == 0
            await look(page, "phone-plain")


async def test_the_rate_of_log_lines_leads_to_the_lines(tmp_path: Path) -> None:
    async with cloud(tmp_path / "cloud") as running:
        async with running.client() as client:
            robot = await client.call(APP, "", "new_robot", name="rover", location=running.facts["location"])
            part = (await client.call(APP, "", "get_robot_parts", robot_id=robot))[0]
        now = datetime.now(UTC)
        entries = [
            {
                "host": "pi",
                "level": level,
                "logger_name": "x",
                "message": f"{level} {ago}",
                "time": now - timedelta(minutes=ago),
            }
            for level, every, ago_most in (("info", 10, 1400), ("error", 30, 120))
            for ago in range(5, ago_most, every)
        ]  # fmt: skip
        credentials = ApiKey(part["id"], part["secret"], type="robot-secret")
        async with Channel(running.address, credentials=credentials) as channel:
            await ApiClient(channel).call(ROBOT, "", "log", id=part["id"], logs=entries)
        async with browser(tmp_path) as page:
            await page.size(1280, 900)
            await sign_in(page, running, path=f"/machines/{part['id']}/logs")
            asked = "performance.getEntriesByType('resource').filter((one) => one.name.includes('/logs/rates')).length"
            assert await page.evaluate(asked) == 0
            await page.click("details.more summary")
            await page.until(f"{CHARTS} === 1")
            assert await page.texts(".chart h2") == ["log lines"]
            assert await page.texts(".tools > button") == ["24 h", "7 d", "30 d"]
            label = await page.evaluate("document.querySelector('.canvas').ariaLabel")
            assert "errors: 4 numbers from 0 to 1" in label
            assert "information: 140 numbers" in label
            assert await faults(page) == []
            await page.size(1280, 900)
            await look(page, "log-rate")
            await drag(page, 0.5, 0.75)
            await page.click(".plotting p a")
            await page.until("location.search.includes('from=') && document.readyState === 'complete'")
            lines = await page.texts("#log .what")
            assert len(lines) in range(30, 42), lines
            assert not any(line.startswith("error") for line in lines)


LINE = ".threshold .line"
VALUE = "document.querySelector('.trigger-form [name=value]').value"


async def pull(page: Page, share: float) -> None:
    """Drag the line of a condition to a part of the height of its plot, counted from the top."""
    await page.evaluate(f"document.querySelector('{LINE}').scrollIntoView({{block: 'center', behavior: 'instant'}})")
    line, area = [
        await page.evaluate(f"document.querySelector('{each}').getBoundingClientRect().toJSON()")
        for each in (LINE, ".threshold .u-over")
    ]
    x, start, end = area["x"] + 100, line["y"] + line["height"] / 2, area["y"] + area["height"] * share
    moves = ("mouseMoved", start), ("mousePressed", start), ("mouseMoved", end), ("mouseReleased", end)
    for kind, y in moves:
        await page.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)


async def test_the_value_of_a_condition_is_a_line_on_its_plot(tmp_path: Path) -> None:
    async with cloud(tmp_path / "cloud") as running:
        part = await fill(running)
        async with browser(tmp_path) as page:
            await page.call("Emulation.setTimezoneOverride", timezoneId="UTC")
            await page.size(1280, 1000)
            await sign_in(page, running, path=f"/machines/{part}/triggers")
            await page.fill(".trigger-form [name=method]", "sensor:boiler:Readings")
            await page.press("Tab")  # the plot is loaded when the name is complete
            await page.until("document.querySelectorAll('.threshold .buttons button').length === 2")
            await page.click(".threshold .buttons button:last-child")
            await page.until(f"document.querySelector('{LINE}')?.innerText === 'drag to choose a value'")
            assert await page.value(".trigger-form [name=field]") == "water_celsius"
            assert await page.evaluate(VALUE) == ""

            await pull(page, 0.5)
            middle = float(await page.evaluate(VALUE))
            assert 45 < middle < 60
            await page.until_text(f"{middle:g} °C", LINE)
            met = await page.text(".threshold [role=status]")
            assert "the condition is met in" in met
            await pull(page, 0.1)
            assert float(await page.evaluate(VALUE)) > middle + 10
            await pull(page, -3)  # above the plot: to its edge
            await page.until_text("met in 0 of", ".threshold [role=status]")
            await look(page, "threshold-light")

            top = float(await page.evaluate(VALUE))
            await page.focus(LINE)
            for key in (*["ArrowDown"] * 10, "ArrowUp", "ArrowUp"):
                await page.press(key)
            assert top - 10 < float(await page.evaluate(VALUE)) < top
            await page.fill(".trigger-form [name=value]", "200")  # the axis then shows it
            await page.until(f"Number(document.querySelector('{LINE}').getAttribute('aria-valuemax')) > 200")
            assert await faults(page) == []
            await page.fill(".trigger-form [name=value]", "true")
            await page.until_text("drag to choose", LINE)
            await page.fill(".trigger-form [name=field]", "mode")
            await page.press("Tab")
            await page.until_text("The last day has no number mode", ".threshold")

            await page.size(PHONE, 740, phone=True)
            await dark(page, on=True)
            await page.click(".threshold .buttons button:last-child")
            await page.until(f"document.querySelector('{LINE}')")
            await pull(page, 0.3)
            assert await page.overflow() == 0
            await look(page, "threshold-phone-dark")
            value = await page.evaluate(VALUE)
            await page.fill(".trigger-form [name=name]", "hot")
            await page.fill(".trigger-form [name=address]", "https://example.com/hook")
            await page.click(".trigger-form button.primary")
            await page.until_text(f'"water_celsius": {value}')
