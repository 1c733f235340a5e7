"""A connection to PostgreSQL and its transactions. Blocking: for a separate thread."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from decimal import Decimal
from typing import Any, Final, TypeVar

import psycopg
from psycopg import errors, sql
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import dict_row

from cloud.store.dialect import numbered, of_many, typed
from cloud.store.migrations import STEPS, newer, statements
from cloud.store.sql import Answers, Conflict, Row, Value, Work, continued_after_conflict
from schema import ErrorKind, MachineError
from support import DoublingDelay, Exclusion

T = TypeVar("T")
News = Sequence[tuple[str, str]]

ATTEMPTS: Final = 20  # attempts of one transaction, if others interfere each time
COPIED: Final = 50  # rows from which COPY is used: an INSERT is parsed again for each number of rows
BATCH: Final = 500  # rows in one INSERT: a statement has at most 65,535 parameters
ALONE: Final = 5
"""Failed attempts after which a transaction runs without others of this process. A long one that reads what thousands
of machines write would otherwise never end. Transactions of other replicas can still interfere."""
CONFLICTS: Final = 3  # attempts that may end in a Conflict, which may be with a concurrent transaction
FIRST_PAUSE: Final = 0.002  # maximum seconds before the second attempt; doubled each time
MAX_PAUSE: Final = 0.25
USED_UP: Final = "53"  # class of SQLSTATE: disk full, out of memory, too many connections (PostgreSQL, appendix A)
NUMERIC: Final = 1700  # result type of sums and averages of BIGINT: pg_type.dat of PostgreSQL
DEFAULTS: Final = {
    "application_name": "machine-cloud",
    "connect_timeout": "4",  # seconds
    "keepalives_idle": "10",  # seconds; a host that disappears is noticed within half a minute
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "15000",  # milliseconds
}
SETTINGS: Final = (
    ("idle_in_transaction_session_timeout", "30s"),  # limit for how long a suspended replica can block writers
    # A sequential scan of a table conflicts with every writer of the table, and small tables would be scanned.
    ("enable_seqscan", "off"),
    ("jit", "off"),  # compiling takes a second for queries of milliseconds: disabled scans look expensive
)


def connected(url: str) -> Any:
    """Return a new connection; UNAVAILABLE if it fails, PRECONDITION if `url` is invalid."""
    try:
        parameters = conninfo_to_dict(url)
    except psycopg.ProgrammingError as error:
        raise MachineError(
            f"the database's address is not valid: {str(error).strip()}",
            kind=ErrorKind.PRECONDITION,
            remedy="use postgresql://USER:PASSWORD@HOST/DATABASE",
        ) from error
    try:
        return psycopg.connect(
            "",
            **{**DEFAULTS, **parameters, "client_encoding": "utf8"},
            autocommit=True,
            cursor_factory=psycopg.RawCursor,
            row_factory=dict_row,
        )
    except psycopg.Error as error:
        raise MachineError(
            f"the database {location_of(url)} cannot be reached: {str(error).strip()}",
            kind=ErrorKind.UNAVAILABLE,
            remedy="check that PostgreSQL runs there and accepts this user",
        ) from error


def location_of(url: str) -> str:
    """Return the location of a database, without user and password."""
    parameters = conninfo_to_dict(url)
    return f"{parameters.get('dbname', '')!r} at {parameters.get('host', 'localhost')}"


def channel(connection: Any) -> str:
    """Return the notification channel of the clouds in this schema of the database."""
    return f"machine_cloud_{connection.execute('SELECT current_schema() AS name').fetchone()['name']}"


class Session:
    """Transactions over one connection, which is opened on first use and reopened when it was lost.

    `on_commit` receives the events of committed transactions, in this thread. Without it the session is read-only.
    Sessions of one process that write share `exclusion`.
    """

    def __init__(
        self,
        url: str,
        replica: str,
        on_commit: Callable[[News], None] | None,
        exclusion: Exclusion | None = None,
    ) -> None:
        self._url = url
        self._exclusion = exclusion or Exclusion()
        self._replica = replica
        self._on_commit = on_commit
        self._channel = ""
        self._connection: Any = None

    def close(self) -> None:
        """Close the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(psycopg.Error):
                connection.close()

    def read(self, work: Work[T]) -> T:
        """Return the result of `work`, which sees a single snapshot and must not change anything.

        Repeated once if the connection was lost, because an idle connection may be long dead.
        """
        try:
            return self._attempt(work)[0]
        except _Lost:
            return self._retry(work)[0]

    def write(self, work: Work[T]) -> T:
        """Execute `work` as a transaction; its changes are durable when this returns."""
        assert self._on_commit is not None
        pause, conflicts = DoublingDelay(FIRST_PAUSE, MAX_PAUSE), 0
        for attempt in range(ATTEMPTS):
            try:
                with self._exclusion.together() if attempt < ALONE else self._exclusion.alone():
                    result, events = self._attempt(work)
            except (errors.SerializationFailure, errors.DeadlockDetected):
                pass
            except _Contested as error:
                conflicts += 1
                if conflicts == CONFLICTS:
                    raise error.failure from error.failure.__cause__
            except _Lost:
                result, events = self._retry(work)
                self._on_commit(events)
                return result
            else:
                self._on_commit(events)
                return result
            time.sleep(random.uniform(0, pause.next()))
        raise MachineError(
            f"the transaction conflicted with others {ATTEMPTS} times", kind=ErrorKind.UNAVAILABLE, remedy="try again"
        )

    def _retry(self, work: Work[T]) -> tuple[T, News]:
        """Repeat a transaction over a new connection."""
        try:
            return self._attempt(work)
        except (_Lost, errors.SerializationFailure, errors.DeadlockDetected) as error:
            raise unavailable(self._url, error.__cause__ or error) from error
        except _Contested as error:
            raise error.failure from error.failure.__cause__

    def _attempt(self, work: Work[T]) -> tuple[T, News]:
        """Make one attempt. `_Lost` if the connection was lost before anything can have been committed."""
        connection = self._connected()
        handle = PostgresHandle(connection, self._channel, self._replica)
        committing = False
        try:
            try:
                connection.execute(_BEGIN_READING if self._on_commit is None else _BEGIN_WRITING)
                result = handle.result(work)
                committing = True
                connection.execute(handle.commit(), prepare=False)  # may be two statements
            except BaseException:
                self._undo(connection)
                raise
        except (errors.SerializationFailure, errors.DeadlockDetected):
            raise
        except errors.ReadOnlySqlTransaction as error:  # a standby server
            if self._on_commit is None:
                raise
            raise unavailable(self._url, error) from error
        except psycopg.OperationalError as error:
            if (error.sqlstate or "").startswith(USED_UP):
                raise unavailable(self._url, error) from error
            if self._connection is not None:
                raise
            if committing and self._on_commit is not None:
                raise MachineError(
                    f"the connection to the database {location_of(self._url)} was lost during the commit: "
                    "the change may be stored or not",
                    kind=ErrorKind.UNAVAILABLE,
                    remedy="check whether it was stored",
                ) from error
            raise _Lost from error
        except Exception as error:
            if handle.contested:
                raise _Contested(error) from error
            raise
        return result, tuple(handle.events)

    def _undo(self, connection: Any) -> None:
        try:
            connection.execute("ROLLBACK")
        except psycopg.Error:
            self.close()

    def _connected(self) -> Any:
        if self._connection is None:
            connection = connected(self._url)
            try:
                for name, value in SETTINGS:
                    connection.execute("SELECT set_config($1, $2, false)", (name, value))
                self._channel = channel(connection)
            except psycopg.Error as error:
                connection.close()
                raise unavailable(self._url, error) from error
            self._connection = connection
        return self._connection


_BEGIN_READING: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_BEGIN_WRITING: Final = "BEGIN ISOLATION LEVEL SERIALIZABLE READ WRITE"


class _Lost(Exception):
    """The connection was lost and nothing was committed."""


class _Contested(Exception):
    """A transaction failed after a Conflict, which may be with a concurrent transaction."""

    def __init__(self, failure: Exception) -> None:
        super().__init__(str(failure))
        self.failure = failure


def unavailable(url: str, error: BaseException) -> MachineError:
    """Return the error for callers while the database does not work."""
    return MachineError(
        f"the database {location_of(url)} does not answer: {str(error).strip()}",
        kind=ErrorKind.UNAVAILABLE,
        remedy="try again when it is back",
    )


class PostgresHandle:
    """`Sql` over one connection."""

    skip_locked = " FOR UPDATE SKIP LOCKED"

    def __init__(self, connection: Any, channel_name: str, replica: str) -> None:
        self._connection = connection
        self._channel = channel_name
        self._replica = replica
        self._answers = Answers()
        self.contested = False
        self.events: dict[tuple[str, str], None] = {}

    def run(self, statement: str, *parameters: Value) -> int:
        """Execute a statement; return the number of changed rows."""
        self._answers.before(statement)
        with self._executing():
            count: int = self._connection.execute(numbered(statement), plain(parameters)).rowcount
            return count

    def many(self, statement: str, rows: Sequence[Sequence[Value]]) -> None:
        """Execute a statement for each of many rows."""
        self._answers.before(statement)
        with self._executing():
            cursor = self._connection.cursor()
            if (split := of_many(statement)) is None:
                cursor.executemany(numbered(statement), [plain(row) for row in rows])
                return
            if len(rows) >= COPIED and not split.after.strip():
                with cursor.copy(f"COPY {split.target} FROM STDIN") as copy:
                    copy.write("".join(map(_copied, rows)))
                return
            for start in range(0, len(rows), BATCH):
                batch = rows[start : start + BATCH]
                cursor.execute(numbered(split.of(len(batch))), plain([value for row in batch for value in row]))

    def rows(self, statement: str, *parameters: Value) -> list[Row]:
        """Return all rows of a query."""
        return self._answers.rows(statement, parameters, lambda: self._rows(statement, parameters))

    def _rows(self, statement: str, parameters: Sequence[Value]) -> list[Row]:
        with self._executing():
            cursor = self._connection.execute(numbered(statement), plain(parameters))
            rows: list[Row] = cursor.fetchall()
            if any(column.type_code == NUMERIC for column in cursor.description):
                return [{name: _number(value) for name, value in row.items()} for row in rows]
            return rows

    def row(self, statement: str, *parameters: Value) -> Row | None:
        """Return the first row of a query; None if there is none."""

        def first() -> Row | None:
            rows = self._rows(statement, parameters)
            return rows[0] if rows else None

        return self._answers.row(statement, parameters, first)

    def in_turn(self, subject: str) -> None:
        """Wait until all other transactions that called this with the same subject have ended."""
        with self._executing():
            self._connection.execute("SELECT pg_advisory_xact_lock($1::int, hashtext($2))", (_TURN, subject))

    def notify(self, topic: str, subject: str) -> None:
        """Notify listeners to `topic` about `subject`, once the transaction has been committed."""
        self.events[topic, subject] = None

    def result(self, work: Work[T]) -> T:
        """Return the result of `work`."""
        result = work(self)
        if self.contested:
            raise continued_after_conflict()
        return result

    def commit(self) -> str:
        """Return the statements that queue the events for other replicas and commit, in one round trip."""
        if not self.events:
            return "COMMIT"
        news = [f"{self._replica}\n{topic}\n{subject}" for topic, subject in self.events]
        texts = [sql.quote(text, self._connection) for text in (self._channel, *plain(news))]
        return f"SELECT pg_notify({texts[0]}, news) FROM (VALUES ({'), ('.join(texts[1:])})) AS each (news); COMMIT"

    @contextmanager
    def _executing(self) -> Iterator[None]:
        if self.contested:
            raise continued_after_conflict()
        try:
            yield
        except psycopg.IntegrityError as error:
            self.contested = True
            raise Conflict(str(error).strip()) from error


def plain(parameters: Sequence[Value]) -> list[Value]:
    """Return parameters for PostgreSQL, which has no text with NUL, and where booleans are not numbers."""
    return [
        parameter.replace("\0", "\N{SYMBOL FOR NULL}")
        if type(parameter) is str and "\0" in parameter
        else int(parameter)
        if type(parameter) is bool
        else parameter
        for parameter in parameters
    ]


_ESCAPED: Final = str.maketrans({"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\N{SYMBOL FOR NULL}"})
"""Characters of a text that has to be written differently in a line of COPY, and NUL as in `plain`."""


def _copied(row: Sequence[Value]) -> str:
    """Return a row as a line of COPY (PostgreSQL, COPY: text format)."""
    return "\t".join(map(_column, row)) + "\n"


def _column(value: Value) -> str:
    if type(value) is str:
        return value.translate(_ESCAPED)
    if value is None:
        return "\\N"
    if isinstance(value, bytes):
        return f"\\\\x{value.hex()}"
    return repr(int(value) if type(value) is bool else value)


def _number(value: Any) -> Any:
    """Return whole sums as int, other decimals as float."""
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return value


_LOCK: Final = 0x6D63  # advisory lock of the migration: an arbitrary number, with the schema's hash as second number
_TURN: Final = 0x6D64  # advisory lock of turns, with the subject's hash as second number


def migrate(url: str) -> None:
    """Execute the steps that are missing in the database, in one transaction; replicas that start together wait.

    Raise MachineError if the database was written by a newer program, or if its encoding is not UTF8.
    """
    connection = connected(url)
    try:
        if connection.info.parameter_status("server_encoding") != "UTF8":
            raise MachineError(
                f"the database {location_of(url)} cannot store every text: its encoding is not UTF8",
                kind=ErrorKind.PRECONDITION,
                remedy="create a database: CREATE DATABASE cloud ENCODING 'UTF8' TEMPLATE template0",
            )
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock($1::int, hashtext(current_schema()))", (_LOCK,))
            connection.execute("CREATE TABLE IF NOT EXISTS migrations (number BIGINT PRIMARY KEY)")
            done = connection.execute("SELECT COALESCE(MAX(number), 0) AS number FROM migrations").fetchone()["number"]
            if done > len(STEPS):
                raise newer(done)
            for number, step in enumerate(STEPS[done:], done + 1):
                for statement in statements(step):
                    connection.execute(typed(statement))
                connection.execute("INSERT INTO migrations (number) VALUES ($1)", (number,))
    except psycopg.Error as error:
        raise MachineError(
            f"the tables in {location_of(url)} cannot be created: {str(error).strip()}",
            kind=ErrorKind.PRECONDITION,
            remedy="give this user the right to create tables there (GRANT CREATE ON SCHEMA)",
        ) from error
    finally:
        connection.close()
