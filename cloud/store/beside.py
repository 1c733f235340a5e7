"""A command beside a running cloud: what it writes into the same database is heard there at once.

PostgreSQL tells everybody by itself. SQLite tells nobody, so a command leaves a note beside the file, which the cloud
watches: it says that something was written, not what.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final, NoReturn

import structlog
import trio

from cloud.store.events import Events
from cloud.store.sql import Store
from cloud.store.sqlite import SqliteStore
from support.inotify import CLOSE_WRITE, Inotify

ENDING: Final = ".told"

_log = structlog.get_logger("cloud.database")


async def hear(database: Path, events: Events, *, task_status: trio.TaskStatus[None]) -> NoReturn:
    """Tell `events` EVERY whenever another process has left a note, until cancelled; ready when it would notice one.

    Where the kernel watches nothing more, that is logged, and notes are not heard.
    """
    note = _note(database)
    try:
        inotify = Inotify(CLOSE_WRITE)  # nothing else: the database itself is written all the time
    except OSError as error:
        _log.warning("what commands write will be noticed late", reason=error.strerror)
        task_status.started()
        await trio.sleep_forever()
    try:
        for path, failure in inotify.watch({note.parent}):
            _log.warning("what commands write will be noticed late", path=str(path), reason=failure.strerror)
        task_status.started()
        while True:
            await inotify.wait({note})
            events.tell_all()
    finally:
        inotify.close()


@asynccontextmanager
async def opened_beside(database: Path, postgres: str) -> AsyncIterator[Store]:
    """The database for a command: at the address `postgres`, or else the file `database`, which is its owner's alone.

    When the context is left, a cloud that runs on it has been told if anything was written that others wait for.
    """
    if postgres:
        from cloud.store.postgres import PostgresStore

        async with PostgresStore(postgres, Events()).opened() as shared:
            yield shared
        return
    events = _Remembering()
    try:
        async with SqliteStore(database, events).opened() as own:
            yield own
    finally:
        if events.told:
            with suppress(OSError):  # it is written, and the cloud looks by itself each hour
                _note(database).write_bytes(b"")


class _Remembering(Events):
    """Whether there was anything to tell."""

    told = False

    def tell(self, topic: str, subject: str) -> None:
        """As Events."""
        self.told = True


def _note(database: Path) -> Path:
    return database.with_name(database.name + ENDING)
