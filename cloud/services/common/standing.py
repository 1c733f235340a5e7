"""Ends long-lived activities, such as streams and open pages, when their caller may no longer begin them."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final, TypeVar

import trio

from cloud.domain.permissions.credentials import SIGNED_OUT, require_in_force
from cloud.services.common.base import Cloud
from cloud.store.sql import Sql
from cloud.values.author import Author
from schema import ErrorKind, MachineError

RETRY: Final = 1.0  # seconds between attempts while the database is unavailable; varied by up to a quarter
T = TypeVar("T")


async def patiently(step: Callable[[], Awaitable[T]]) -> T:
    """Return the result of `step`, retrying while the database is unavailable. Other MachineErrors propagate."""
    while True:
        try:
            return await step()
        except MachineError as error:
            if error.kind is not ErrorKind.UNAVAILABLE:
                raise
        await trio.sleep(RETRY * random.uniform(0.75, 1.25))


async def check_in_force(cloud: Cloud, author: Author) -> None:
    """Raise MachineError if the caller's key is no longer valid; waits while the database is unavailable."""
    await patiently(lambda: cloud.store.read(lambda sql: require_in_force(sql, author)))


async def until_refused(cloud: Cloud, author: Author, check: Callable[[Sql], None]) -> MachineError:
    """Wait until `check` refuses `author`, and return its error.

    `check` runs at the start and whenever the key or its roles change or a session of the key ends. While the database
    is unavailable, no caller is refused.
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
    """Cancel the body of the context when `check` refuses `author`, and raise the error."""
    ended: list[Exception] = []  # raised directly, not in an exception group

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
