"""PostgreSQL, for a cloud of several replicas that share nothing but this database.

What is written is SERIALIZABLE: the aggregates read, decide and write as if nobody else did, and PostgreSQL refuses
what would not look so; the transaction is then carried out again. What is read is one moment (REPEATABLE READ), which
never fails so. A few connections write and a few read, each with a thread of its own; one more hears of what replicas
wrote.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Final, TypeVar

import trio

from cloud.crew import Crew
from cloud.store.events import Events
from cloud.store.sql import Work
from cloud.store.turns import organization
from schema.errors import ErrorKind, MachineError
from support.worker import Worker

if TYPE_CHECKING:
    from cloud.store.session import Session

T = TypeVar("T")

EACH: Final = 3  # of one organization at a time
CONNECTIONS: Final = 4  # that read, and as many that write: more would only wait for the one core that a process has


def without_library(error: ImportError) -> MachineError:
    """What is said where psycopg is not installed."""
    return MachineError(
        f"PostgreSQL needs a library that is missing ({error})",
        kind=ErrorKind.PRECONDITION,
        remedy="pip install 'machine-runtime[postgresql]'",
    )


class PostgresStore:
    """`async with PostgresStore(url, events).opened() as store`. See Store.

    While the database is away calls fail with UNAVAILABLE; they succeed again as soon as it is back.
    """

    def __init__(self, url: str, events: Events) -> None:
        self.url = url
        self.events = events
        self._readers: _Pool
        self._writers: _Pool

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[PostgresStore]:
        """Migrate the database and use it; leaving finishes what has begun.

        Raises MachineError if it cannot be reached, is of a newer version, or if the library for it is missing.
        """
        try:
            from cloud.store.listening import follow
            from cloud.store.session import Session, migrate
        except ImportError as error:
            raise without_library(error) from error
        migration = Worker("database migration")
        async with migration.opened():
            await migration.run(lambda: migrate(self.url))
        own = secrets.token_hex(8)
        token = trio.lowlevel.current_trio_token()

        def told(news: Sequence[tuple[str, str]]) -> None:
            """In a writer's thread. Heard before the writer's caller goes on, and also if that has gone away."""
            try:
                token.run_sync_soon(self._tell, news)
            except trio.RunFinishedError:
                pass  # nobody is left to hear it

        async with AsyncExitStack() as stack:
            self._writers = await stack.enter_async_context(
                _opened("database writer", lambda: Session(self.url, own, told))
            )
            self._readers = await stack.enter_async_context(
                _opened("database reader", lambda: Session(self.url, own, None))
            )
            nursery = await stack.enter_async_context(trio.open_nursery())
            await nursery.start(follow, self.url, own, self.events)
            try:
                yield self
            finally:
                nursery.cancel_scope.cancel()

    async def read(self, work: Work[T]) -> T:
        """As Store."""
        return await self._readers.run(lambda session: session.read(work))

    async def write(self, work: Work[T]) -> T:
        """As Store."""
        return await self._writers.run(lambda session: session.write(work))

    def _tell(self, news: Sequence[tuple[str, str]]) -> None:
        for topic, subject in news:
            self.events.tell(topic, subject)


class _Pool:
    """Connections, each with its thread, which organizations share."""

    def __init__(self, workers: Sequence[Worker], sessions: Sequence[Session]) -> None:
        self._crew = Crew(workers, EACH)
        self._sessions = sessions

    async def run(self, function: Callable[[Session], T]) -> T:
        """Carry out `function` with a connection, in its thread."""
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
