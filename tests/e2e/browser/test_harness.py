"""The harness itself: it sees, it waits, and it fails when it should."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.e2e.browser.chromium import browser, needs_chromium

pytestmark = needs_chromium
PAGE = """
<!doctype html><title>x</title><body><label>Name <input id=name></label><button id=go>Go</button><p id=out></p>
<script>document.getElementById("go").onclick = () => setTimeout(() => {
  document.getElementById("out").textContent = "hello " + document.getElementById("name").value; }, 50);</script>
"""


def address(text: str) -> str:
    return "data:text/html," + quote(text)


async def test_a_page_is_filled_clicked_and_read(tmp_path: Path) -> None:
    async with browser(tmp_path) as page:
        await page.goto(address(PAGE))
        await page.fill("#name", "wrong")
        await page.fill("#name", "Ada")
        await page.type(" L")
        await page.press("Backspace")
        await page.click("#go")
        assert await page.until_text("hello", "#out") == "hello Ada"
        assert await page.unnamed() == []


async def test_an_error_of_the_console_fails_the_test(tmp_path: Path) -> None:
    async def faulty() -> None:
        async with browser(tmp_path) as page:
            await page.goto(address("<body><script>nonsense()</script>"))
            await page.until_text("")

    with pytest.raises(AssertionError, match="nonsense") as caught:
        await faulty()
    assert (tmp_path / "failure.png").read_bytes().startswith(b"\x89PNG")
    assert "picture" in "".join(caught.value.__notes__)


async def test_what_never_comes_is_told_with_what_was_there(tmp_path: Path) -> None:
    async def waiting() -> None:
        async with browser(tmp_path) as page:
            await page.goto(address(PAGE))
            await page.until_text("never", limit=0.2)

    with pytest.raises(AssertionError, match=re.escape("Go")):
        await waiting()


async def test_unnamed_controls_and_wide_pages_are_found(tmp_path: Path) -> None:
    async with browser(tmp_path) as page:
        await page.size(390, 800, phone=True)
        meta = "<!doctype html><meta name=viewport content='width=device-width'>"
        await page.goto(address(f"{meta}<body style='margin:0'><input><p style='width:500px;margin:0'>x"))
        assert [one.split()[0] for one in await page.unnamed()] == ["textbox"]
        assert 100 < await page.overflow() < 120  # a scroll bar more or less
