"""A person's hand in a real browser, and the row of a task in a table."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import trio

from tests.e2e.browser.page import Page
from tests.e2e.browser.writing import CONTENT, move

HEAD: Final = "| task | clicks | seconds | typed bytes | before |\n|---|---|---|---|---|"


class Hand:
    """Counts clicks, choices in lists and fields as clicks, and the bytes that are typed."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.clicks = 0
        self.typed = 0

    async def click(self, selector: str) -> None:
        """Click an element."""
        self.clicks += 1
        await self.page.click(selector)

    async def choose(self, selector: str, value: str) -> None:
        """Choose from a list."""
        self.clicks += 1
        await self.page.select(selector, value)

    async def fill(self, selector: str, text: str) -> None:
        """Click a field and type into it."""
        self.clicks += 1
        self.typed += len(text.encode())
        await self.page.fill(selector, text)

    async def suggested(self, selector: str, text: str, value: str) -> None:
        """Click a field, type, and choose a value that the field then suggests."""
        self.clicks += 2
        self.typed += len(text.encode())
        options = f"[...document.querySelector({json.dumps(selector)}).list.options].map((each) => each.value)"
        assert [option for option in await self.page.evaluate(options) if text in option] == [value]
        await self.page.fill(selector, value)

    async def edit(self, after: str, text: str) -> None:
        """Click behind words in the editor and type there."""
        self.clicks += 1
        self.typed += len(text.encode())
        await self.page.focus(CONTENT)
        await move(self.page, after)
        await self.page.type(text)


HandT = TypeVar("HandT", bound=Hand)


async def run(hand: HandT, home: str, task: Callable[[HandT], Awaitable[None]], ready: str, before: str = "") -> None:
    """Run a task from a start page, and print its row; `before` is what the task took before."""
    await hand.page.goto(home)
    await hand.page.until(ready)
    start = trio.current_time()
    await task(hand)
    name = (task.__doc__ or "").rstrip(".")
    seconds = trio.current_time() - start
    print(f"| {name} | {hand.clicks} | {seconds:.1f} | {hand.typed} | {before} |", flush=True)
