"""Database access for commands while a cloud is running; the cloud notices their changes at once.

PostgreSQL notifies all connections itself. For SQLite, a command writes a marker file next to the database, which
the cloud watches. It says that something was written, but not what.
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
from support.files import CLOSE_WRITE, Inotify

ENDING: Final = ".changed"

_log = structlog.get_logger("cloud.database")


async def follow_commands(database: Path, events: Events, *, task_status: trio.TaskStatus[None]) -> NoReturn:
    """Send EVERY to `events` whenever another process writes the marker file, until cancelled; ready when watching.

    If inotify cannot watch the file, this is logged and changes by commands are not noticed.
    """
    marker = _marker(database)
    try:
        inotify = Inotify(CLOSE_WRITE)  # no other events: the database itself changes all the time
    except OSError as error:
        _log.warning("cannot watch for changes by commands: they take effect late", reason=error.strerror)
        task_status.started()
        await trio.sleep_forever()
    try:
        for path, failure in inotify.watch({marker.parent}):
            _log.warning(
                "cannot watch for changes by commands: they take effect late", path=str(path), reason=failure.strerror
            )
        task_status.started()
        while True:
            await inotify.wait({marker})
            events.notify_all()
    finally:
        inotify.close()


@asynccontextmanager
async def opened_for_command(database: Path, postgres: str) -> AsyncIterator[Store]:
    """Open the database for a command: at the address `postgres`, or if that is empty, the file `database`.

    On leaving the context, a cloud that uses the file is notified if there were events.
    """
    if postgres:
        from cloud.store.postgres import PostgresStore

        async with PostgresStore(postgres, Events()).opened() as shared:
            yield shared
        return
    events = _EventRecorder()
    try:
        async with SqliteStore(database, events).opened() as own:
            yield own
    finally:
        if events.notified:
            with suppress(OSError):  # the changes are stored, and the cloud checks hourly anyway
                _marker(database).write_bytes(b"")


class _EventRecorder(Events):
    """Records whether there were events."""

    notified = False

    def notify(self, topic: str, subject: str) -> None:
        """Notify all listeners of a subject; does not block."""
        self.notified = True


def _marker(database: Path) -> Path:
    return database.with_name(database.name + ENDING)
