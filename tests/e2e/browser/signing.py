"""Log in to a cloud in the browser."""

from __future__ import annotations

from tests.e2e.browser.page import Page
from tests.e2e.cloud.process import CloudProcess


async def sign_in(page: Page, running: CloudProcess, key: tuple[str, str] | None = None, path: str = "/") -> None:
    """Open a page of the cloud, by default the start page, and log in with a key, by default the owner's."""
    key_id, key_text = key or running.key
    await page.goto(f"http://{running.address}{path}")
    await page.fill("[name=id], [name=entity], [name=key_id]", key_id)
    await page.fill("[name=key], [name=payload]", key_text)
    await page.click("form button")
    await page.until("!document.querySelector('[name=key], [name=payload]')")
