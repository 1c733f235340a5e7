"""A store of the cloud on SQLite that is killed at a chosen step, as a process is, and whose disk outlives it."""

from __future__ import annotations

import sqlite3
from typing import TypeVar

import trio

from cloud.store.events import Events
from cloud.store.sql import Work
from cloud.store.sqlite import SqliteHandle

T = TypeVar("T")


class Killed(Exception):
    """The simulated process was killed."""


class DiskStore:
    """A Store without threads over a disk that outlives it.

    Its fuse kills the process at a step: before a commit, or between a commit and its event.
    """

    def __init__(self, connection: sqlite3.Connection, events: Events, fuse: int) -> None:
        self._connection = connection
        self._events = events
        self._fuse = fuse
        self.dead = False

    async def read(self, work: Work[T]) -> T:
        await self._step()
        return work(SqliteHandle(self._connection))

    async def write(self, work: Work[T]) -> T:
        await self._step()
        handle = SqliteHandle(self._connection)
        self._connection.execute("BEGIN")
        try:
            result = work(handle)
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")
        await self._step()
        for topic, subject in handle.events:
            self._events.notify(topic, subject)
        return result

    async def _step(self) -> None:
        await trio.lowlevel.checkpoint()
        self._fuse -= 1
        if self._fuse <= 0:
            self.dead = True
        if self.dead:
            raise Killed
