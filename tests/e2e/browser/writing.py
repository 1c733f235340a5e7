"""Write into the editor of configurations, which takes the place of a text field when scripts run."""

from __future__ import annotations

import json
from typing import Any, Final

from tests.e2e.browser.page import Page

CONTENT: Final = ".cm-content"
_PASTE: Final = """
(() => {
  const content = document.querySelector(".cm-content"), data = new DataTransfer();
  data.setData("text/plain", %s);
  content.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
})()
"""


_MOVE: Final = """
(() => {
  const words = %s, line = [...document.querySelectorAll(".cm-line")].find((each) => each.textContent.includes(words));
  const nodes = document.createTreeWalker(line, NodeFilter.SHOW_TEXT);
  let left = line.textContent.indexOf(words) + words.length;
  while (nodes.nextNode() && left > nodes.currentNode.length) left -= nodes.currentNode.length;
  getSelection().collapse(nodes.currentNode, left);
})()
"""


async def move(page: Page, words: str) -> None:
    """Move the cursor of the focused editor to the end of `words` in the first line that has them."""
    await page.evaluate(_MOVE % json.dumps(words))


async def write(page: Page, document: Any) -> None:
    """Replace the whole text in the editor by pasting a text, or a document as JSON."""
    text = document if isinstance(document, str) else json.dumps(document, indent=2)
    await page.focus(CONTENT)
    await page.press("Control+a")
    await page.evaluate(_PASTE % json.dumps(text))
    await page.until(f"document.querySelector('#document').value === {json.dumps(text)}")


async def press_save(page: Page, *, scripts: bool = True) -> None:
    """Press Save on the page of a review, once scripts have drawn its difference."""
    if scripts:
        await page.until("document.querySelector('.merged') && !document.querySelector('table.difference')")
    await page.click("button[value=save]")
