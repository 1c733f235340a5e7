"""PostgreSQL store, for a cloud with several replicas that share only this database and the file store.

Writes are SERIALIZABLE: an aggregate reads, decides and writes as if it were alone. PostgreSQL refuses transactions for
which this would not hold, and they are repeated. Reads see a single snapshot (REPEATABLE READ), which never fails in
this way. There are a few connections for writing and a few for reading, each with its own thread, and one that receives
events from other replicas.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Final, TypeVar

import trio

from cloud.store.events import Events
from cloud.store.sql import Work
from cloud.store.turns import organization
from cloud.work.crew import Crew
from schema import ErrorKind, MachineError
from support import Exclusion, Worker

if TYPE_CHECKING:
    from cloud.store.session import Session

T = TypeVar("T")

EACH: Final = 3  # connections that one organization can use at a time
CONNECTIONS: Final = 4  # for reading, and as many for writing: more would only wait for the process's one core


def without_library(error: ImportError) -> MachineError:
    """Return the error for a missing psycopg."""
    return MachineError(
        f"PostgreSQL needs a library that is missing ({error})",
        kind=ErrorKind.PRECONDITION,
        remedy="pip install 'machine-runtime[postgresql]'",
    )


class PostgresStore:
    """`async with PostgresStore(url, events).opened() as store`. See Store.

    While the database is unavailable, calls fail with UNAVAILABLE; they succeed again as soon as it is back.
    """

    def __init__(self, url: str, events: Events) -> None:
        self.url = url
        self.events = events
        self._readers: _Pool
        self._writers: _Pool

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[PostgresStore]:
        """Migrate and open the database; leaving the context completes started transactions.

        Raise MachineError if the database is unavailable or has a newer version, or if the library for it is missing.
        """
        try:
            from cloud.store.listening import follow
            from cloud.store.session import Session, migrate
        except ImportError as error:
            raise without_library(error) from error
        migration = Worker("database migration")
        async with migration.opened():
            await migration.run(lambda: migrate(self.url))
        replica = secrets.token_hex(8)
        token = trio.lowlevel.current_trio_token()

        def forward(news: Sequence[tuple[str, str]]) -> None:
            """Forward events, in the thread of a writer.

            They arrive before the caller of `write` continues, and also if that caller was cancelled.
            """
            try:
                token.run_sync_soon(self._notify, news)
            except trio.RunFinishedError:
                pass  # there are no listeners left

        async with AsyncExitStack() as stack:
            exclusion = Exclusion()
            self._writers = await stack.enter_async_context(
                _opened("database writer", lambda: Session(self.url, replica, forward, exclusion))
            )
            self._readers = await stack.enter_async_context(
                _opened("database reader", lambda: Session(self.url, replica, None))
            )
            nursery = await stack.enter_async_context(trio.open_nursery())
            await nursery.start(follow, self.url, replica, self.events)
            try:
                yield self
            finally:
                nursery.cancel_scope.cancel()

    async def read(self, work: Work[T]) -> T:
        """Return the result of `work`, which sees a single snapshot and must not change anything."""
        return await self._readers.run(lambda session: session.read(work))

    async def write(self, work: Work[T]) -> T:
        """Execute `work` as a transaction; its changes are durable when this returns."""
        return await self._writers.run(lambda session: session.write(work))

    def _notify(self, news: Sequence[tuple[str, str]]) -> None:
        for topic, subject in news:
            self.events.notify(topic, subject)


class _Pool:
    """Connections, each with its thread, which organizations share."""

    def __init__(self, workers: Sequence[Worker], sessions: Sequence[Session]) -> None:
        self._crew = Crew(workers, EACH)
        self._sessions = sessions

    async def run(self, function: Callable[[Session], T]) -> T:
        """Run `function` with a connection, in its thread."""
        return await self._crew.run(organization(), lambda number: function(self._sessions[number]))


@asynccontextmanager
async def _opened(name: str, make: Callable[[], Session]) -> AsyncIterator[_Pool]:
    async with AsyncExitStack() as stack:
        workers, sessions = [], []
        for number in range(1, CONNECTIONS + 1):
            worker, session = Worker(f"{name} {number}"), make()
            await stack.enter_async_context(worker.opened())
            stack.callback(worker.post, session.close)
            workers.append(worker)
            sessions.append(session)
        yield _Pool(workers, sessions)
