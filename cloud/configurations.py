"""Configurations of parts: every save is a revision that stays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from cloud import fragments, pieces
from cloud.author import Author
from cloud.fragment_uses import note_uses
from cloud.machines import PartRecord, part
from cloud.readable import kept
from cloud.resolve import Resolved, resolve, uses, version_of
from cloud.revisions import Revisions, Stale, within_limit
from cloud.store.sql import Sql, Value, inserted
from cloud.times import stored
from cloud.unmasked import check_unmasked
from schema.errors import ErrorKind, MachineError


def current(sql: Sql, subject: str) -> tuple[str, Mapping[str, Any]]:
    """The text and the document in force for a part; NOT_FOUND."""
    return _document(sql, part(sql, subject))


def _document(sql: Sql, found: PartRecord) -> tuple[str, Mapping[str, Any]]:
    text = current_text(sql, found)
    return text, pieces.loads(text)


def current_text(sql: Sql, found: PartRecord) -> str:
    """The text of the document in force for a part."""
    row = sql.row("SELECT document FROM configurations WHERE part_id = ? AND revision = ?", found.id, found.revision)
    assert row is not None
    text: str = row["document"]
    return text


def resolved(sql: Sql, subject: str) -> Mapping[str, Any]:
    """The document in force with its fragments merged in: what the machine runs and what triggers are read from."""
    return resolution(sql, subject)[1].document


def resolution(sql: Sql, subject: str | PartRecord) -> tuple[str, Resolved]:
    """As `resolved`, with what is wrong with fragments; and the version of all this, which machines tell back."""
    found = part(sql, subject) if isinstance(subject, str) else subject
    merged = _merged(sql, found, _document(sql, found)[1])
    return version_of(found.revision, merged), merged


def _merged(sql: Sql, found: PartRecord, document: Mapping[str, Any]) -> Resolved:
    return resolve(document, fragments.finder(sql, found.organization_id))


@dataclass(frozen=True, slots=True)
class Candidate:
    """A document that may become the configuration of a part while the database is as it was checked against."""

    part: str
    text: str
    equal: bool  # to the configuration in force: nothing is to be saved
    revision: int  # of the part, which it replaces
    uses: frozenset[str]  # ids of the fragments that it names
    lookups: fragments.Lookups


def candidate(
    sql: Sql,
    subject: str,
    document: Mapping[str, Any],
    known: datetime | None = None,
    text: str | None = None,
    lookups: fragments.Lookups | None = None,
) -> Candidate:
    """Check `document` for a part; only reads.

    With `known`, the time of the newest save that the author has seen, a newer one makes this PRECONDITION: nothing is
    lost, nothing is written over. INVALID if its fragments cannot be merged, if not every client could read it, or if
    it is larger than the limits of documents. `text` is what `readable.kept` has made of it already. `lookups` are
    those that must still hold when it is saved, besides its own.
    """
    text = kept(document, "the configuration") if text is None else text
    found = part(sql, subject)
    if known is not None and stored(known) != stored(found.saved):
        raise MachineError(
            f"the configuration was changed meanwhile (at {found.saved.isoformat()})",
            kind=ErrorKind.PRECONDITION,
            remedy="read it again and make your change to the newest one",
        )
    lookups = {} if lookups is None else lookups
    before = _document(sql, found)[1]
    equal = before == document
    if not equal:
        check_unmasked(document, before)
        merged = resolve(document, fragments.finder(sql, found.organization_id, lookups))
        fragments.checked(merged)
        if merged.used:
            kept(merged.document, "the configuration with its fragments")
    return Candidate(subject, text, equal, found.revision, frozenset(uses(document)), lookups)


def put(sql: Sql, given: Candidate, author: Author, now: datetime) -> int:
    """Make a candidate the configuration of its part; its revision. An equal one changes nothing. Stale if it must be
    checked again.
    """
    found = part(sql, given.part)
    if found.revision != given.revision or any(
        fragments.usable(sql, *asked) != revision for asked, revision in given.lookups.items()
    ):
        raise Stale
    if given.equal:
        return given.revision
    revision = given.revision + 1
    moment = max(stored(now), stored(found.saved) + 1)  # the time tells one save from the next
    row: dict[str, Value] = {"part_id": given.part, "revision": revision, "document": given.text, "saved": moment}
    inserted(sql, "configurations", {**row, "author_type": author.type, "author": author.name})
    sql.run("UPDATE parts SET revision = ?, saved = ? WHERE id = ?", revision, moment, given.part)
    note_uses(sql, "part", given.part, given.uses, only=True)
    sql.notify("part", given.part)
    return revision


def save(sql: Sql, subject: str, document: Mapping[str, Any], author: Author, now: datetime) -> int:
    """Check a document and save it, in one transaction; its revision. For programs: calls check beside the writer."""
    return put(sql, candidate(sql, subject, document), author, now)


def history(
    sql: Sql,
    subject: str,
    *,
    before: int | None = None,
    limit: int,
    start: datetime | None = None,
    end: datetime | None = None,
) -> Revisions:
    """Revisions of a part, the newest first, below the revision `before`, saved from `start` on and before `end`.

    Fewer than `limit` if their documents are larger than the limit `history`.
    """
    conditions, values = ["part_id = ?"], [subject]
    numbers: list[int] = []
    if before is not None:
        conditions.append("revision < ?")
        numbers.append(before)
    if start is not None:
        conditions.append("saved >= ?")
        numbers.append(stored(start))
    if end is not None:
        conditions.append("saved < ?")
        numbers.append(stored(end))
    return within_limit(
        sql,
        f"""
        SELECT revision, document, saved, author_type, author,
            (SELECT document FROM configurations AS older
             WHERE older.part_id = configurations.part_id AND older.revision = configurations.revision - 1) AS before
        FROM configurations WHERE {" AND ".join(conditions)} ORDER BY revision DESC LIMIT 1 OFFSET ?
        """,
        (*values, *numbers),
        limit,
    )
