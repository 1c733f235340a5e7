"""The default database: one SQLite file in write-ahead mode, one thread that writes and a few that read.

A commit reaches the disk before it is acknowledged (synchronous FULL). Writes that wait at the same time share one
commit: each is a savepoint of its own, so one that fails undoes only itself. Organizations take turns: what one of them
does delays a transaction of another by one of its transactions, and by a commit.
"""

from __future__ import annotations

import sqlite3
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing, contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

import outcome
import structlog
import trio

from cloud.crew import Crew
from cloud.slots import Line
from cloud.store import soundness
from cloud.store.events import Events
from cloud.store.migrations import migrate
from cloud.store.sql import Conflict, Row, Value, Work, at_its_end
from cloud.store.turns import organization
from schema.errors import ErrorKind, MachineError
from support.worker import Worker

T = TypeVar("T")
_log: structlog.stdlib.BoundLogger = structlog.get_logger("cloud.database")

BUSY_LIMIT: Final = 10_000  # milliseconds to wait for another process, such as a backup
WAL_LIMIT: Final = 64 * 1024 * 1024  # bytes of the write-ahead log that stay on the disk after it had to grow
READERS: Final = 3  # threads that read: one long read does not keep others waiting
EACH: Final = 2  # of them, for one organization
SHARED: Final = 1  # of them, while others read too: Python runs one thread at a time, and others wait for each busy one
GROUP: Final = 256  # writes that share one commit at most
HOLD: Final = 0.01  # seconds after which no further write joins a commit, for which those before it wait

_OF_THE_FILE: Final = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_PROTOCOL,
    }
)
"""Primary result codes (sqlite.org/rescode.html) that say something of the file or its disk, not of the statement."""


class SqliteHandle:
    """`Sql` over one connection."""

    skip_locked = ""

    def __init__(self, connection: sqlite3.Connection, *, reading: bool = False) -> None:
        self._connection = connection
        self._ended = False
        self._kept: dict[tuple[str, tuple[Value, ...]], Row | None] | None = {} if reading else None
        self.told: list[tuple[str, str]] = []

    def run(self, statement: str, *parameters: Value) -> int:
        """As Sql."""
        with self._going_on():
            return self._connection.execute(statement, parameters).rowcount

    def many(self, statement: str, rows: Sequence[Sequence[Value]]) -> None:
        """As Sql."""
        with self._going_on():
            self._connection.executemany(statement, rows)

    def rows(self, statement: str, *parameters: Value) -> list[Row]:
        """As Sql."""
        with self._going_on():
            cursor = self._connection.execute(statement, parameters)
            names = [column[0] for column in cursor.description]
            return [dict(zip(names, row, strict=True)) for row in cursor]

    def in_turn(self, subject: str) -> None:
        """As Sql: one thread writes, one transaction after the other."""

    def row(self, statement: str, *parameters: Value) -> Row | None:
        """As Sql. A transaction that only reads sees one state, so it keeps each row and does not query it again."""
        if self._kept is None:
            return self._first(statement, parameters)
        key = statement, parameters
        if key not in self._kept:
            self._kept[key] = self._first(statement, parameters)
        return self._kept[key]

    def _first(self, statement: str, parameters: tuple[Value, ...]) -> Row | None:
        with self._going_on():
            cursor = self._connection.execute(statement, parameters)
            values = cursor.fetchone()
            return None if values is None else dict(zip((one[0] for one in cursor.description), values, strict=True))

    def notify(self, topic: str, subject: str) -> None:
        """As Sql."""
        self.told.append((topic, subject))

    def result(self, work: Work[Any]) -> Any:
        """What `work` returns; RuntimeError if it returns although there was a Conflict."""
        value = work(self)
        if self._ended:
            raise at_its_end()
        return value

    @contextmanager
    def _going_on(self) -> Iterator[None]:
        if self._ended:
            raise at_its_end()
        try:
            yield
        except sqlite3.IntegrityError as error:
            self._ended = True
            raise Conflict(str(error)) from error


class _Write:
    """One transaction that waits for its turn."""

    def __init__(self, work: Work[Any]) -> None:
        self.work = work
        self.dropped = False  # by its caller; it is carried out all the same if it has begun
        self.done = trio.Event()
        self.result: outcome.Outcome[Any] = outcome.Error(RuntimeError("it was not carried out"))
        self.told: list[tuple[str, str]] = []


class SqliteStore:
    """`async with SqliteStore(path, events).opened() as store`. ":memory:" has no file; reads then share the writer."""

    def __init__(self, path: Path | str, events: Events) -> None:
        self.path = path
        self.events = events
        self._writer = _Thread(path, "database writer", query_only=False)
        self._readers = (
            [self._writer]
            if path == ":memory:"
            else [_Thread(path, f"database reader {number}", query_only=True) for number in range(1, READERS + 1)]
        )
        self._crew = Crew([reader.worker for reader in self._readers], min(EACH, len(self._readers)), shared=SHARED)
        self._arrived: deque[tuple[str, _Write]] = deque()  # from the event loop to the writer's thread
        self._waiting: Line[_Write] = Line()  # in the writer's thread
        self._asked = trio.Event()

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[SqliteStore]:
        """Check and migrate the file and use it; leaving finishes what has begun.

        Raises MachineError if it is damaged or of a newer version. A check that takes longer than `soundness.LIMIT`
        goes on in the background, and logs what it finds.
        """
        async with self._writer.opened():
            checked = await self._check()
            await self._writer.run(migrate)
            async with AsyncExitStack() as stack:
                for reader in self._readers:
                    if reader is not self._writer:
                        await stack.enter_async_context(reader.opened())
                nursery = await stack.enter_async_context(trio.open_nursery())
                nursery.start_soon(self._commit_groups)
                if not checked:
                    nursery.start_soon(self._check_in_background)
                try:
                    yield self
                finally:
                    nursery.cancel_scope.cancel()

    async def _check(self) -> bool:
        """Whether the whole file was checked within the limit."""
        if not isinstance(path := self.path, Path):
            return True
        until = time.monotonic() + soundness.LIMIT
        try:
            return await self._writer.run(
                lambda connection: soundness.check(connection, path, lambda: time.monotonic() > until)
            )
        except sqlite3.Error as error:
            raise self._unavailable(error, "checked") from error

    async def _check_in_background(self) -> None:
        assert isinstance(self.path, Path)
        path, stopping = self.path, False
        _log.info("the database is large: its check goes on in the background", path=str(path))
        thread = _Thread(path, "database check", query_only=True)
        try:
            async with thread.opened():
                try:
                    await thread.run(lambda connection: soundness.check(connection, path, lambda: stopping))
                finally:
                    stopping = True
            _log.info("the database is whole", path=str(path))
        except MachineError as error:
            _log.error(error.message, remedy=error.remedy)
        except sqlite3.Error as error:
            _log.error(f"the database {path} cannot be checked: {error}", remedy="look at its disk")

    async def read(self, work: Work[T]) -> T:
        """As Store."""
        try:
            return await self._crew.run(organization(), lambda number: _reading(self._readers[number].connection, work))
        except sqlite3.Error as error:
            raise self._failure(error, "read") from error

    async def write(self, work: Work[T]) -> T:
        """As Store."""
        await trio.lowlevel.checkpoint_if_cancelled()
        write = _Write(work)
        self._arrived.append((organization(), write))
        self._asked.set()
        try:
            await write.done.wait()
        except trio.Cancelled:
            write.dropped = True
            raise
        result: T = write.result.unwrap()
        return result

    async def _commit_groups(self) -> None:
        while True:
            await self._asked.wait()
            self._asked = trio.Event()
            while self._arrived or self._waiting:
                with trio.CancelScope(shield=True):  # begun: whoever waits must learn how it ended
                    await self._commit()

    def _next(self) -> _Write | None:
        """The write whose turn it is; in the writer's thread."""
        while self._arrived:
            self._waiting.put(*self._arrived.popleft())
        while (found := self._waiting.take()) is not None:
            if not found[1].dropped:
                return found[1]
        return None

    async def _commit(self) -> None:
        group: list[_Write] = []
        try:
            await self._writer.run(lambda connection: _writing(connection, self._next, group))
        except sqlite3.Error as error:
            for write in group:
                write.result = outcome.Error(self._unavailable(error, "written"))
                write.told = []
        for write in group:
            result = write.result
            if isinstance(result, outcome.Error) and isinstance(result.error, sqlite3.Error):
                write.result = outcome.Error(self._failure(result.error, "written"))
            for topic, subject in write.told:
                self.events.tell(topic, subject)
            write.done.set()

    def _failure(self, error: sqlite3.Error, done: str) -> Exception:
        """What is told of an error in a transaction: one of the statement itself is our mistake, and told as it is."""
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
        return self._unavailable(error, done) if code & 0xFF in _OF_THE_FILE else error

    def _unavailable(self, error: sqlite3.Error, done: str) -> MachineError:
        return MachineError(
            f"the database {self.path} cannot be {done}: {error}",
            kind=ErrorKind.UNAVAILABLE,
            remedy="see that the disk is not full and that nobody else holds the file",
        )


class _Thread:
    """One thread with one connection."""

    def __init__(self, path: Path | str, name: str, *, query_only: bool) -> None:
        self._path = path
        self._query_only = query_only
        self.worker = Worker(name)
        self.connection: sqlite3.Connection

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Connected while the context is open."""
        async with self.worker.opened():
            self.connection = await self.worker.run(self._connect)
            try:
                yield
            finally:
                self.worker.post(self.connection.close)

    async def run(self, function: Callable[[sqlite3.Connection], T]) -> T:
        """Carry out `function` in the thread."""
        return await self.worker.run(lambda: function(self.connection))

    def _connect(self) -> sqlite3.Connection:
        try:
            if isinstance(self._path, Path):
                soundness.prepare(self._path)
            connection = sqlite3.connect(self._path, isolation_level=None)
            connection.execute(f"PRAGMA busy_timeout = {BUSY_LIMIT}")
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute("PRAGMA synchronous = FULL")
            if self._query_only:
                connection.execute("PRAGMA query_only = ON")
            else:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute(f"PRAGMA journal_size_limit = {WAL_LIMIT}")
        except (sqlite3.Error, OSError) as error:
            raise MachineError(
                f"the database {self._path} cannot be opened: {error}",
                kind=ErrorKind.PRECONDITION,
                remedy="name a folder that this user may write to, or restore a backup if the file is damaged",
            ) from error
        return connection


@contextmanager
def held(path: Path, remedy: str) -> Iterator[sqlite3.Connection]:
    """A connection to a file that nobody else uses meanwhile, with everything in that one file.

    Raises MachineError with `remedy` if somebody does, sqlite3.DatabaseError if it is damaged.
    """
    with closing(sqlite3.connect(path, timeout=0.2, isolation_level=None)) as connection:
        try:
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            connection.execute("PRAGMA journal_mode = DELETE")
            connection.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as error:
            raise MachineError(f"{path} is in use: {error}", kind=ErrorKind.PRECONDITION, remedy=remedy) from error
        yield connection


def _reading(connection: sqlite3.Connection, work: Work[T]) -> T:
    connection.execute("BEGIN")
    try:
        result: T = SqliteHandle(connection, reading=True).result(work)
        return result
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _writing(connection: sqlite3.Connection, following: Callable[[], _Write | None], group: list[_Write]) -> None:
    """Carry out what follows in one commit, each by itself whole or not at all; `group` gets all that was begun."""
    until = time.monotonic() + HOLD
    connection.execute("BEGIN IMMEDIATE")
    try:
        while (write := following()) is not None:
            group.append(write)
            connection.execute("SAVEPOINT one")
            handle = SqliteHandle(connection)
            write.result = outcome.capture(handle.result, write.work)
            if isinstance(write.result, outcome.Error):
                if not connection.in_transaction:  # SQLite has undone the whole group: its disk is full, for example
                    raise sqlite3.OperationalError(str(write.result.error)) from write.result.error
                connection.execute("ROLLBACK TO one")
            else:
                write.told = handle.told
            connection.execute("RELEASE one")
            if len(group) == GROUP or time.monotonic() >= until:
                break
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
