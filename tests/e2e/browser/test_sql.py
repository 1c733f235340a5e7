"""The page for SQL in a real browser: completion, answers, mistakes, cancelling, saved queries, history."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final
from urllib.parse import urlencode

import psutil
import pytest
import trio

from tests.e2e.browser.chromium import browser, needs_chromium
from tests.e2e.browser.looking import faults
from tests.e2e.browser.page import Page
from tests.e2e.browser.signing import sign_in
from tests.e2e.browser.test_data import fill
from tests.e2e.cloud.process import CloudProcess, cloud

pytest.importorskip("_duckdb", reason="SQL needs the extra `data`")
pytestmark = needs_chromium
CONTENT: Final = ".cm-content"
TEXT: Final = "[...document.querySelectorAll('.cm-line')].map((line) => line.textContent).join('\\n')"
SLOW: Final = "SELECT COUNT(*) AS n FROM range(1000000000) a, range(1000000000) b WHERE a.range + b.range < 0"
_PASTE: Final = """
(() => {
  const content = document.querySelector(".cm-content"), data = new DataTransfer();
  data.setData("text/plain", %s);
  content.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
})()
"""


async def opened(page: Page, running: CloudProcess) -> None:
    await sign_in(page, running, path="/sql")
    await page.until(f"!!document.querySelector('{CONTENT}')")


async def write(page: Page, text: str) -> None:
    """Replace the query by pasting a text."""
    await page.focus(CONTENT)
    await page.press("Control+a")
    await page.evaluate(_PASTE % json.dumps(text))
    await page.until(f"{TEXT} === {json.dumps(text)}")


async def button(page: Page, name: str) -> None:
    """Press the button with this text."""
    place = f"[...document.querySelectorAll('button')].find((one) => one.innerText.trim() === {json.dumps(name)})"
    await page.until(f"{place}?.checkVisibility()")
    await page.evaluate(f"{place}.click()")


async def test_a_query_is_written_with_help_and_answered_as_table_and_plot(tmp_path: Path) -> None:
    async with cloud(tmp_path / "cloud") as running, browser(tmp_path) as page:
        await fill(running)
        await opened(page, running)
        await page.until_text("data.readings.level")
        await page.focus(CONTENT)
        await page.type("SELECT leve")
        await page.until_text("data.readings.level", ".cm-tooltip-autocomplete")
        await page.press("Tab")
        await page.until(f"{TEXT} === 'SELECT data.readings.level'")
        await page.type(" FROM readings WHERE data.readings.na")
        await page.until_text("name", ".cm-tooltip-autocomplete")
        await write(
            page,
            "SELECT time_requested, component_name, data.readings.level AS level,\n  data FROM readings ORDER BY 1",
        )
        await page.press("Control+Enter")
        await page.until_text("100 rows in")
        assert await page.texts("th .name") == ["time_requested", "component_name", "level", "data"]
        assert (await page.texts("tbody tr:first-child td"))[1:3] == ["tank", "0"]
        assert await page.evaluate("getComputedStyle(document.querySelector('td.number')).textAlign") == "right"
        zone = await page.evaluate("Intl.DateTimeFormat().resolvedOptions().timeZone")
        assert zone in await page.text("th.time")
        await page.click("th.number button")
        await page.click("th.number button")
        await page.until("document.querySelector('tbody td.number').innerText === '9'")
        await button(page, "Plot")
        await page.until("document.querySelector('.chart canvas')?.getBoundingClientRect().height > 100")
        assert await page.texts(".legend li span") == ["level"]
        assert "query=SELECT" in await page.evaluate("location.search")
        assert await faults(page) == []
        await page.reload()
        await page.until_text("100 rows")
        await page.until("document.querySelectorAll('tbody tr').length === 100")
        assert await page.count("td.number") == 100
        await page.until(f"!!document.querySelector('{CONTENT}')")
        history = ".side li code"
        assert await page.evaluate(
            f"document.querySelector('{history}').textContent.startsWith('SELECT time_requested,')"
        )
        await page.size(360, 780, phone=True)
        await page.until("document.documentElement.scrollWidth <= innerWidth")
        assert await faults(page) == []


async def test_the_place_of_a_mistake_is_marked(tmp_path: Path) -> None:
    async with cloud(tmp_path / "cloud") as running, browser(tmp_path) as page:
        await opened(page, running)
        await write(page, "SELECT '🦀' AS a,\n  componet_name FROM readings")
        await page.press("Control+Enter")
        await page.until_text("componet_name", "[role=alert]")
        assert await page.texts(".cm-lintRange-error") == ["componet_name"]
        await page.focus(".primary")
        await button(page, "Go to line 2")
        await page.until(f"document.activeElement === document.querySelector('{CONTENT}')")
        assert await faults(page) == []
        await write(page, "SELECT 1 AS one")
        await page.press("Control+Enter")
        await page.until_text("1 row in")
        assert await page.count(".cm-lintRange-error") == 0
        assert await page.count("[role=alert]") == 0


async def test_cancelling_ends_the_process_of_the_query(tmp_path: Path) -> None:
    async with cloud(tmp_path / "cloud") as running, browser(tmp_path) as page:
        await opened(page, running)
        await write(page, SLOW)
        await button(page, "Run")
        await page.until_text("Running", ".progress")
        (child,) = psutil.Process(running.process.pid).children()
        assert list((tmp_path / "cloud" / "data" / "queries").glob("*/*"))
        await button(page, "Cancel")
        await page.until_text("Cancelled after")
        assert await trio.to_thread.run_sync(psutil.wait_procs, [child], 20) == ([child], [])
        await write(page, "SELECT 1 AS one")
        await page.press("Control+Enter")
        await page.until_text("1 row in")


async def test_queries_are_saved_for_the_organization(tmp_path: Path) -> None:
    async with cloud(tmp_path / "cloud") as running, browser(tmp_path) as page:
        await opened(page, running)
        await write(page, "SELECT 41 AS n")
        await button(page, "Save")
        await page.fill("dialog input", "answer")
        await page.click("dialog .primary")
        await page.until_text("Open: answer")
        assert await faults(page) == []
        await write(page, "SELECT 42 AS n")
        await button(page, "Save changes")
        await page.until("!document.body.innerText.includes('changed')")
        await button(page, "Save as")
        await page.fill("dialog input", "answer")
        page.expect("status of 409")
        await page.click("dialog .primary")
        await page.until_text("already a query called 'answer'", "dialog [role=alert]")
        await page.click("dialog .actions button:last-child")
        await button(page, "Rename")
        await page.fill("dialog input", "deep thought")
        await page.click("dialog .primary")
        await page.until_text("Open: deep thought")
        await page.goto(f"http://{running.address}/sql")
        await page.until(f"!!document.querySelector('{CONTENT}')")
        await button(page, "deep thought")
        await page.until(f"{TEXT} === 'SELECT 42 AS n'")
        await button(page, "Delete")
        await page.click("dialog .danger")
        await page.until("!document.body.innerText.includes('deep thought')")


async def test_the_page_answers_without_scripts(tmp_path: Path) -> None:
    async with cloud(tmp_path / "cloud") as running, browser(tmp_path) as page:
        await sign_in(page, running, path="/sql")
        await page.scripts(enabled=False)
        await page.goto(f"http://{running.address}/sql?{urlencode({'query': 'SELECT 42 AS n'})}")
        await page.until_text("1 row")
        assert await page.texts("tbody td") == ["42"]
        await page.evaluate("document.querySelector('details.more').open = true")
        await page.fill("input[name=name]", "plain")
        await page.click("form[action='/sql/saved'] button")
        await page.until("location.search.startsWith('?saved=')")
        await page.until("document.querySelector('textarea')?.value === 'SELECT 42 AS n'")
