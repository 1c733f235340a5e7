"""One save of a document that is kept in revisions: of a machine's configuration, or of a fragment."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, Final, TypeVar

from cloud import pieces
from cloud.author import Author
from cloud.limits import HISTORY
from cloud.store.sql import Row, Sql, Value
from cloud.times import moment_of
from schema.errors import ErrorKind, MachineError

T = TypeVar("T")

VALUE: Final = 64  # bytes
ATTEMPTS: Final = 3  # of one save beside the writer, if others save meanwhile


@dataclass(frozen=True)
class Revision:
    """One save, with the text of its document and of the one that it replaced; that is None for the first save.

    The texts are read when somebody asks for the documents: those may be large.
    """

    number: int
    text: str
    saved: datetime
    author: Author
    text_before: str | None

    @cached_property
    def document(self) -> Mapping[str, Any]:
        """What was saved."""
        found: Mapping[str, Any] = pieces.loads(self.text)
        return found

    @cached_property
    def before(self) -> Mapping[str, Any] | None:
        """What it replaced."""
        return None if self.text_before is None else pieces.loads(self.text_before)


class Revisions(list[Revision]):
    """Revisions, the newest first. `more` tells that the page ended before everything was read; `size` is what
    counts for the limit `history`."""

    more = False
    size = 0


def within_limit(sql: Sql, statement: str, parameters: Sequence[Value], limit: int) -> Revisions:
    """Up to `limit` revisions, as many as the limit `history` lets a page have, and at least one if there is one.

    `statement` answers with one revision (its last parameter is how many it leaves out): `revision`, `document`,
    `saved`, `author_type`, `author` and, the document before it, `before`.
    """
    read = Revisions()
    while read.size <= HISTORY.value and len(read) < limit:
        if (row := sql.row(statement, *parameters, len(read))) is None:
            return read
        read.append(_revision(row))
        read.size += _weight(row["document"]) + _weight(row["before"] or "")
    read.more = True
    return read


def _weight(text: str) -> int:
    """Bytes of memory that an answer takes for a document, roughly: small values take more as messages than as text."""
    return len(text) + VALUE * text.count(",")


def _revision(row: Row) -> Revision:
    return Revision(
        row["revision"],
        row["document"],
        moment_of(row["saved"]),
        Author(row["author_type"], row["author"]),
        row["before"],
    )


class Stale(MachineError):
    """A document was checked against a state of the database that others have changed since."""

    def __init__(self) -> None:
        super().__init__(
            "others saved the configuration or its fragments meanwhile",
            kind=ErrorKind.PRECONDITION,
            remedy="try again",
        )


async def until_fresh(attempt: Callable[[], Awaitable[T]], at_last: Callable[[], Awaitable[T]]) -> T:
    """Return the result of `attempt`, or that of `at_last` after `attempt` was Stale ATTEMPTS times."""
    for _ in range(ATTEMPTS):
        with suppress(Stale):
            return await attempt()
    return await at_last()
