"""Calls that are refused until a fault is over, and programs in the guest that carry out what they read."""

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

LIMIT: Final = 60.0  # seconds for anything


async def refusal(attempt: Callable[[], Awaitable[object]], words: str) -> str:
    """Call until the answer is an error with `words` in it; what the user reads."""
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
    """Call until the answer is good; seconds from now."""
    begin = time.monotonic()
    with trio.fail_after(LIMIT):
        while True:
            try:
                await attempt()
            except GRPCError:
                continue
            return time.monotonic() - begin


class User:
    """A program in the guest that keeps something open, reads lines of words and answers in lines of JSON."""

    def __init__(self, process: GuestProcess) -> None:
        self._process = process

    async def hear(self) -> dict[str, Any]:
        """The next answer."""
        with trio.fail_after(LIMIT):
            said: dict[str, Any] = json.loads(await anext(self._process.lines))
            return said

    async def tell(self, words: str) -> None:
        """Say something."""
        await self._process.write(words + "\n")

    async def ask(self, words: str) -> dict[str, Any]:
        """Say something and wait for the answer."""
        await self.tell(words)
        return await self.hear()

    async def until(self, words: str, key: str) -> dict[str, Any]:
        """Ask again until the answer has `key`."""
        with trio.fail_after(LIMIT):
            while key not in (answer := await self.ask(words)):
                pass
        return answer


@asynccontextmanager
async def talking(guest: Guest, program: str, *arguments: str, user: str = "") -> AsyncIterator[User]:
    """Run a Python program; at the end of the block its input ends, and it must end with status 0."""
    process = await guest.start(["python3", "-c", program, *arguments], user=user)
    yield User(process)
    await process.close_input()
    assert await process.wait() == 0, process.stderr
