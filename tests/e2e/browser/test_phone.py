"""The share of a phone's screen that the navigation takes."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.browser.chromium import browser, needs_chromium
from tests.e2e.browser.signing import sign_in
from tests.e2e.browser.test_walk import filled
from tests.e2e.cloud.process import cloud

pytestmark = needs_chromium
WIDTH, HEIGHT = 390, 844
IN_SIGHT = """[...document.querySelectorAll('nav [aria-current]')].every((one) => {
    const [inner, outer] = [one.getBoundingClientRect(), one.parentNode.getBoundingClientRect()];
    return inner.left >= outer.left - 1 && inner.right <= outer.right + 1;
})"""


async def test_the_navigation_of_a_machine_takes_at_most_a_seventh_of_the_height(tmp_path: Path) -> None:
    async with cloud(tmp_path / "cloud") as running, browser(tmp_path) as page:
        part = await filled(running)
        await page.size(WIDTH, HEIGHT, phone=True)
        await sign_in(page, running)
        for name in ("", "/config", "/history", "/logs", "/triggers"):
            await page.goto(f"http://{running.address}/machines/{part['id']}{name}")
            bottom = await page.evaluate("document.querySelector('.tabs').getBoundingClientRect().bottom")
            assert bottom <= HEIGHT / 7, (name, bottom)
            await page.until(IN_SIGHT)
        await page.goto(f"http://{running.address}/audit")
        await page.until(IN_SIGHT)
