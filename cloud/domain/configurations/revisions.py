"""Revisions of a document: a machine's configuration, or a fragment."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, Final, TypeVar

from cloud.documents import pieces
from cloud.store.sql import Row, Sql, Value
from cloud.values.author import Author
from cloud.values.limits import HISTORY
from cloud.values.times import moment_of
from schema import ErrorKind, MachineError

T = TypeVar("T")

VALUE: Final = 64  # bytes that a value takes in addition to its text
ATTEMPTS: Final = 3  # attempts of a save that is checked outside the write, if others save in the meantime


@dataclass(frozen=True)
class Revision:
    """One save, with the texts of its document and of its predecessor's (None for the first save).

    Documents are parsed on first access, because they may be large.
    """

    number: int
    text: str
    saved: datetime
    author: Author
    text_before: str | None

    @cached_property
    def document(self) -> Mapping[str, Any]:
        """The saved document."""
        document: Mapping[str, Any] = pieces.loads(self.text)
        return document

    @cached_property
    def before(self) -> Mapping[str, Any] | None:
        """The document that it replaced."""
        return None if self.text_before is None else pieces.loads(self.text_before)


class Revisions(list[Revision]):
    """Revisions, newest first.

    `more` is True if the page ended before all were read; `size` counts toward the limit `history`.
    """

    more = False
    size = 0


def within_limit(sql: Sql, statement: str, parameters: Sequence[Value], limit: int) -> Revisions:
    """Return up to `limit` revisions, limited in size by the limit `history`, and at least one if any exists.

    `statement` selects one revision, with the number of revisions to skip as its last parameter. Its columns:
    `revision`, `document`, `saved`, `author_type`, `author` and `before`, the preceding document.
    """
    revisions = Revisions()
    while revisions.size <= HISTORY.value and len(revisions) < limit:
        if (row := sql.row(statement, *parameters, len(revisions))) is None:
            return revisions
        revisions.append(_revision(row))
        revisions.size += _weight(row["document"]) + _weight(row["before"] or "")
    revisions.more = True
    return revisions


def _weight(text: str) -> int:
    """Estimate the bytes of memory for a document in a reply: small values take more as messages than as text."""
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
    """The database has changed since a document was checked."""

    def __init__(self) -> None:
        super().__init__(
            "another caller saved the configuration or its fragments in the meantime",
            kind=ErrorKind.PRECONDITION,
            remedy="try again",
        )


async def until_fresh(attempt: Callable[[], Awaitable[T]], at_last: Callable[[], Awaitable[T]]) -> T:
    """Return the result of `attempt`, or that of `at_last` after `attempt` was Stale ATTEMPTS times."""
    for _ in range(ATTEMPTS):
        with suppress(Stale):
            return await attempt()
    return await at_last()
