"""The search of the cloud by keys, by touch and without scripts, and the way to the help of a page."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.browser.chromium import browser, needs_chromium
from tests.e2e.browser.looking import axe_faults
from tests.e2e.browser.signing import sign_in
from tests.e2e.cloud.process import cloud

pytestmark = needs_chromium
CHOSEN = "document.querySelector('dialog.finder [aria-selected=true] span')?.textContent"


async def test_from_any_page_to_a_machine_and_to_help(tmp_path: Path) -> None:
    async with cloud(tmp_path / "cloud") as running, browser(tmp_path) as page:
        async with running.client() as client:
            location = running.facts["location"]
            machine = await client.call("viam.app.v1.AppService", "", "new_robot", name="rover", location=location)
            (part,) = await client.call("viam.app.v1.AppService", "", "get_robot_parts", robot_id=machine)
        await sign_in(page, running, path="/audit")
        await page.until("document.readyState === 'complete'")
        await page.press("Control+k")
        await page.until(f"{CHOSEN} === 'Machines'")
        await page.press("ArrowDown")
        await page.until(f"{CHOSEN} !== 'Machines'")
        await page.type("rover lo")
        await page.until(f"{CHOSEN} === 'rover: Logs'")
        assert await axe_faults(page) == []
        await page.press("Enter")
        await page.until_path(f"/machines/{part['id']}/logs")
        await page.click(".bar nav a[href^='/help']")
        await page.until_path("/help/howto/read-the-logs")
        await page.until("document.readyState === 'complete'")
        await page.press("Control+k")
        await page.type("xyzzy")
        await page.until_text("Nothing has these words", "dialog.finder")
        await page.press("Escape")
        await page.until("!document.querySelector('dialog.finder').open")
        await page.size(360, 740, phone=True)
        await page.click("[data-find]")
        await page.type("rover")
        await page.until(f"{CHOSEN} === 'rover'")
        assert await page.overflow() == 0
        await page.click("dialog.finder li")
        await page.until_path(f"/machines/{part['id']}")


async def test_without_scripts(tmp_path: Path) -> None:
    async with cloud(tmp_path / "cloud") as running, browser(tmp_path) as page:
        await sign_in(page, running)
        await page.scripts(enabled=False)
        await page.goto(f"http://{running.address}/")
        await page.click("[data-find]")
        await page.until_path("/search")
        await page.fill("[name=text]", "audit")
        await page.press("Enter")
        await page.until_text("Results for audit")
        assert "Audit" in await page.texts(".targets a")
