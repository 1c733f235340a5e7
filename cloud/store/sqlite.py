"""The default database: one SQLite file in write-ahead mode, with one writer thread and a few reader threads.

A commit reaches the disk before it is acknowledged (synchronous FULL). Waiting writes share a commit; each has its own
savepoint, so a failing one undoes only itself. Organizations take turns: the load of one organization delays a
transaction of another by at most one transaction and one commit.
"""

from __future__ import annotations

import sqlite3
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing, contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import Any, Final, TypeVar

import outcome
import structlog
import trio

from cloud.store import soundness
from cloud.store.dialect import of_many
from cloud.store.events import Events
from cloud.store.migrations import migrate
from cloud.store.sql import Answers, Conflict, Row, Value, Work, continued_after_conflict
from cloud.store.turns import organization
from cloud.work.crew import Crew
from cloud.work.slots import WaitingLine
from schema import ErrorKind, MachineError
from support import Worker

T = TypeVar("T")
_log: structlog.stdlib.BoundLogger = structlog.get_logger("cloud.database")

BUSY_LIMIT: Final = 10_000  # milliseconds to wait for another process, such as a backup
WAL_LIMIT: Final = 64 * 1024 * 1024  # size in bytes to which the write-ahead log is truncated after it had to grow
PAGE: Final = 4096  # bytes in a page of the file
LOG: Final = 1000 * PAGE
"""Bytes in the write-ahead log from which it is copied into the file: 1,000 pages, as SQLite does by default."""
READERS: Final = 3  # reader threads: a long read does not block other readers
EACH: Final = 2  # reader threads for one organization
SHARED: Final = 1  # reader threads for one organization while others read too: Python runs one thread at a time
BATCH: Final = 100  # rows in one INSERT: a statement has at most 32,766 parameters
GROUP: Final = 256  # maximum number of writes that share a commit
HOLD: Final = 0.01  # seconds after which no further write joins a commit, which delays those in it

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
"""Primary result codes (sqlite.org/rescode.html) for errors of the file or its disk, not of the statement."""


class SqliteHandle:
    """`Sql` over one connection."""

    skip_locked = ""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._ended = False
        self._answers = Answers()
        self.events: list[tuple[str, str]] = []
        self.written = 0  # estimated bytes

    def run(self, statement: str, *parameters: Value) -> int:
        """Execute a statement; return the number of changed rows."""
        self._count(parameters)
        self._answers.before(statement)
        with self._executing():
            return self._connection.execute(statement, parameters).rowcount

    def many(self, statement: str, rows: Sequence[Sequence[Value]]) -> None:
        """Execute a statement for each of many rows."""
        split = of_many(statement)
        self._answers.before(statement)
        with self._executing():
            for start in range(0, len(rows), BATCH):
                batch = rows[start : start + BATCH]
                self._count(batch[0], len(batch))
                if split is None:
                    self._connection.executemany(statement, batch)
                else:  # between the rows of one statement, Python does not change threads
                    self._connection.execute(split.of(len(batch)), [*chain.from_iterable(batch)])

    def rows(self, statement: str, *parameters: Value) -> list[Row]:
        """Return all rows of a query."""

        def every() -> list[Row]:
            with self._executing():
                cursor = self._connection.execute(statement, parameters)
                names = [column[0] for column in cursor.description]
                return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

        return self._answers.rows(statement, parameters, every)

    def in_turn(self, subject: str) -> None:
        """Wait until all other transactions that called this with the same subject have ended.

        Nothing to do, because a single thread writes.
        """

    def row(self, statement: str, *parameters: Value) -> Row | None:
        """Return the first row of a query; None if there is none."""

        def first() -> Row | None:
            with self._executing():
                cursor = self._connection.execute(statement, parameters)
                values = cursor.fetchone()
                return (
                    None if values is None else dict(zip([each[0] for each in cursor.description], values, strict=True))
                )

        return self._answers.row(statement, parameters, first)

    def _count(self, values: Sequence[Value], rows: int = 1) -> None:
        """Count rows like these."""
        self.written += rows * (PAGE + sum([len(value) for value in values if isinstance(value, (str, bytes))]))

    def notify(self, topic: str, subject: str) -> None:
        """Notify listeners to `topic` about `subject`, once the transaction has been committed."""
        self.events.append((topic, subject))

    def result(self, work: Work[Any]) -> Any:
        """Return the result of `work`; RuntimeError if it returns despite a Conflict."""
        value = work(self)
        if self._ended:
            raise continued_after_conflict()
        return value

    @contextmanager
    def _executing(self) -> Iterator[None]:
        if self._ended:
            raise continued_after_conflict()
        try:
            yield
        except sqlite3.IntegrityError as error:
            self._ended = True
            raise Conflict(str(error)) from error


class _Write:
    """One transaction that waits for its turn."""

    def __init__(self, work: Work[Any]) -> None:
        self.work = work
        self.abandoned = False  # its caller was cancelled; it is executed all the same if it has begun
        self.done = trio.Event()
        self.result: outcome.Outcome[Any] = outcome.Error(RuntimeError("the transaction was not executed"))
        self.events: list[tuple[str, str]] = []
        self.written = 0  # estimated bytes


class SqliteStore:
    """`async with SqliteStore(path, events).opened() as store`. See Store.

    ":memory:" is a database without a file; its reads use the writer's thread.
    """

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
        self._arrived: deque[tuple[str, _Write]] = deque()  # from the event loop to the writer thread
        self._waiting: WaitingLine[_Write] = WaitingLine()  # used in the writer thread
        self._write_requested = trio.Event()
        self._logged = 0  # estimated bytes in the write-ahead log
        self._log_grew = trio.Event()

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[SqliteStore]:
        """Check, migrate and open the file; leaving the context completes started transactions.

        Raise MachineError if the file is damaged or has a newer version. A check that takes longer than
        `soundness.LIMIT` continues in the background and logs its result.
        """
        async with self._writer.opened():
            checked = await self._check()
            await self._writer.run(migrate)
            async with AsyncExitStack() as stack:
                for reader in self._readers:
                    if reader is not self._writer:
                        await stack.enter_async_context(reader.opened())
                copier = _Thread(self.path, "database log", query_only=False)
                if has_log := self.path != ":memory:":
                    await stack.enter_async_context(copier.opened())
                await stack.enter_async_context(self._crew.opened())
                nursery = await stack.enter_async_context(trio.open_nursery())
                nursery.start_soon(self._commit_groups)
                if has_log:
                    nursery.start_soon(self._copy_log, copier)
                if not checked:
                    nursery.start_soon(self._check_in_background)
                try:
                    yield self
                finally:
                    nursery.cancel_scope.cancel()

    async def _check(self) -> bool:
        """Check the file; return whether the check was completed within the limit."""
        if not isinstance(path := self.path, Path):
            return True
        deadline = time.monotonic() + soundness.LIMIT
        try:
            return await self._writer.run(
                lambda connection: soundness.check(connection, path, lambda: time.monotonic() > deadline)
            )
        except sqlite3.Error as error:
            raise self._unavailable(error, "checked") from error

    async def _check_in_background(self) -> None:
        assert isinstance(self.path, Path)
        path, stopping = self.path, False
        _log.info("the database is large: the check continues in the background", path=str(path))
        thread = _Thread(path, "database check", query_only=True)
        try:
            async with thread.opened():
                try:
                    await thread.run(lambda connection: soundness.check(connection, path, lambda: stopping))
                finally:
                    stopping = True
            _log.info("the check found no damage in the database", path=str(path))
        except MachineError as error:
            _log.error(error.message, remedy=error.remedy)
        except sqlite3.Error as error:
            _log.error(f"the database {path} cannot be checked: {error}", remedy="check its disk")

    async def read(self, work: Work[T]) -> T:
        """Return the result of `work`, which sees a single snapshot and must not change anything."""
        try:
            return await self._crew.run(organization(), lambda number: _reading(self._readers[number].connection, work))
        except sqlite3.Error as error:
            raise self._failure(error, "read") from error

    async def write(self, work: Work[T]) -> T:
        """Execute `work` as a transaction; its changes are durable when this returns."""
        await trio.lowlevel.checkpoint_if_cancelled()
        write = _Write(work)
        self._arrived.append((organization(), write))
        self._write_requested.set()
        try:
            await write.done.wait()
        except trio.Cancelled:
            write.abandoned = True
            raise
        result: T = write.result.unwrap()
        return result

    async def _commit_groups(self) -> None:
        while True:
            await self._write_requested.wait()
            self._write_requested = trio.Event()
            while self._arrived or self._waiting:
                with trio.CancelScope(shield=True):  # started transactions must report their result to the callers
                    await self._commit()

    def _next(self) -> _Write | None:
        """Return the next write, in the writer thread."""
        while self._arrived:
            self._waiting.put(*self._arrived.popleft())
        while (entry := self._waiting.take()) is not None:
            if not entry[1].abandoned:
                return entry[1]
        return None

    async def _copy_log(self, thread: _Thread) -> None:
        """Copy the write-ahead log into the file when it has grown, in another thread so that commits need not wait.

        If this cannot keep up, SQLite does it in a commit at WAL_LIMIT.
        """
        while True:
            await self._log_grew.wait()
            self._log_grew, self._logged = trio.Event(), 0
            with suppress(sqlite3.Error):  # the log stays as it is; commits report their own errors
                await thread.run(lambda connection: connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall())

    async def _commit(self) -> None:
        group: list[_Write] = []
        try:
            await self._writer.run(lambda connection: _writing(connection, self._next, group))
        except sqlite3.Error as error:
            for write in group:
                write.result = outcome.Error(self._unavailable(error, "written"))
                write.events = []
        self._logged += sum(write.written for write in group)
        if self._logged > LOG:
            self._log_grew.set()
        for write in group:
            result = write.result
            if isinstance(result, outcome.Error) and isinstance(result.error, sqlite3.Error):
                write.result = outcome.Error(self._failure(result.error, "written"))
            for topic, subject in write.events:
                self.events.notify(topic, subject)
            write.done.set()

    def _failure(self, error: sqlite3.Error, action: str) -> Exception:
        """Return the exception for an error in a transaction; an error in a statement is a bug and stays as it is."""
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
        return self._unavailable(error, action) if code & 0xFF in _OF_THE_FILE else error

    def _unavailable(self, error: sqlite3.Error, action: str) -> MachineError:
        return MachineError(
            f"the database {self.path} cannot be {action}: {error}",
            kind=ErrorKind.UNAVAILABLE,
            remedy="check that the disk is not full and that no other process locks the file",
        )


class _Thread:
    """A thread with a connection."""

    def __init__(self, path: Path | str, name: str, *, query_only: bool) -> None:
        self._path = path
        self._query_only = query_only
        self.worker = Worker(name)
        self.connection: sqlite3.Connection

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Keep the connection open while the context is open."""
        async with self.worker.opened():
            self.connection = await self.worker.run(self._connect)
            try:
                yield
            finally:
                self.worker.post(self.connection.close)

    async def run(self, function: Callable[[sqlite3.Connection], T]) -> T:
        """Run `function` in the thread."""
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
                connection.execute(f"PRAGMA wal_autocheckpoint = {WAL_LIMIT // PAGE}")
        except (sqlite3.Error, OSError) as error:
            raise MachineError(
                f"the database {self._path} cannot be opened: {error}",
                kind=ErrorKind.PRECONDITION,
                remedy="use a folder that this user can write to, or restore a backup if the file is damaged",
            ) from error
        return connection


@contextmanager
def opened_exclusively(path: Path, remedy: str) -> Iterator[sqlite3.Connection]:
    """Open a database file exclusively, without a separate write-ahead log.

    Raise MachineError with `remedy` if another process uses it, sqlite3.DatabaseError if it is damaged.
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
        result: T = SqliteHandle(connection).result(work)
        return result
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _writing(connection: sqlite3.Connection, next_write: Callable[[], _Write | None], group: list[_Write]) -> None:
    """Execute the following writes in one commit, each in its own savepoint; add all started ones to `group`."""
    deadline = time.monotonic() + HOLD
    connection.execute("BEGIN IMMEDIATE")
    try:
        while (write := next_write()) is not None:
            group.append(write)
            connection.execute("SAVEPOINT one")
            handle = SqliteHandle(connection)
            write.result = outcome.capture(handle.result, write.work)
            if isinstance(write.result, outcome.Error):
                if not connection.in_transaction:  # SQLite has rolled back the whole group, for example: disk full
                    raise sqlite3.OperationalError(str(write.result.error)) from write.result.error
                connection.execute("ROLLBACK TO one")
            else:
                write.events = handle.events
                write.written = handle.written
            connection.execute("RELEASE one")
            if len(group) == GROUP or time.monotonic() >= deadline:
                break
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
