"""Repeat calls until a fault begins or ends, and control programs in the guest line by line."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import trio
from grpclib.exceptions import GRPCError

from tests.hil.rig.channel import GuestProcess
from tests.hil.rig.guest import Guest

LIMIT: Final = 60.0  # seconds for each wait


async def refusal(attempt: Callable[[], Awaitable[object]], words: str) -> str:
    """Repeat a call until it fails with `words` in its message; return the message."""
    message = ""
    try:
        with trio.fail_after(LIMIT):
            while True:
                try:
                    await attempt()
                except GRPCError as error:
                    message = error.message or ""
                    if words in message:
                        return message
    except trio.TooSlowError:
        raise AssertionError(f"never read {words!r}, last: {message!r}") from None


async def recovery(attempt: Callable[[], Awaitable[object]]) -> float:
    """Repeat a call until it succeeds; return the seconds that took."""
    begin = time.monotonic()
    with trio.fail_after(LIMIT):
        while True:
            try:
                await attempt()
            except GRPCError:
                continue
            return time.monotonic() - begin


class User:
    """A program in the guest that reads commands as lines and answers in lines of JSON."""

    def __init__(self, process: GuestProcess) -> None:
        self._process = process

    async def hear(self) -> dict[str, Any]:
        """Return the next answer."""
        with trio.fail_after(LIMIT):
            said: dict[str, Any] = json.loads(await anext(self._process.lines))
            return said

    async def tell(self, words: str) -> None:
        """Send a command."""
        await self._process.write(words + "\n")

    async def ask(self, words: str) -> dict[str, Any]:
        """Send a command and return the answer."""
        await self.tell(words)
        return await self.hear()

    async def until(self, words: str, key: str) -> dict[str, Any]:
        """Repeat a command until its answer has `key`, and return that answer."""
        with trio.fail_after(LIMIT):
            while key not in (answer := await self.ask(words)):
                pass
        return answer


@asynccontextmanager
async def talking(guest: Guest, program: str, *arguments: str, user: str = "") -> AsyncIterator[User]:
    """Run a Python program; at the end of the block its input is closed, and it must exit with status 0."""
    process = await guest.start(["python3", "-c", program, *arguments], user=user)
    yield User(process)
    await process.close_input()
    assert await process.wait() == 0, process.stderr
