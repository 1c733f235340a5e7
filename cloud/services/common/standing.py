"""Ends long-lived activities, such as streams and open pages, when their caller may no longer begin them."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Final, TypeVar

import trio

from cloud.domain.permissions.credentials import SIGNED_OUT, require_in_force
from cloud.services.common.base import Cloud
from cloud.store.events import EVERY, Subscription
from cloud.store.sql import Sql
from cloud.store.turns import organization, working_for
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
    """Wait until `check` refuses `author`, and return its error; see `while_allowed`."""
    try:
        with while_allowed(cloud, author, check):
            await trio.sleep_forever()
    except MachineError as error:
        return error


class while_allowed(Subscription):
    """Cancel the body of the context when `check` refuses `author`, and raise the error.

    `check` runs at the start and whenever the key or its roles change or a session of the key ends, in a transaction of
    the organization for which this task works. While the database is unavailable, no caller is refused.
    """

    __slots__ = ("_check", "_checking", "_cloud", "_due", "_organization", "_refusal", "_scope")

    def __init__(self, cloud: Cloud, author: Author, check: Callable[[Sql], None]) -> None:
        super().__init__(cloud.events, *((topic, author.name) for topic in ("key", "secret", SIGNED_OUT)))
        self._cloud = cloud
        self._check = check
        self._organization = organization()
        self._due = False  # something has changed since the latest check began
        self._checking: trio.CancelScope | None = None  # of the task that checks
        self._refusal: Exception | None = None
        self._scope = trio.CancelScope()

    def __enter__(self) -> while_allowed:
        self.notify(EVERY)  # the check begins at the next checkpoint, after all of this
        super().__enter__()
        self._scope.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, traceback)
        if self._checking is not None:
            self._checking.cancel()
        try:
            caught = self._scope.__exit__(kind, error, traceback)  # only `_run` cancels it, after a refusal
        except Exception:  # what the body raised in addition to its cancellation, in a group
            if self._refusal is None:
                raise
            caught = True
        if self._refusal is not None and (caught or error is None or isinstance(error, Exception)):
            raise self._refusal

    def notify(self, subject: str) -> None:
        """Check again."""
        self._due = True
        if self._checking is None:
            self._checking = trio.CancelScope()
            self._cloud.checks.start(self._run)

    async def _run(self) -> None:
        scope = self._checking
        assert scope is not None
        with scope, working_for(self._organization):
            try:
                while self._due:
                    self._due = False
                    await patiently(lambda: self._cloud.store.read(self._check))
            except Exception as error:
                self._refusal = error
                self._scope.cancel()
            finally:
                self._checking = None
