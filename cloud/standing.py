"""What lasts, such as a stream or an open page, ends when whoever began it might not begin it any more."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final, TypeVar

import trio

from cloud.author import Author
from cloud.credentials import SIGNED_OUT
from cloud.services.base import Cloud
from cloud.store.sql import Sql
from schema.errors import ErrorKind, MachineError

RETRY: Final = 1.0  # seconds until a database that is away is asked again; a quarter more or less
T = TypeVar("T")


async def patiently(step: Callable[[], Awaitable[T]]) -> T:
    """What `step` returns, which is asked again for as long as the database is away; MachineError as it raises it."""
    while True:
        try:
            return await step()
        except MachineError as error:
            if error.kind is not ErrorKind.UNAVAILABLE:
                raise
        await trio.sleep(RETRY * random.uniform(0.75, 1.25))


async def until_refused(cloud: Cloud, author: Author, check: Callable[[Sql], None]) -> MachineError:
    """Wait until `check` refuses `author`: it is asked at the beginning, and whenever the key or its roles change or
    somebody signs out with it.

    While the database is away nobody is refused.
    """
    with cloud.events.listening("key", author.name, also=["secret", SIGNED_OUT]) as news:
        while True:
            try:
                await patiently(lambda: cloud.store.read(check))
            except MachineError as error:
                return error
            await news.next()


@asynccontextmanager
async def while_allowed(cloud: Cloud, author: Author, check: Callable[[Sql], None]) -> AsyncIterator[None]:
    """Cancels what is inside when `check` refuses `author`, and raises why."""
    ended: list[Exception] = []  # raised as it is, not in a group

    async with trio.open_nursery() as nursery:

        async def watch() -> None:
            ended.append(await until_refused(cloud, author, check))
            nursery.cancel_scope.cancel()

        nursery.start_soon(watch)
        try:
            yield
        except Exception as error:
            ended.append(error)
        nursery.cancel_scope.cancel()
    if ended:
        raise ended[0]
