"""An invitation in a real browser: created on the page of keys, and accepted through its link without a key."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.browser.chromium import browser, needs_chromium
from tests.e2e.browser.signing import sign_in
from tests.e2e.cloud.process import cloud

pytestmark = needs_chromium


async def test_an_invited_person_logs_in(tmp_path: Path) -> None:
    async with cloud(tmp_path / "cloud") as running, browser(tmp_path) as page:
        await sign_in(page, running, path="/keys")
        await page.click("[aria-labelledby=members] summary")
        await page.fill("[name=email]", "ada@example.com")
        await page.click("form[action='/members'] button")
        await page.until_text("ada@example.com is invited")
        link = await page.until("document.querySelector('pre').textContent")
        await page.goto(f"http://{running.address}/keys")
        await page.click("form[action='/logout'] button")
        await page.until_text("Log in")
        await page.goto(link)
        await page.until_text("Invitation to Home")
        assert await page.unnamed() == []
        assert await page.until("document.styleSheets.length") > 0  # style sheets load without a key too
        await page.click("main form button")
        await page.until_text("Welcome to Home")
        key = await page.until("[...document.querySelectorAll('pre')].map(one => one.textContent)")
        assert await page.unnamed() == []
        await page.click("main p a")
        await page.fill("[name=id]", key[0])
        await page.fill("[name=key]", key[1])
        await page.click("form button")
        await page.until_text("There are no machines yet")
