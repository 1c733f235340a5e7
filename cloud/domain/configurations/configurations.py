"""Configurations of parts. Every save is a permanent revision."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from cloud.documents import pieces
from cloud.documents.readable import document_text
from cloud.documents.resolve import Resolved, resolve, uses, version_of
from cloud.documents.unmasked import check_unmasked
from cloud.domain.configurations import fragments
from cloud.domain.configurations.fragment_uses import note_uses
from cloud.domain.configurations.revisions import Revisions, Stale, within_limit
from cloud.domain.machines.machines import PartRecord, part
from cloud.domain.organizations.tenants import missing
from cloud.store.sql import Sql, Value, inserted
from cloud.values.author import Author
from cloud.values.times import stored
from schema import ErrorKind, MachineError


def current(sql: Sql, subject: str) -> tuple[str, Mapping[str, Any]]:
    """Return text and document of a part's current configuration; NOT_FOUND."""
    return _document(sql, part(sql, subject))


def _document(sql: Sql, record: PartRecord) -> tuple[str, Mapping[str, Any]]:
    text = current_text(sql, record)
    return text, pieces.loads(text)


def current_text(sql: Sql, record: PartRecord) -> str:
    """Return the text of a part's current configuration."""
    row = sql.row("SELECT document FROM configurations WHERE part_id = ? AND revision = ?", record.id, record.revision)
    assert row is not None
    text: str = row["document"]
    return text


def text_of(sql: Sql, subject: str, revision: int) -> str:
    """Return the text of a revision of a part's configuration; NOT_FOUND."""
    row = sql.row("SELECT document FROM configurations WHERE part_id = ? AND revision = ?", subject, revision)
    if row is None:
        raise missing("revision", str(revision))
    return str(row["document"])


def resolved(sql: Sql, subject: str) -> Mapping[str, Any]:
    """Return the current document with its fragments merged in, as the machine and the triggers use it."""
    return resolution(sql, subject)[1].document


def resolution(sql: Sql, subject: str | PartRecord) -> tuple[str, Resolved]:
    """Return version and content of the resolved configuration; see `resolved`.

    Machines report the version back. The content includes the problems in fragments.
    """
    record = part(sql, subject) if isinstance(subject, str) else subject
    merged = _merged(sql, record, _document(sql, record)[1])
    return version_of(record.revision, merged), merged


def _merged(sql: Sql, record: PartRecord, document: Mapping[str, Any]) -> Resolved:
    return resolve(document, fragments.finder(sql, record.organization_id, part=record.id))


@dataclass(frozen=True, slots=True)
class CheckedConfiguration:
    """A checked document, which can be saved as a part's configuration if the database has not changed since."""

    part: str
    text: str
    equal: bool  # same as the current configuration: nothing to save
    revision: int  # revision of the part that it replaces
    uses: frozenset[str]  # ids of the fragments that it uses
    lookups: fragments.Lookups
    merged: Mapping[str, Any]  # the document with its fragments merged in, unless `equal`


def candidate(
    sql: Sql,
    subject: str,
    document: Mapping[str, Any],
    last_seen: datetime | None = None,
    text: str | None = None,
    lookups: fragments.Lookups | None = None,
) -> CheckedConfiguration:
    """Check `document` for a part, without writing.

    `last_seen` is the time of the newest save that the author has seen: PRECONDITION if there is a newer one, so that
    nothing is overwritten. INVALID if the fragments cannot be merged, if some clients could not read the result, or if
    it exceeds the limits of documents. `text` is the result of `document_text`, if it was already computed. `lookups`
    are further lookups that must still hold when the document is saved.
    """
    text = document_text(document, "the configuration") if text is None else text
    record = part(sql, subject)
    if last_seen is not None and stored(last_seen) != stored(record.saved):
        raise MachineError(
            f"the configuration was changed in the meantime (at {record.saved.isoformat()})",
            kind=ErrorKind.PRECONDITION,
            remedy="read it again and apply your change to the newest revision",
        )
    lookups = {} if lookups is None else lookups
    current_document = _document(sql, record)[1]
    equal, merged = current_document == document, document
    if not equal:
        check_unmasked(document, current_document)
        resolved = resolve(document, fragments.finder(sql, record.organization_id, lookups, record.id))
        fragments.checked(resolved)
        merged = resolved.document
        if resolved.used:
            document_text(merged, "the configuration with its fragments")
    return CheckedConfiguration(subject, text, equal, record.revision, frozenset(uses(document)), lookups, merged)


def put(sql: Sql, candidate: CheckedConfiguration, author: Author, now: datetime) -> int:
    """Save a candidate as the configuration of its part; return the revision.

    An equal one changes nothing. Stale if it must be checked again.
    """
    record = part(sql, candidate.part)
    if record.revision != candidate.revision or any(
        fragments.usable(sql, *lookup, part=candidate.part) != revision
        for lookup, revision in candidate.lookups.items()
    ):
        raise Stale
    if candidate.equal:
        return candidate.revision
    revision = candidate.revision + 1
    moment = max(stored(now), stored(record.saved) + 1)  # each save has a different time
    row: dict[str, Value] = {
        "part_id": candidate.part,
        "revision": revision,
        "document": candidate.text,
        "saved": moment,
    }
    inserted(sql, "configurations", {**row, "author_type": author.type, "author": author.name})
    sql.run("UPDATE parts SET revision = ?, saved = ? WHERE id = ?", revision, moment, candidate.part)
    note_uses(sql, "part", candidate.part, candidate.uses, only=True)
    sql.notify("part", candidate.part)
    return revision


def save(sql: Sql, subject: str, document: Mapping[str, Any], author: Author, now: datetime) -> int:
    """Check and save a document in one transaction; return the revision.

    This is for programs; calls check outside the write transaction.
    """
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
    """Return revisions of a part, newest first, below revision `before`, saved from `start` on and before `end`.

    Fewer than `limit` if their documents exceed the limit `history`.
    """
    conditions, values = ["part_id = ?"], [subject]
    bounds: list[int] = []
    if before is not None:
        conditions.append("revision < ?")
        bounds.append(before)
    if start is not None:
        conditions.append("saved >= ?")
        bounds.append(stored(start))
    if end is not None:
        conditions.append("saved < ?")
        bounds.append(stored(end))
    return within_limit(
        sql,
        f"""
        SELECT revision, document, saved, author_type, author,
            (SELECT document FROM configurations AS older
             WHERE older.part_id = configurations.part_id AND older.revision = configurations.revision - 1) AS before
        FROM configurations WHERE {" AND ".join(conditions)} ORDER BY revision DESC LIMIT 1 OFFSET ?
        """,
        (*values, *bounds),
        limit,
    )
